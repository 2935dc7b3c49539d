"""Compare the kernel, or whole jobs, with alternatives, and print a table of ratios that were measured in one run.

Usage:
    python scripts/benchmark.py kernel            the table of the README: about half an hour
    python scripts/benchmark.py kernel --quick    a tenth of the rows: some minutes
    python scripts/benchmark.py job               whole jobs, see benchmark_job.py

Each contender runs in its own process with one thread: it builds its index and counts, once on a few rows to warm up
and then several times; the table shows medians. Seconds are processor time (user and system), which other processes on
the machine disturb less than elapsed time. Peers answer the question nearest to the kernel's, the number of avatars in
the ball that reaches to the own avatar, and their counts are compared with the kernel's row by row.
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
SEED = 20230310  # any
K = 20
CLUSTERS = 30
REPEATS = 3
LONG = 30  # seconds: a contender that takes longer runs once
LIMIT = 900  # seconds of elapsed time after which a contender is stopped and the ratio is a lower bound
FAISS_ROWS = 20_000  # faiss takes one radius per call: more rows would only take longer
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")}
# A machine may set these for another BLAS than numpy's own; numpy's BLAS would then run with the wrong kernels.
OVERRIDES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


class Case(NamedTuple):
    """A number of originals and as many avatars, how they differ from the plain case, and the ratio to reach."""

    rows: int
    components: int
    data: str
    target: float | None


PLAIN, SHUFFLED, PROFILES = "clusters", "link shuffled", "500 profiles"
CASES = [
    Case(1_000_000, 2, PLAIN, 1.5),
    Case(1_000_000, 3, PLAIN, 2),
    Case(1_000_000, 5, PLAIN, 3),
    Case(100_000, 5, PLAIN, None),
    Case(100_000, 10, PLAIN, 6),
    Case(100_000, 20, PLAIN, 12),
    Case(100_000, 5, SHUFFLED, 5),
    Case(100_000, 5, PROFILES, 50),
]


# ------------------------------------------------------------------------------------------------------- contenders


def kernel(avatars: Floats, originals: Floats, own: Floats) -> npt.NDArray[np.int64]:
    """Return the kernel's `within`."""
    sys.path.insert(0, str(ROOT))
    from cloaking.kernel.index import AvatarIndex

    return AvatarIndex(avatars).count(originals, own)[1]


def _radius(originals: Floats, own: Floats) -> Floats:
    return np.sqrt(np.square(originals - own).sum(axis=1)) * (1 + 1e-12)


def scipy_tree(leafsize: int) -> Callable[[Floats, Floats, Floats], Any]:
    """Return a function that counts with scipy's cKDTree of this leaf size."""

    def count(avatars: Floats, originals: Floats, own: Floats) -> Any:
        from scipy.spatial import cKDTree

        tree = cKDTree(avatars, leafsize=leafsize)
        return tree.query_ball_point(originals, _radius(originals, own), return_length=True)

    return count


def sklearn_tree(avatars: Floats, originals: Floats, own: Floats) -> Any:
    """Return the counts of scikit-learn's KDTree."""
    from sklearn.neighbors import KDTree

    return KDTree(avatars).query_radius(originals, _radius(originals, own), count_only=True)


def faiss_flat(avatars: Floats, originals: Floats, own: Floats) -> Any:
    """Return the counts of faiss's flat index, in float32, with one call per original."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(avatars.shape[1])
    index.add(avatars.astype(np.float32))
    radii = np.square(_radius(originals, own))
    rows = originals.astype(np.float32)
    return np.array([index.range_search(rows[i : i + 1], float(radii[i]))[0][1] for i in range(len(rows))])


CONTENDERS = {
    "kernel": kernel,
    "scipy 10": scipy_tree(10),
    "scipy 16": scipy_tree(16),
    "scipy 32": scipy_tree(32),
    "sklearn": sklearn_tree,
    "faiss": faiss_flat,
}


class Result(NamedTuple):
    """A contender's seconds, its process's peak memory in MiB and its counts; seconds is None if it was stopped."""

    seconds: float | None
    memory: float
    counts: npt.NDArray[np.int64] | None


def run(contender: str, data: Path, repeats: int) -> Result:
    """Run one contender on the data in a fresh process of one thread."""
    environment = {name: value for name, value in os.environ.items() if name not in OVERRIDES} | ONE_THREAD
    command = [sys.executable, __file__, "contender", contender, str(data), str(repeats)]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return Result(None, 0.0, None)
    report = json.loads(done.stdout)
    return Result(statistics.median(report["seconds"]), report["memory"], np.load(data.with_name("counts.npy")))


def contender(name: str, data: Path, repeats: int) -> None:
    """Time the contender, inside the fresh process, and print its seconds and the peak memory of the first run."""
    with np.load(data) as arrays:
        avatars, originals, own = (arrays[array] for array in ("avatars", "originals", "own"))
    count = CONTENDERS[name]
    count(own[:1_000].copy(), originals[:1_000].copy(), own[:1_000].copy())
    seconds: list[float] = []
    memory = 0.0
    while len(seconds) < repeats and sum(seconds) < LONG:
        start = time.process_time()
        counts = count(avatars, originals, own)
        seconds.append(time.process_time() - start)
        memory = memory or _peak_memory()
    np.save(data.with_name("counts.npy"), np.asarray(counts, np.int64))
    print(json.dumps({"seconds": seconds, "memory": memory}))


def _peak_memory() -> float:
    """Return the most memory that this process has held, in MiB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # in bytes on systems without /proc


# -------------------------------------------------------------------------------------------------------------- data


def make(case: Case, path: Path) -> None:
    """Write a case's avatars, originals and own avatars; the originals are in clusters of falling variance."""
    from make_sample import avatars

    rng = np.random.default_rng(SEED)
    spread = 1 / np.sqrt(np.arange(1, case.components + 1))
    centres = 3 * spread * rng.normal(size=(CLUSTERS, case.components))
    n = 500 if case.data == PROFILES else case.rows
    originals = centres[rng.integers(CLUSTERS, size=n)] + spread * rng.normal(size=(n, case.components))
    own = avatars(originals, K, rng)
    if case.data == PROFILES:
        profile = rng.integers(n, size=case.rows)
        originals, own = originals[profile], own[profile]
    if case.data == SHUFFLED:
        own = own[rng.permutation(n)]
    np.savez(path, avatars=own[rng.permutation(len(own))], originals=originals, own=own)


# ------------------------------------------------------------------------------------------------------------- table


def kernel_table(quick: bool, repeats: int) -> None:
    """Print the kernel's table, each line as soon as it is measured."""
    peers = [name for name in CONTENDERS if name not in ("kernel", "faiss")]
    print(_machine(f"one thread; processor seconds, index included; ratio to the fastest of {', '.join(peers)}"))
    heads = ["rows", "components", "data", "kernel s", *(f"{name} s" for name in peers)]
    print("| " + " | ".join([*heads, "ratio", "target", "rows that differ", "MiB"]) + " |")
    print("|---" * (len(heads) + 4) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            case = case._replace(rows=case.rows // 10, target=None) if quick else case
            print(_line(case, peers, repeats, Path(folder) / "data.npz"), flush=True)
        if importlib.util.find_spec("faiss"):
            case = Case(FAISS_ROWS, 5, PLAIN, None)
            print(f"\nfaiss's flat index, {_line(case, ['faiss'], repeats, Path(folder) / 'data.npz')}")


def _line(case: Case, peers: list[str], repeats: int, data: Path) -> str:
    make(case, data)
    ours = run("kernel", data, repeats)
    assert ours.seconds is not None and ours.counts is not None, f"the kernel took more than {LIMIT} s"
    theirs = [run(name, data, repeats) for name in peers]
    known = [result.seconds for result in theirs if result.seconds is not None]
    ratio = f"{min(known) / ours.seconds:.1f}" if known else f"> {LIMIT / ours.seconds:.0f}"
    compared = [np.count_nonzero(ours.counts != result.counts) for result in theirs if result.counts is not None]
    cells = [
        f"{case.rows:,}",
        str(case.components),
        case.data,
        f"{ours.seconds:.3g}",
        *(f"> {LIMIT}" if result.seconds is None else f"{result.seconds:.3g}" for result in theirs),
        ratio,
        "" if case.target is None else f"{case.target:g}",
        str(max(compared)) if compared else "not compared",
        f"{ours.memory:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _machine(how: str) -> str:
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "scikit-learn")]
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    unset = [name for name in OVERRIDES if name in os.environ]
    note = f"; {' and '.join(unset)} left unset" if unset else ""
    return f"{datetime.date.today()}, {cpu}, Python {platform.python_version()}, {', '.join(versions)}, {how}{note}\n"


def main(argv: list[str] | None = None) -> int:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(description="Measure the product against what else there is.")
    commands = parser.add_subparsers(dest="command", required=True)
    table = commands.add_parser("kernel", help="the kernel against scipy's and scikit-learn's trees")
    table.add_argument("--quick", action="store_true", help="a tenth of the rows")
    table.add_argument("--repeats", type=int, default=REPEATS, help=f"runs per contender (default: {REPEATS})")
    job = commands.add_parser("job", help="whole jobs, beside the floor and beside what one would write without us")
    job.add_argument("--rows", type=int, nargs="+", default=[20_000, 1_000_000, 10_000_000])
    job.add_argument("--repeats", type=int, default=1, help="runs per contender (default: 1)")
    one = commands.add_parser("contender")  # internal: started by `run`
    one.add_argument("name", choices=CONTENDERS)
    one.add_argument("data", type=Path)
    one.add_argument("repeats", type=int)
    arguments = parser.parse_args(argv)
    if arguments.command == "contender":
        contender(arguments.name, arguments.data, arguments.repeats)
    elif arguments.command == "job":
        from benchmark_job import job_table

        print(_machine("two cores; seconds of the clock, whole processes"))
        job_table(arguments.rows, arguments.repeats)
    else:
        kernel_table(arguments.quick, arguments.repeats)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
