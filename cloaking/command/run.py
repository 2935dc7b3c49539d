"""The frame of every command: settings, session, its work, an exit code, and a line for each thing that went wrong."""

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
_LESS_TO_HOLD = "let local-cloaking hold less at a time (--strategy partition, a smaller --cell-rows)"
# What Spark says of its tasks -> what it means. A task that is killed leaves no more than that it is gone.
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
_CRASHED = re.compile(r"\bFatal Python error: ")  # faulthandler's words, where a worker did what no program may do


class Settings(Protocol):
    """What every command is told."""

    @property
    def conf(self) -> tuple[str, ...]:
        """Settings KEY=VALUE for a new Spark session."""

    @property
    def debug(self) -> bool:
        """Whether to show the traceback of every error."""


_Settings = TypeVar("_Settings", bound=Settings)


class Stopped(BaseException):
    """A signal asks the process to end; no Exception, which py4j would take for a lost connection and try again."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} before the end")
        self.exit_code = 128 + number


def run(name: str, parse: Callable[[], _Settings], work: Callable[["SparkSession", _Settings, float], int]) -> int:
    """Run a command once and return its exit code.

    Args:
        name: of the command, as its messages begin.
        parse: returns the settings.
        work: does what they ask, from the session, them and the moment of the start, and returns the exit code.

    Returns:
        That of `work`; 1 after a bug, or where memory or scratch space did not do; 2 for what is wrong with settings or
        data, told in a line each; 128 and the signal's number after a signal: 143 for SIGTERM, 130 for SIGINT.
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
        problems, code = _told(error)
        if debug or not problems:
            _print_traceback()
        for problem in problems:
            print(f"{name}: {problem}", file=sys.stderr)
        return code


def _print_traceback() -> None:
    """Show where an error came from; what addresses in it hold besides a place is left out."""
    print(published_words(traceback.format_exc()), file=sys.stderr, end="")


def end(code: int) -> None:
    """End the process with this exit code, whatever a library may do when the interpreter is taken down.

    Exit handlers run first, so that temporary folders go and coverage is saved. Where the job is run by another program
    inside its own interpreter (a notebook, Databricks, runpy), that lives on, and SystemExit says a code other than 0:
    such programs take even an exit with 0 for a failure.
    """
    if _started_for_this():
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        logging.disable(logging.CRITICAL)  # py4j may log that Spark, which a signal stopped too, is gone
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed by a reader or from the start
                stream.flush()
        os._exit(code)
    if code:
        sys.exit(code)


def _started_for_this() -> bool:
    """Tell whether nothing but the console script or the job file called this package."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "cloaking":
        frame = frame.f_back
    inspected = sys.flags.interactive or "PYTHONINSPECT" in os.environ
    main = threading.current_thread() is threading.main_thread()
    return main and not inspected and frame is not None and frame.f_back is None


def _told(error: Exception) -> tuple[tuple[str, ...], int]:
    """Return the lines that tell of an error, none for a bug, and the exit code."""
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
    return tuple(told for pattern, told in _LACKING if pattern.search(str(error)))[:1], BUG


def _spark_ended() -> bool:
    """Tell whether the Spark that this process started is gone."""
    process = getattr(gateway(), "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.1)  # what the connection lost a moment ago may still be ending
    return process.poll() is not None


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` where SIGTERM or SIGINT comes within the block, once: what is cleaned up then is not cut off.

    Signals that the process was started to ignore stay so; outside the main thread, where none arrive, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for one in before:
            signal.signal(one, signal.SIG_IGN)  # timeout(1), for one, sends its signal twice
        _leave_connection()
        raise Stopped(number)

    before = {one: handler for one in SIGNALS if (handler := signal.getsignal(one)) != signal.SIG_IGN}
    try:
        for one in before:
            signal.signal(one, stop)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)  # None where something else than Python had set it


@contextlib.contextmanager
def _py4j_silenced() -> Iterator[None]:
    """Keep out of the log what comes as an exception all the same: py4j's tracebacks, some on the root's logger."""
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


def _leave_connection() -> None:
    """Let this thread speak to Spark on a new connection.

    On the old one the answer to what is cut off is yet to come, and py4j would take it for that to the next question.
    """
    client: Any = getattr(gateway(), "_gateway_client", None)
    if hasattr(client, "thread_connection"):
        client.thread_connection.connection = None
