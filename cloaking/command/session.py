"""Provide the Spark session: the running one, that of spark-submit, or a new one on this machine."""

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

MOST_MEMORY = 8  # GiB for Spark in local mode, or half of the machine's memory if that is less
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # Spark runs a task per core already
# A worker that crashes prints a traceback, which distinguishes a bug from a worker that was killed.
FAULTS = ("spark.python.worker.faulthandler.enabled", "spark.sql.execution.pyspark.udf.faulthandler.enabled")

# Spark's errors if its process exits at once (its output is on stderr), or if it cannot parse a setting.
_WRONG_SETTING = re.compile(r"JAVA_GATEWAY_EXITED|Could not parse Master URL|NumberFormatException|IllegalArgument")


def gateway() -> Any:
    """Return py4j's gateway to this process's own Spark; None before Spark starts, and under Spark Connect."""
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.SparkContext._gateway


@contextlib.contextmanager
def session(conf: Sequence[str]) -> Iterator["SparkSession"]:
    """Yield the running Spark session, or start one and stop it when the block ends.

    Args:
        conf: settings KEY=VALUE for a new session; they override all others.

    Raises:
        SettingsError: Spark must be started on this machine, and there is no usable Java or a setting is wrong.
    """
    given = dict(setting.split("=", 1) for setting in conf)
    here = java.started_here(given)
    if here:
        java.find()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers use the python3 on the PATH
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
    with _keep_sigint_handler(), _starting():
        if here:
            java.start(settings)
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        with contextlib.suppress(Py4JError, OSError):  # Spark may be gone; the block's own error is raised
            spark.stop()


def _running() -> "SparkSession | None":
    """Return the session of this thread, else that of this process, else None."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Turn errors about settings with which Spark cannot start into a SettingsError; others, as of a cluster, pass."""
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
def _keep_sigint_handler() -> Iterator[None]:
    """Keep the handler of SIGINT: Spark replaces it at its start by one that calls Spark, which may be gone."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)


def _own_machine() -> dict[str, str]:
    """Return the settings of local mode: all cores, half of the memory, a progress bar if stderr is a terminal."""
    memory = memory_limit() // 2**20
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": f"{min(memory // 2, MOST_MEMORY * 1024)}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }


def memory_limit(root: Path = Path("/")) -> int:
    """Return the memory in bytes that this process may use: the machine's, or its container's limit if lower.

    Source: the limits of Linux control groups, version 1 and 2, of this process's group and of its parents.

    Args:
        root: the folder under which proc and sys are mounted.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    groups = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError):  # not Linux
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
    """Suppress the log of Spark's Python side: its messages quote values of records."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # Spark 3.5 has no such log
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
