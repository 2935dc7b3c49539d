"""Test that counts stay the same on a standalone cluster where an executor or a Python worker dies or one freezes.

The main job counts 200,000 originals by spark-submit with the packed zip; its counts must equal those of a local run.
A frozen worker never ends by itself: in that case Spark speculates, that is, it starts the task once more elsewhere.
A task that is counting is recognised by the index of the avatars that its Python worker has mapped into memory.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyspark
from make_sample import avatars

ROOT = Path(__file__).resolve().parent.parent
SPARK_HOME = Path(pyspark.__file__).parent
MASTER = "spark://127.0.0.1:7177"
ROWS, NCP, K = 200_000, 5, 20
TASKS = 16  # enough that some still wait when a worker dies
EXECUTOR = "CoarseGrainedExecutorBackend"
SECONDS = 300  # the longest that anything here may take


def main() -> int:
    """Run all jobs and print what was lost; return 1 if a count differs, or if nothing was lost or speculated."""
    with tempfile.TemporaryDirectory(prefix="cloaking-cluster-") as name:
        folder = Path(name)
        make_tables(folder)
        run = subprocess.run(["local-cloaking", *job(folder, "local")], check=False)
        if run.returncode:
            return 1
        expected = counts(folder, "local")
        good = True
        for name, (hit, settings) in HITS.items():
            with cluster(folder / name) as environment:
                submit(folder, name, environment, hit, settings)
            found = counts(folder, name)
            same_ids = found.index.equals(expected.index)
            differing = int((found != expected).any(axis=1).sum()) if same_ids else ROWS
            executors, tasks, again = lost(folder / name / "events")
            line = f"{name} rows={len(found)} differing={differing} executors_lost={executors} failed_tasks={tasks}"
            print(f"{line} speculated={again}", flush=True)
            happened = {"killed-executor": executors, "frozen-python-worker": again}.get(name, tasks)
            good &= differing == 0 and tasks > 0 and happened > 0
        return 0 if good else 1


def make_tables(folder: Path) -> None:
    """Write originals in clusters, and avatars made from them by the published method."""
    rng = np.random.default_rng(11)
    centres = 3 * rng.normal(size=(40, NCP))
    points = (centres[rng.integers(40, size=ROWS)] + rng.normal(size=(ROWS, NCP))) * 0.8 ** np.arange(NCP)
    for name, values in (("originals", points), ("avatars", avatars(points, K, rng))):
        frame = pd.DataFrame(values, columns=[f"dim_{k}" for k in range(1, NCP + 1)])
        frame.insert(0, "id", np.arange(ROWS))
        frame.sample(frac=1, random_state=rng.integers(2**31)).to_parquet(folder / f"{name}.parquet", index=False)


def job(folder: Path, name: str) -> list[str]:
    """Return the main job's arguments; its counts go to a table named after `name`."""
    tables = [f"--{side}=parquet:{folder}/{side}.parquet" for side in ("originals", "avatars")]
    outputs = [f"--counts=parquet:{folder}/{name}-counts", f"--output={folder}/{name}-report"]
    return [*tables, *outputs, "--strategy=broadcast", f"--tasks={TASKS}"]


def counts(folder: Path, name: str) -> pd.DataFrame:
    """Return the counts of a run, by id."""
    return pd.read_parquet(folder / f"{name}-counts").set_index("id").sort_index()


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Start a master and two workers; yield the environment for jobs submitted to them."""
    (folder / "events").mkdir(parents=True)
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(SPARK_HOME)}
    environment |= {"SPARK_CONF_DIR": str(ROOT / "conf"), "SPARK_NO_DAEMONIZE": "1"}
    deploy = "org.apache.spark.deploy"
    commands = {"127.0.0.1": [f"{deploy}.master.Master", "--port", "7177", "--webui-port", "8177"]}
    for number in (2, 3):  # separate hosts: Spark never speculates on the host of the first attempt
        size = ["--cores", "1", "--memory", "1500M", "--webui-port", f"818{number}"]
        worker = [f"{deploy}.worker.Worker", *size, "--work-dir", str(folder / f"w{number}"), MASTER]
        commands[f"127.0.0.{number}"] = worker
    with ExitStack() as running:
        for host, command in commands.items():
            log = running.enter_context((folder / f"{host}.log").open("ab"))
            process = subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", command[0], "--host", host, *command[1:]],
                env=environment | {"SPARK_LOCAL_IP": host}, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
            running.callback(end, process)
        yield environment


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def submit(
    folder: Path, name: str, environment: dict[str, str], hit: Callable[[int], None], further: dict[str, str]
) -> None:
    """Submit the main job from another working directory, hit a task that is counting, and wait for the end."""
    package = next((ROOT / "dist").glob("cloaking-*.zip"))
    events = {
        "enabled": "true",
        "dir": f"file://{folder}/{name}/events",
        "compress": "false",
        "rolling.enabled": "false",
    }
    settings = {f"spark.eventLog.{key}": value for key, value in events.items()}
    settings |= {"spark.executor.memory": "1g", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "1g"}
    settings |= further
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", MASTER, "--py-files", str(package)]
    command += [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    process = subprocess.Popen(
        [*command, str(ROOT / "jobs" / "local_cloaking.py"), *job(folder, name)],
        env=environment, cwd=folder, start_new_session=True,
    )  # fmt: skip
    try:
        hit(wait_for_counting(process))
        if process.wait(timeout=SECONDS):
            raise SystemExit(f"{name}: the job ended with {process.returncode}")
    finally:
        end(process)


def wait_for_counting(process: subprocess.Popen[bytes]) -> int:
    """Return the process id of a Python worker that is counting."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for maps in Path("/proc").glob("[0-9]*/maps"):
            with suppress(OSError, LookupError):  # already gone, or part of another Spark on this machine
                if "/avatars-" in maps.read_text() and ancestor(int(maps.parent.name), EXECUTOR):
                    return int(maps.parent.name)
        time.sleep(0.02)
    raise SystemExit("no task was seen counting")


def kill_python_worker(counting: int) -> None:
    """Kill the Python process that is counting."""
    os.kill(counting, signal.SIGKILL)


def freeze_python_worker(counting: int) -> None:
    """Stop the Python process that is counting, without ending it."""
    os.kill(counting, signal.SIGSTOP)


def kill_executor(counting: int) -> None:
    """Kill the executor that the counting process belongs to, with the worker that started it."""
    executor = ancestor(counting, EXECUTOR)
    worker = ancestor(executor, "deploy.worker.Worker")
    for process in (worker, executor):
        os.kill(process, signal.SIGKILL)


def ancestor(process: int, named: str) -> int:
    """Return the nearest ancestor whose command line contains the name."""
    while process > 1:
        status = Path(f"/proc/{process}/status").read_text()
        process = int(status.partition("PPid:")[2].split()[0])
        if named in Path(f"/proc/{process}/cmdline").read_text():
            return process
    raise LookupError(f"no {named} above the counting process")


def lost(events: Path) -> tuple[int, int, int]:
    """Return the numbers of executors lost, tasks failed and tasks speculated, from the event log."""
    kinds = [json.loads(line) for file in events.iterdir() for line in file.read_text().splitlines()]
    executors = sum(event["Event"] == "SparkListenerExecutorRemoved" for event in kinds)
    ends = [event for event in kinds if event["Event"] == "SparkListenerTaskEnd"]
    failed = sum(event["Task End Reason"]["Reason"] != "Success" for event in ends)
    return executors, failed, sum(event["Task Info"]["Speculative"] for event in ends)


SPECULATION = {"": "true", ".interval": "100ms", ".quantile": "0.5", ".minTaskRuntime": "1s"}
HITS: dict[str, tuple[Callable[[int], None], dict[str, str]]] = {
    "killed-executor": (kill_executor, {}),
    "killed-python-worker": (kill_python_worker, {}),
    "frozen-python-worker": (
        freeze_python_worker, {f"spark.speculation{key}": value for key, value in SPECULATION.items()}
    ),
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
