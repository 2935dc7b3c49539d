"""Settings -> Spark session: the running one, that of spark-submit, or a new one on this machine."""

import contextlib
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloaking.command import java
from cloaking.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("cloaking")

MOST_MEMORY = 8  # GiB for Spark on a machine of one's own; half of the machine's where that is less
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # Spark runs a task per core already
# A worker that crashes says where, which tells a bug from a worker that was killed.
FAULTS = ("spark.python.worker.faulthandler.enabled", "spark.sql.execution.pyspark.udf.faulthandler.enabled")

# What Spark says where its process ends at once, whose own words are on stderr, or where it cannot read a setting.
_WRONG_SETTING = re.compile(r"JAVA_GATEWAY_EXITED|Could not parse Master URL|NumberFormatException|IllegalArgument")


def gateway() -> Any:
    """Return what connects this process to a Spark of its own; None before Spark is asked for, and under Connect."""
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.SparkContext._gateway


@contextlib.contextmanager
def session(conf: Sequence[str]) -> Iterator["SparkSession"]:
    """Give the running Spark session, or start one and stop it at the end.

    Args:
        conf: settings KEY=VALUE for a new session; they win over all others.

    Raises:
        SettingsError: Spark would be started on this machine and there is no Java for it.
    """
    given = dict(setting.split("=", 1) for setting in conf)
    here = java.started_here(given)
    if here:
        java.find()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the workers take another python3 from the PATH
    _silence_pyspark()
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    running = _running()
    if running is not None:
        if given:
            log.warning("Spark runs already, so these settings change nothing: %s", ", ".join(given))
        yield running
        return
    configured = not here or "SPARK_CONF_DIR" in os.environ or "PYSPARK_SUBMIT_ARGS" in os.environ
    settings = {"spark.app.name": "local-cloaking"} | ({} if configured else _own_machine())
    if not java.remote(given):
        settings |= {f"spark.executorEnv.{name}": "1" for name in ONE_THREAD}
    settings |= {"spark.sql.execution.arrow.pyspark.enabled": "true"} | dict.fromkeys(FAULTS, "true") | given
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _same_handler(), _starting():
        if here:
            java.start(settings)
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        with contextlib.suppress(Py4JError, OSError):  # Spark's process may be gone; what ended the block is told
            spark.stop()


def _running() -> "SparkSession | None":
    """Return the session of this thread, or else that of this process."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Say in a line that settings do not let Spark start; where a cluster does not answer, that is no such thing."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import IllegalArgumentException, PySparkRuntimeError

    try:
        yield
    except (IllegalArgumentException, PySparkRuntimeError, Py4JJavaError) as error:
        wrong = isinstance(error, IllegalArgumentException) or _WRONG_SETTING.search(str(error))
        if not wrong:
            raise
        raise SettingsError("Spark does not start with these settings; look at --conf, [conf] and JAVA_HOME") from error


@contextlib.contextmanager
def _same_handler() -> Iterator[None]:
    """Keep the handler of SIGINT: Spark's start puts one in its place that asks a Spark which may be gone."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


def _own_machine() -> dict[str, str]:
    """Return the settings for a machine of one's own: all cores, half of the memory, a progress bar on a terminal."""
    memory = memory_limit() // 2**20
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": f"{min(memory // 2, MOST_MEMORY * 1024)}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }


def memory_limit(root: Path = Path("/")) -> int:
    """Return how many bytes this process may take: those of the machine, or of its container where that has fewer.

    Source: the limits of control groups, version 1 and 2, of this process's group and of those above it.

    Args:
        root: where the file systems proc and sys are.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    groups = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError):  # no Linux
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            own = groups / "memory" if "memory" in controllers.split(",") else groups
            name = "memory.limit_in_bytes" if own != groups else "memory.max"
            path = own / group.lstrip("/")
            for folder in (path, *path.parents):
                if folder.is_relative_to(own):
                    with contextlib.suppress(OSError, ValueError):  # the root has no limit; "max" is none
                        limits.append(int((folder / name).read_text()))
    return min(limits)


def _silence_pyspark() -> None:
    """Keep Spark's messages out of the log of its Python side: they quote values of records."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # before Spark 4 there is no such log
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
