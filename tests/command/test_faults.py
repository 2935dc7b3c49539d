"""The job killed, stopped, out of disk, failing late: what an earlier run left stands whole, or what the new did."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
TABLES = [
    "--originals", f"parquet:{DATA / 'wine_originals.parquet'}", "--avatars", f"parquet:{DATA / 'wine_avatars.parquet'}"
]  # fmt: skip
OLD_DATE, NEW_DATE = "2026-10-01", "2026-11-01"
OLD_ROWS, NEW_ROWS = 178, 100
SECONDS = 120

pytestmark = pytest.mark.slow

# Run by every Python of the job before anything else: makes a function of the driver, or the counting of the workers,
# say that it was reached and wait to be killed.
PAUSES = """
import sys, time

def wait(where):
    print("PAUSED", where, file=sys.stderr, flush=True)
    time.sleep(150)

driver = any(word.endswith("local_cloaking.py") for word in sys.orig_argv)
worker = any("pyspark" in word for word in sys.orig_argv)
"""
READING = """
if driver:
    from cloaking.command import inputs
    inputs.read = lambda *_: wait("reading")
"""
COUNTING = """
if worker:
    from cloaking.kernel.index import AvatarIndex
    AvatarIndex.count = lambda *_: wait("counting")
"""
TOO_LARGE = """
if worker:
    import numpy as np
    from cloaking.kernel.index import AvatarIndex
    AvatarIndex.count = lambda *_: np.zeros(1 << 58)
"""
KILLED = """
if worker:
    import os, signal
    from cloaking.kernel.index import AvatarIndex
    AvatarIndex.count = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""
HISTORY = """
if driver:
    from cloaking.tables import history
    history.record = lambda *_: wait("history")
"""
BETWEEN = """
if driver:
    from cloaking.tables import text_files
    class Store:
        def __init__(self, store):
            self.store = store
        def __getattr__(self, name):
            return getattr(self.store, name)
        def move(self, source, target):
            if target.endswith("report.json") and not source.endswith(".earlier"):
                wait("between")
            self.store.move(source, target)
    found = text_files._store
    def paused(folder):
        store, base = found(folder)
        return Store(store), base
    text_files._store = paused
"""

FULL_AT_LAST = """
if driver:
    import errno, os
    from cloaking.tables import text_files
    class Store:
        def __init__(self, store):
            self.store = store
        def __getattr__(self, name):
            return getattr(self.store, name)
        def open_output_stream(self, path):
            if ".report.json." in path:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.store.open_output_stream(path)
    found = text_files._store
    def full(folder):
        store, base = found(folder)
        return Store(store), base
    text_files._store = full
"""


class State(NamedTuple):
    """What stands in a folder: for each result "old", "new", "none" or what is wrong with it, and hidden files."""

    report: str
    page: str
    counts: str
    history: list[str]
    hidden: list[str]


def environment(folder, pause=""):
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(PAUSES + pause)
    for name in ("tmp", "scratch"):
        (folder / name).mkdir(exist_ok=True)
    return os.environ | {
        "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{ROOT}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "TMPDIR": str(folder / "tmp"),
    }


def interruptible():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts what runs behind it with SIGINT ignored


@contextlib.contextmanager
def started(folder, *argv, pause=""):
    """Start the main job as the leader of its own process group; nothing of it is left when the block ends."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'tmp'} -XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "false",
    }
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = [sys.executable, ROOT / "jobs" / "local_cloaking.py", *TABLES, "--name", "wine", *argv, *conf]
    with subprocess.Popen(
        [str(word) for word in command], cwd=folder, env=environment(folder, pause), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=interruptible,
    ) as job:  # fmt: skip
        late = threading.Timer(SECONDS, os.killpg, (job.pid, signal.SIGKILL))
        late.start()
        try:
            yield job
        finally:
            late.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)


def until(job, mark):
    """Read what the job says up to a line with the mark."""
    said = []
    for line in job.stdout:
        said.append(line)
        if mark in line:
            return "".join(said)
    raise AssertionError(f"it never said {mark!r}:\n{''.join(said)}")


def ended(job):
    """Read the rest of what the job says, and wait until its group holds no process; return what it said."""
    said = job.stdout.read()
    job.wait()
    deadline = time.monotonic() + SECONDS
    while alive(job.pid):
        assert time.monotonic() < deadline, f"processes outlive the job: {alive(job.pid)}"
        time.sleep(0.1)
    return said


def alive(group):
    """Return the processes of a group that are no zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                found.append(int(stat.parent.name))
    return found


def results(folder, **elsewhere):
    """The options that name the report, counts and history of a folder, or those that stand elsewhere."""
    report, counts, history = (elsewhere.get(name, folder / name) for name in ("report", "counts", "history"))
    return ["--output", report, "--counts", f"parquet:{counts}", "--overwrite", "--history", f"parquet:{history}"]


NEW = ["--run-date", NEW_DATE, "--where", f"id < {NEW_ROWS}"]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """A folder with the report, counts and history of an earlier run."""
    folder = tmp_path_factory.mktemp("earlier")
    with started(folder, *results(folder), "--run-date", OLD_DATE) as job:
        said = ended(job)
    assert job.returncode == 0, said
    return folder


@pytest.fixture
def folder(earlier, tmp_path):
    """A copy of the earlier run's results."""
    for name in ("report", "counts", "history"):
        shutil.copytree(earlier / name, tmp_path / name)
    return tmp_path


def state(folder, earlier):
    """Look at everything that stands, and compare it with what the earlier run left."""
    hidden = [
        str(path.relative_to(folder))
        for name in (".", "report", "counts", "history", "tmp", "scratch")
        for path in (folder / name).glob("*")
        if path.name.startswith(".") or name in ("tmp", "scratch")
    ]
    return State(
        text_state(folder / "report" / "report.json", earlier / "report" / "report.json", new_report),
        text_state(folder / "report" / "report.html", earlier / "report" / "report.html", whole_page),
        counts_state(folder / "counts"),
        sorted(str(row) for row in pq.read_table(folder / "history")["run_date"].to_pylist()),
        sorted(entry for entry in hidden if "hsperfdata" not in entry and not entry.endswith(".crc")),
    )


def text_state(path, old, is_new):
    if not path.exists():
        return "none"
    if path.read_bytes() == old.read_bytes():
        return "old"
    return "new" if is_new(path.read_text()) else f"half: {path.read_text()[:200]}"


def new_report(text):
    with contextlib.suppress(ValueError):
        report = json.loads(text)
        return (report["run_date"], report["originals"]) == (NEW_DATE, NEW_ROWS)
    return False


def whole_page(text):
    return NEW_DATE in text and text.rstrip().endswith("</html>")


def counts_state(path):
    if not path.exists():
        return "none"
    return {OLD_ROWS: "old", NEW_ROWS: "new"}.get(rows := pq.read_table(path).num_rows, f"{rows} rows")


@pytest.mark.parametrize(
    ("mark", "pause", "left"),
    [
        ("PAUSED reading", READING, ("old", "old", "old", [OLD_DATE])),
        ("checked:", "", ("old", "old", "old", [OLD_DATE])),
        ("index:", "", ("old", "old", "old", [OLD_DATE])),
        ("PAUSED counting", COUNTING, ("old", "old", "old", [OLD_DATE])),
        ("PAUSED history", HISTORY, ("old", "old", "old", [OLD_DATE])),
    ],
    ids=["reading", "checked", "index", "counting", "history"],
)
def test_a_killed_job_leaves_the_old_report_whole_or_none(folder, earlier, mark, pause, left):
    with started(folder, *results(folder), *NEW, pause=pause) as job:
        said = until(job, mark)
        os.killpg(job.pid, signal.SIGKILL)
        said += ended(job)
    found = state(folder, earlier)
    assert found[:4] == left, f"left: {found}\n{said}"


def test_a_job_killed_between_page_and_json_leaves_the_earlier_results_beside_and_can_be_run_again(folder, earlier):
    with started(folder, *results(folder), *NEW, pause=BETWEEN) as job:
        said = until(job, "PAUSED between")
        os.killpg(job.pid, signal.SIGKILL)
        said += ended(job)
    found = state(folder, earlier)
    assert found[:4] == ("none", "new", "new", [OLD_DATE, NEW_DATE]), f"left: {found}\n{said}"
    [counts], [report] = folder.glob(".counts.*/earlier"), (folder / "report").glob(".report.json.*.earlier")
    assert counts_state(counts) == "old"
    assert report.read_bytes() == (earlier / "report" / "report.json").read_bytes()
    with started(folder, *results(folder), *NEW) as job:
        said = ended(job)
    assert job.returncode == 0, said
    assert state(folder, earlier)[:4] == ("new", "new", "new", [OLD_DATE, NEW_DATE])
    assert "paths were ignored" not in said  # as Spark warns of a table whose name is hidden


def once(job, number):
    os.kill(job.pid, number)


def group_twice(job, number):  # as timeout(1) does
    os.kill(job.pid, number)
    os.killpg(job.pid, number)


@pytest.mark.parametrize(
    ("name", "send", "mark", "pause", "left"),
    [
        ("SIGTERM", once, "PAUSED counting", COUNTING, ("old", "old", "old", [OLD_DATE])),
        ("SIGINT", once, "PAUSED counting", COUNTING, ("old", "old", "old", [OLD_DATE])),
        ("SIGTERM", group_twice, "PAUSED counting", COUNTING, ("old", "old", "old", [OLD_DATE])),
        ("SIGTERM", group_twice, "checked:", "", ("old", "old", "old", [OLD_DATE])),
        ("SIGTERM", once, "PAUSED history", HISTORY, ("old", "old", "old", [OLD_DATE])),
        ("SIGTERM", once, "PAUSED between", BETWEEN, ("old", "old", "old", [OLD_DATE, NEW_DATE])),
        ("SIGINT", group_twice, "PAUSED between", BETWEEN, ("old", "old", "old", [OLD_DATE, NEW_DATE])),
    ],
)
def test_a_stopped_job_says_so_in_one_line_and_cleans_up(folder, earlier, name, send, mark, pause, left):
    with started(folder, *results(folder), *NEW, pause=pause) as job:
        said = until(job, mark)
        send(job, getattr(signal, name))
        said += ended(job)
    assert job.returncode == 128 + getattr(signal, name), said
    assert [line for line in said.splitlines() if line.startswith("local-cloaking:")] == [
        f"local-cloaking: stopped by {name} before the end"
    ], said
    assert "Traceback" not in said, said
    assert state(folder, earlier) == (*left, []), f"left: {state(folder, earlier)}\n{said}"


def test_a_spark_that_is_killed_is_one_line_and_1_and_the_earlier_report_stands(folder, earlier):
    with started(folder, *results(folder), *NEW, pause=COUNTING) as job:
        said = until(job, "PAUSED counting")
        [spark] = [pid for pid in alive(job.pid) if b"SparkSubmit" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(spark, signal.SIGKILL)
        said += ended(job)
    assert job.returncode == 1, said
    [line] = [line for line in said.splitlines() if line.startswith("local-cloaking:")]
    assert "Spark's process ended before the job did" in line
    assert "Traceback" not in said, said
    assert state(folder, earlier)[:4] == ("old", "old", "old", [OLD_DATE]), said


@pytest.mark.parametrize(
    ("pause", "words"),
    [(TOO_LARGE, "a worker of Spark ran out of memory"), (KILLED, "a worker of Spark was killed, usually for lack of")],
    ids=["too large", "killed"],
)
def test_a_cell_that_does_not_fit_says_which_setting_to_change(folder, earlier, pause, words):
    with started(folder, *results(folder), *NEW, "--strategy", "partition", pause=pause) as job:
        said = ended(job)
    assert job.returncode == 1, said
    [line] = [line for line in said.splitlines() if line.startswith("local-cloaking:")]
    assert words in line and "--cell-rows" in line
    assert "Traceback" not in "".join(line for line in said.splitlines() if "local-cloaking" in line)
    assert state(folder, earlier) == ("old", "old", "old", [OLD_DATE], []), said


def test_a_worker_that_crashes_is_a_bug_with_its_traceback(folder, earlier):
    pause = KILLED.replace("SIGKILL", "SIGSEGV")
    with started(folder, *results(folder), *NEW, "--strategy", "partition", pause=pause) as job:
        said = ended(job)
    assert job.returncode == 1, said
    assert "Fatal Python error: Segmentation fault" in said and "memory" not in said.split("Traceback")[0]
    assert not any(line.startswith("local-cloaking:") for line in said.splitlines()), said
    assert state(folder, earlier) == ("old", "old", "old", [OLD_DATE], []), said


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 KiB, and a function that leaves so many KiB of it free."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")

    def leave(free):
        size = shutil.disk_usage(disk).free - free * 1024
        (disk / "filler").write_bytes(b"\0" * size)

    yield disk, leave
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("on_disk", "option", "told"),
    [
        ("report", "--output", "counts 'parquet:"),
        ("counts", "counts 'parquet:", ""),
        ("history", "history 'parquet:", "counts 'parquet:"),
    ],
)
def test_a_full_disk_is_one_line_and_2_and_the_earlier_report_stands(
    folder, earlier, small_disk, on_disk, option, told
):
    disk, leave = small_disk
    shutil.move(folder / on_disk, disk / on_disk)
    leave(8)
    with started(folder, *results(folder, **{on_disk: disk / on_disk}), *NEW) as job:
        said = ended(job)
    (disk / "filler").unlink()
    shutil.move(disk / on_disk, folder / on_disk)
    assert job.returncode == 2, said
    [line] = [line for line in said.splitlines() if line.startswith("local-cloaking:")]
    assert f"local-cloaking: {option}" in line
    assert "(No space left on device)" in line
    assert not told or any(told in line and "removed again" in line for line in said.splitlines()), said
    assert "Traceback" not in said
    found = state(folder, earlier)
    assert found == ("old", "old", "old", [OLD_DATE], []), f"left: {found}\n{said}"
    assert list(disk.iterdir()) == []


def test_where_the_report_fails_after_the_history_the_row_that_stands_is_told(folder, earlier):
    with started(folder, *results(folder), *NEW, pause=FULL_AT_LAST) as job:
        said = ended(job)
    assert job.returncode == 2, said
    assert any("ERROR history 'parquet:" in line and "the next run" in line for line in said.splitlines()), said
    found = state(folder, earlier)
    assert found == ("old", "old", "old", [OLD_DATE, NEW_DATE], []), f"left: {found}\n{said}"
