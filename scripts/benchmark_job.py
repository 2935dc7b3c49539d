"""Compare whole jobs with a floor and with what one would write without this package, and print the table.

The floor reads both tables, joins them on the id and writes the join: the least that any such job must do. Each
contender is a separate process, measured with its start and Spark's, on the same Parquet files and two cores. Spark's
event log shows where the time of our jobs goes.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cloaking.sweep.simulate import nearest_others, simulate

ROOT = Path(__file__).resolve().parents[1]
NCP, K, CLUSTERS, SEED = 5, 20, 30, 20230310
FILE_ROWS = 1_000_000
CROSS_JOIN_ROWS = 20_000  # a cross join of more rows takes too long
SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "8g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}
EVENTS = {"enabled": "true", "compress": "false", "rolling.enabled": "false"}
CONF = [word for key, value in SPARK.items() for word in ("--conf", f"{key}={value}")]

_SESSION = f"""
import sys
from pyspark.sql import SparkSession, functions as F
builder = SparkSession.builder
for key, value in {SPARK!r}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
originals, avatars = (spark.read.parquet(sys.argv[1] + "/" + side) for side in ("originals", "avatars"))
own = avatars.select("id", *(F.col(f"dim_{{k}}").alias(f"own_{{k}}") for k in range(1, {NCP + 1})))
"""
_FLOOR = _SESSION + "originals.join(own, on='id').write.mode('overwrite').parquet(sys.argv[1] + '/floor')\n"
_CROSS_JOIN = f"""{_SESSION}
linked = originals.join(own, on="id")
def squared(left, right):
    return sum((F.col(f"{{left}}{{k}}") - F.col(f"{{right}}{{k}}")) ** 2 for k in range(1, {NCP + 1}))
others = avatars.select(*(F.col(f"dim_{{k}}").alias(f"y_{{k}}") for k in range(1, {NCP + 1})))
counts = linked.crossJoin(others).where(squared("dim_", "y_") <= squared("dim_", "own_")).groupBy("id").count()
print(counts.select(F.median(F.col("count") - 1)).collect())
"""
_SCIPY = f"""
import sys
import numpy as np, pandas as pd
from scipy.spatial import cKDTree
names = [f"dim_{{k}}" for k in range(1, {NCP + 1})]
originals, avatars = (pd.read_parquet(sys.argv[1] + "/" + side) for side in ("originals", "avatars"))
own = avatars.set_index("id").loc[originals["id"], names].to_numpy()
x = originals[names].to_numpy()
radius = np.sqrt(((x - own) ** 2).sum(axis=1)) * (1 + 1e-12)
tree = cKDTree(avatars[names].to_numpy())
print(np.median(tree.query_ball_point(x, radius, return_length=True, workers=2) - 1))
"""


class Result(NamedTuple):
    """The cost of one process: elapsed seconds, peak MiB of its Python driver and of a worker, seconds by phase."""

    seconds: float
    driver: float
    worker: float
    phases: dict[str, float]


def job_table(rows: list[int], repeats: int) -> None:
    """Print a line per number of rows and contender as soon as it is measured, then the phases of our jobs."""
    print("| rows | contender | seconds | of the floor | Python driver, MiB | largest Python worker, MiB |")
    print("|---|---|---|---|---|---|")
    phases: dict[tuple[int, str], dict[str, float]] = {}
    for n in rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder, n)
            floor = 0.0
            for contender, command in contenders(folder, n).items():
                results = sorted(run(command, folder) for _ in range(repeats))
                middle = results[len(results) // 2]
                seconds = statistics.median(result.seconds for result in results)
                floor = floor or seconds
                driver, worker = (max(getattr(one, who) for one in results) for who in ("driver", "worker"))
                cells = [
                    f"{n:,}",
                    contender,
                    f"{seconds:.1f}",
                    f"{seconds / floor:.2f}",
                    f"{driver:.0f}",
                    f"{worker:.0f}",
                ]
                print(f"| {' | '.join(cells)} |", flush=True)
                if middle.phases:
                    phases[n, contender] = middle.phases
    names = list(dict.fromkeys(phase for found in phases.values() for phase in found))
    print(f"\n| rows | contender | {' | '.join(names)} |")
    print("|---" * (2 + len(names)) + "|")
    for (n, contender), found in phases.items():
        print(f"| {n:,} | {contender} | {' | '.join(f'{found.get(name, 0):.1f}' for name in names)} |")


def contenders(folder: Path, rows: int) -> dict[str, list[str]]:
    """Return the contenders' commands, the floor first."""
    ours = [sys.executable, str(ROOT / "jobs" / "local_cloaking.py"), *CONF, f"--output={folder}/report"]
    ours += [f"--conf=spark.eventLog.{key}={value}" for key, value in EVENTS.items()]
    ours += [f"--originals=parquet:{folder}/originals", f"--conf=spark.eventLog.dir={folder}/events"]
    honest, shuffled = (f"--avatars=parquet:{folder}/{side}" for side in ("avatars", "shuffled"))
    found = {
        "floor": [sys.executable, "-c", _FLOOR, str(folder)],
        "broadcast": [*ours, honest, "--strategy=broadcast"],
        "partition": [*ours, honest, "--strategy=partition"],
        "scipy, two workers": [sys.executable, "-c", _SCIPY, str(folder)],
    }
    if rows <= 1_000_000:
        found["broadcast, link shuffled"] = [*ours, shuffled, "--strategy=broadcast"]
    if rows <= CROSS_JOIN_ROWS:
        found["Spark cross join"] = [sys.executable, "-c", _CROSS_JOIN, str(folder)]
    return found


def make(folder: Path, rows: int) -> None:
    """Write originals in clusters of falling variance, and their avatars, linked correctly and linked at random."""
    rng = np.random.default_rng(SEED)
    spread = 1 / np.sqrt(np.arange(1, NCP + 1))
    centres = 3 * spread * rng.normal(size=(CLUSTERS, NCP))
    points = centres[rng.integers(CLUSTERS, size=rows)] + spread * rng.normal(size=(rows, NCP))
    made = simulate(points, nearest_others(points, K), rng)
    names = [f"dim_{k}" for k in range(1, NCP + 1)]
    for side in ("originals", "avatars", "shuffled", "events"):
        (folder / side).mkdir()
    for start in range(0, rows, FILE_ROWS):
        ids = np.arange(start, min(rows, start + FILE_ROWS))
        order = rng.permutation(ids)
        for side, key, values in (
            ("originals", ids, points[ids]),
            ("avatars", order, made[order]),
            ("shuffled", ids, made[order]),
        ):
            frame = pd.DataFrame(values, columns=names)
            frame.insert(0, "id", key)
            frame.to_parquet(folder / side / f"part-{start // FILE_ROWS:05d}.parquet", row_group_size=100_000)


def run(command: list[str], folder: Path) -> Result:
    """Run one contender to its end, and record the peak memory of its Python processes."""
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for log in (folder / "events").iterdir():
        log.unlink()
    with (folder / "log").open("ab") as log:
        started, start = time.time(), time.monotonic()
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder, start_new_session=True)
        peaks = {True: 0.0, False: 0.0}
        watcher = threading.Thread(target=_watch, args=(process, peaks))
        watcher.start()
        code = process.wait()
        seconds = time.monotonic() - start
        watcher.join()
    if code:
        sys.exit(f"{' '.join(command[:3])} ended with {code}:\n{(folder / 'log').read_text()[-2000:]}")
    logs = list((folder / "events").iterdir())
    return Result(seconds, peaks[True], peaks[False], phases(logs[0], started, seconds) if logs else {})


def phases(log: Path, started: float, seconds: float) -> dict[str, float]:
    """Return the seconds of a job by phase, from its event log: Spark's stages, and the time between them."""
    spans: dict[str, list[tuple[float, float]]] = {}
    application = first_python = 0.0
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerApplicationStart":
            application = event["Timestamp"] / 1000 - started
        if event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            span = info["Submission Time"] / 1000 - started, info["Completion Time"] / 1000 - started
            spans.setdefault(_phase(info), []).append(span)
            boots = [int(one["Value"]) for one in info["Accumulables"] if one["Name"] in _PYTHON_START]
            first_python = first_python or sum(boots) / 1000 / info["Number of Tasks"]
    found = {"start of Python and Java": application}
    for phase, parts in spans.items():
        end = length = 0.0
        for low, high in sorted(parts):
            length += max(0.0, high - max(low, end))
            end = max(end, high)
        found[phase] = length
    found["driver, between stages"] = seconds - sum(found.values())
    found["of it all: first Python worker"] = first_python
    return found


# Spark's metrics of a Python function, summed over the tasks of a stage, in milliseconds.
_PYTHON_START = ("time to start Python workers", "time to initialize Python workers")
_CALLED_FROM = {"checks.py": "checks", "broadcast.py": "avatars to the driver", "partition.py": "cells"}


def _phase(stage: dict[str, Any]) -> str:
    """Return the phase of a stage, known by the module that started it and by its operations."""
    for module, phase in _CALLED_FROM.items():
        if f"/{module}:" in stage["Stage Name"]:
            return phase
    if "/tally.py:" not in stage["Stage Name"]:
        return "schemas"
    scopes = json.dumps([rdd.get("Scope", "") for rdd in stage["RDD Info"]])
    if "MapInArrow" in scopes:
        return "count"
    return "link" if "Scan" in scopes else "summary"


def _watch(process: "subprocess.Popen[bytes]", peaks: dict[bool, float]) -> None:
    """Record the peak memory, in MiB, of the driver (True) and of any other Python process of its session (False)."""
    while process.poll() is None:
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
                pid = int(lines["Pid"])
                if lines["Name"].strip().startswith("python") and os.getsid(pid) == process.pid:
                    peaks[pid == process.pid] = max(peaks[pid == process.pid], int(lines["VmHWM"].split()[0]) / 1024)
            except (OSError, KeyError):
                continue
        time.sleep(0.2)
