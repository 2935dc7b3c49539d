"""Run a command: parse settings, start Spark, do the work, report errors in a line each, return the exit code."""

import atexit
import contextlib
import inspect
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from cloaking.addresses import published_words
from cloaking.command.session import gateway, session
from cloaking.errors import CloakingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("cloaking")

DONE, BUG, WRONG, NOT_MET = 0, 1, 2, 3
SIGNALS = (signal.SIGTERM, signal.SIGINT)

_ENDED = "Spark's process ended before the job did, killed or out of memory; raise spark.driver.memory"
_BAD_SETTING = re.compile(r"""\[INVALID_CONF_VALUE[^\]]*\].*?["'](spark\.[\w.]+)["']""")
_LESS_TO_HOLD = "make local-cloaking hold fewer rows in memory (--strategy partition, a smaller --cell-rows)"
# Patterns in Spark's errors about tasks, and what they mean. Spark reports only the loss of a task that was killed.
_LACKING = (
    (
        re.compile(r"No space left on device|Disk quota exceeded"),
        "Spark's scratch space is full; name a larger disk by spark.local.dir or SPARK_LOCAL_DIRS",
    ),
    (
        re.compile(r"\bOutOfMemoryError\b"),
        "Spark's Java ran out of memory; raise spark.driver.memory and spark.executor.memory",
    ),
    (
        re.compile(r"MemoryError\b"),
        f"a worker of Spark ran out of memory; {_LESS_TO_HOLD}, or raise spark.executor.memoryOverhead",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure"),
        "a worker of Spark was killed, usually for lack of memory; "
        f"{_LESS_TO_HOLD}, or raise spark.executor.memoryOverhead",
    ),
)
_CRASHED = re.compile(r"\bFatal Python error: ")  # faulthandler prints this when a worker crashes


class Settings(Protocol):
    """The settings that every command has."""

    @property
    def conf(self) -> tuple[str, ...]:
        """Settings KEY=VALUE for a new Spark session."""

    @property
    def debug(self) -> bool:
        """Whether to show the traceback of every error."""


_Settings = TypeVar("_Settings", bound=Settings)


class Stopped(BaseException):
    """A signal asked the process to end; not an Exception, which py4j would take for a lost connection and retry."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} before the end")
        self.exit_code = 128 + number


def run(name: str, parse: Callable[[], _Settings], work: Callable[["SparkSession", _Settings, float], int]) -> int:
    """Run a command once and return its exit code.

    Args:
        name: the command's name, with which its messages begin.
        parse: returns the settings.
        work: does the command's work, given session, settings and start time, and returns the exit code.

    Returns:
        The exit code of `work`; 1 after a bug, or if memory or scratch space was insufficient; 2 if settings or data
        are wrong, with a line per problem; 128 plus its number after a signal: 143 for SIGTERM, 130 for SIGINT.
    """
    start = time.monotonic()
    debug = False
    try:
        with stoppable(), _py4j_silenced():
            settings = parse()
            debug = settings.debug
            logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
            log.setLevel(logging.INFO)
            with session(settings.conf) as spark:
                return work(spark, settings, start)
    except Stopped as stopped:
        if debug:
            _print_traceback()
        print(f"{name}: {stopped}", file=sys.stderr)
        return stopped.exit_code
    except Exception as error:
        problems, code = _explained(error)
        if debug or not problems:
            _print_traceback()
        for problem in problems:
            print(f"{name}: {problem}", file=sys.stderr)
        return code


def _print_traceback() -> None:
    """Print the traceback; addresses in it lose their users and parameters."""
    print(published_words(traceback.format_exc()), file=sys.stderr, end="")


def end(code: int) -> None:
    """End the process with this exit code, whatever a library may do when the interpreter shuts down.

    Exit handlers run first, so that temporary folders are removed and coverage is saved. If another program runs the
    job in its own interpreter (a notebook, Databricks, runpy), that program goes on, and SystemExit is raised only for
    a code other than 0: such programs treat even SystemExit(0) as a failure.
    """
    if _started_directly():
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        logging.disable(logging.CRITICAL)  # py4j may log that Spark, stopped by the same signal, is gone
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed by a reader, or never open
                stream.flush()
        os._exit(code)
    if code:
        sys.exit(code)


def _started_directly() -> bool:
    """Return whether the console script or the job file was started directly, without another program around it."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "cloaking":
        frame = frame.f_back
    inspected = sys.flags.interactive or "PYTHONINSPECT" in os.environ
    main = threading.current_thread() is threading.main_thread()
    return main and not inspected and frame is not None and frame.f_back is None


def _explained(error: Exception) -> tuple[tuple[str, ...], int]:
    """Return the lines that explain an error, none for a bug, and the exit code."""
    if _spark_ended():
        return (_ENDED,), BUG
    if isinstance(error, CloakingError):
        return error.problems, WRONG
    if _CRASHED.search(str(error)):
        return (), BUG
    setting = _BAD_SETTING.search(str(error))
    if setting:
        return (f"Spark does not take the value of {setting[1]}; look at --conf and [conf]",), WRONG
    if isinstance(error, MemoryError):
        return (f"the driver's Python ran out of memory; {_LESS_TO_HOLD}, or take a larger machine",), BUG
    return tuple(meaning for pattern, meaning in _LACKING if pattern.search(str(error)))[:1], BUG


def _spark_ended() -> bool:
    """Return whether the Spark process that this process started has ended."""
    process = getattr(gateway(), "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.1)  # after a lost connection, Spark may still be exiting
    return process.poll() is not None


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` at the first SIGTERM or SIGINT within the block; later ones do not interrupt the cleaning up.

    Signals that the process already ignores stay ignored. Outside the main thread, where none arrive, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for one in before:
            signal.signal(one, signal.SIG_IGN)  # timeout(1), for one, sends its signal twice
        _use_new_connection()
        raise Stopped(number)

    before = {one: handler for one in SIGNALS if (handler := signal.getsignal(one)) != signal.SIG_IGN}
    try:
        for one in before:
            signal.signal(one, stop)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)  # None if it was not set from Python


@contextlib.contextmanager
def _py4j_silenced() -> Iterator[None]:
    """Suppress py4j's log, part of which goes to the root logger; the same errors are raised as exceptions."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level
    own.setLevel(logging.CRITICAL)
    root.addFilter(_is_not_py4j)
    try:
        yield
    finally:
        own.setLevel(level)
        root.removeFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _use_new_connection() -> None:
    """Make this thread use a new connection to Spark.

    On the old one the reply to the interrupted call is still due; py4j would take it for the reply to the next call.
    """
    client: Any = getattr(gateway(), "_gateway_client", None)
    if hasattr(client, "thread_connection"):
        client.thread_connection.connection = None
