"""Rows enter; the table of whole jobs leaves: ours beside the floor and beside what one would write without us.

The floor reads both tables, joins them on the id and writes the join: the least that any such job must do. Each
contender is a process of its own, its start and Spark's included, on the same Parquet files and two cores.
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
from typing import NamedTuple

import numpy as np
import pandas as pd
from make_sample import avatars

ROOT = Path(__file__).resolve().parents[1]
NCP, K, CLUSTERS, SEED = 5, 20, 30, 20230310
BLOCK = 1_000_000  # rows whose avatars are made together
CROSS_JOIN_ROWS = 20_000  # a cross join of more never ends
SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "8g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}
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
    """What one process took: seconds of the clock, and the most memory of a Python process of it in MiB."""

    seconds: float
    memory: float
    stages: dict[str, float]


def job_table(rows: list[int], repeats: int) -> None:
    """Print a line per number of rows and contender, as soon as it is measured."""
    print("| rows | contender | seconds | of the floor | largest Python process, MiB | session, checks, count, write |")
    print("|---|---|---|---|---|---|")
    for n in rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder, n)
            floor = 0.0
            for contender, command in contenders(folder, n).items():
                results = [run(command, folder) for _ in range(repeats)]
                seconds = statistics.median(result.seconds for result in results)
                floor = floor or seconds
                memory = max(result.memory for result in results)
                stages = ", ".join(f"{value:.1f}" for value in results[-1].stages.values())
                print(
                    f"| {n:,} | {contender} | {seconds:.1f} | {seconds / floor:.2f} | {memory:.0f} | {stages} |",
                    flush=True,
                )


def contenders(folder: Path, rows: int) -> dict[str, list[str]]:
    """Return the commands, the floor first."""
    ours = [sys.executable, str(ROOT / "jobs" / "local_cloaking.py"), *CONF, f"--output={folder}/report"]
    ours.append(f"--originals=parquet:{folder}/originals")
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
    """Write originals in clusters of falling variance, and avatars of them by the published method, in shuffled files.

    Avatars are made block by block, each from the originals of its own block.
    """
    rng = np.random.default_rng(SEED)
    spread = 1 / np.sqrt(np.arange(1, NCP + 1))
    centres = 3 * spread * rng.normal(size=(CLUSTERS, NCP))
    names = [f"dim_{k}" for k in range(1, NCP + 1)]
    for side in ("originals", "avatars", "shuffled"):
        (folder / side).mkdir()
    for start in range(0, rows, BLOCK):
        ids = np.arange(start, min(rows, start + BLOCK))
        points = centres[rng.integers(CLUSTERS, size=len(ids))] + spread * rng.normal(size=(len(ids), NCP))
        made = avatars(points, K, rng)
        order = rng.permutation(len(ids))
        for side, key, values in (
            ("originals", ids, points),
            ("avatars", ids[order], made[order]),
            ("shuffled", ids, made[order]),
        ):
            frame = pd.DataFrame(values, columns=names)
            frame.insert(0, "id", key)
            frame.to_parquet(folder / side / f"part-{start // BLOCK:05d}.parquet", row_group_size=100_000)


def run(command: list[str], folder: Path) -> Result:
    """Run one contender to its end, and watch the memory of its Python processes."""
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / "log").open("ab") as log:
        start = time.monotonic()
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder, start_new_session=True)
        peak = [0.0]
        watcher = threading.Thread(target=_watch, args=(process, peak))
        watcher.start()
        code = process.wait()
        seconds = time.monotonic() - start
        watcher.join()
    if code:
        sys.exit(f"{' '.join(command[:3])} ended with {code}:\n{(folder / 'log').read_text()[-2000:]}")
    report = folder / "report" / "report.json"
    stages = json.loads(report.read_text())["seconds"] if report.exists() and "--output" in " ".join(command) else {}
    stages.pop("total", None)
    return Result(seconds, peak[0], stages)


def _watch(process: "subprocess.Popen[bytes]", peak: list[float]) -> None:
    """Keep the most memory, in MiB, that a Python process of this one's session has held."""
    while process.poll() is None:
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
                if lines["Name"].strip().startswith("python") and os.getsid(int(lines["Pid"])) == process.pid:
                    peak[0] = max(peak[0], int(lines["VmHWM"].split()[0]) / 1024)
            except (OSError, KeyError):
                continue
        time.sleep(0.2)
