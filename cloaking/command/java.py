"""Start Spark's Java process with our log settings and encoding, and hide its start-up lines."""

import contextlib
import locale
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

from cloaking.errors import SettingsError

OLDEST = 17
LOG_SETTINGS = "log4j2.properties"  # in the package, so that it is in every wheel and zip
_LOG_VARIABLE = "LOG4J_CONFIGURATION_FILE"  # lowest priority for log4j: a Java property that names a file overrides it
# The settings that Java needs to start and to connect to a cluster. They are on its command line, which every user of
# the machine can read; all other settings, among them the stores' passwords, are set later with the session.
_FOR_THE_START = (
    *("spark.master", "spark.app.name", "spark.driver.", "spark.jars", "spark.files", "spark.archives"),
    *("spark.submit.", "spark.yarn.", "spark.kubernetes.", "spark.pyspark.", "spark.local."),
)
_OTHER_LOG_SETTINGS = "log4j2*.*"  # the files that log4j looks for on the class path
_CLASS_PATH = re.compile(r"class-?path|properties-file", re.IGNORECASE)
_UTF8_LOCALES = ("C.UTF-8", "C.utf8", "en_US.UTF-8")
_START_UP = re.compile(rb"Picked up |NOTE: Picked up |WARNING: ")  # Java's own lines; log lines begin with a time
# The frames of a Java stack trace; the cause is in the other lines.
_TRACE = re.compile(rb"\tat |\t\.\.\. \d+ more")
_PIECE = 65_536  # bytes per read: the capacity of a pipe


class Stderr:
    """Forward Java's stderr to that of this process, without Java's start-up lines.

    A thread reads from a pipe; Java writes to its other end, `sink`.
    """

    def __init__(self, target: int) -> None:
        self._source, self.sink = os.pipe()
        self._target = target
        self._starting, self._silent = True, False
        self._line, self._held = b"", b""
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="java-stderr", daemon=True)
        self._reader.start()

    def started(self) -> None:
        """Forward everything unchanged from now on."""
        with self._lock:
            self._starting = False
            self._write(self._line)

    def ended(self) -> None:
        """Write the lines held back: Java has exited, and they may say why."""
        self._reader.join(timeout=1)
        with self._lock:
            self._write(self._held + self._line)

    def silence(self) -> None:
        """Discard everything from now on."""
        with self._lock:
            self._silent = True

    def _read(self) -> None:
        while piece := os.read(self._source, _PIECE):
            with self._lock:
                self._write(self._without_start_up(piece) if self._starting else piece)
        os.close(self._source)

    def _without_start_up(self, piece: bytes) -> bytes:
        """Return the complete lines that are not start-up lines; hold back those and an incomplete last line."""
        whole, newline, self._line = (self._line + piece).rpartition(b"\n")
        lines = [line for line in (whole + newline).splitlines(keepends=True) if not _TRACE.match(line)]
        self._held += b"".join(line for line in lines if _START_UP.match(line))
        return b"".join(line for line in lines if not _START_UP.match(line))

    def _write(self, output: bytes) -> None:
        with contextlib.suppress(OSError):  # nobody reads stderr any more, but Java must not block
            while output and not self._silent:
                output = output[os.write(self._target, output) :]


def remote(settings: Mapping[str, str]) -> bool:
    """Return whether a session with these settings uses Spark Connect, whose Java runs elsewhere."""
    return "SPARK_REMOTE" in os.environ or "spark.remote" in settings


def started_here(settings: Mapping[str, str]) -> bool:
    """Return whether this process itself must start Java, since neither spark-submit nor Spark Connect does."""
    return not remote(settings) and "PYSPARK_GATEWAY_PORT" not in os.environ


def find() -> None:
    """Check for a usable Java before Spark does, whose own message is a page long.

    Raises:
        SettingsError: Java is missing, does not run, or is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    fix = f"install Java {OLDEST} or newer and set JAVA_HOME, or put java on the PATH"
    if java is None:
        raise SettingsError(f"Spark needs Java, and there is none; {fix}")
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        raise SettingsError(f"Spark needs Java, and {java} does not run; {fix}") from None
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if found and int(found[1]) < OLDEST:
        raise SettingsError(f"Spark needs Java {OLDEST} or newer, and {java} is {found[1]}; {fix}")


def start(settings: Mapping[str, str]) -> None:
    """Start Java for a session with these settings, unless this process has one already.

    Raises:
        PySparkRuntimeError: Java does not start; its output is on stderr.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    needed = [(key, value) for key, value in settings.items() if key.startswith(_FOR_THE_START)]
    conf = SparkConf(loadDefaults=False).setAll(needed)
    with _environment(settings), _stderr() as sink:
        gateway = launch_gateway(conf, {"stderr": sink})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


@contextlib.contextmanager
def _stderr() -> Iterator[int]:
    """Yield a file descriptor for Java's stderr; if the block fails, Java's start-up lines are written too."""
    if sys.__stderr__ is None:
        yield subprocess.DEVNULL
        return
    stderr = Stderr(sys.__stderr__.fileno())
    try:
        yield stderr.sink
    except Exception:
        os.close(stderr.sink)
        stderr.ended()
        raise
    os.close(stderr.sink)
    stderr.started()


@contextlib.contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables within the block that give Java our log settings and this process's encoding."""
    added: dict[str, str] = {}
    with contextlib.ExitStack() as files:
        if not _has_other_log_settings(settings):
            path = files.enter_context(resources.as_file(resources.files("cloaking.command") / LOG_SETTINGS))
            added[_LOG_VARIABLE] = path.absolute().as_uri()
        if sys.getfilesystemencoding() == "utf-8" and locale.getencoding().lower() not in ("utf-8", "utf8"):
            usable = [name for name in _UTF8_LOCALES if _has_locale(name)]
            added |= {"LC_ALL": usable[0]} if usable else {}
        before = {name: os.environ.get(name) for name in added}
        os.environ.update(added)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _has_other_log_settings(settings: Mapping[str, str]) -> bool:
    """Return whether the user may have log settings other than a Java property, which has priority in any case."""
    import pyspark

    if _LOG_VARIABLE in os.environ or _CLASS_PATH.search(os.environ.get("PYSPARK_SUBMIT_ARGS", "")):
        return True
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    folders = [os.environ.get("SPARK_CONF_DIR") or Path(home, "conf")]
    folders += [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]
    folders += [entry for entry in settings.get("spark.driver.extraClassPath", "").split(os.pathsep) if entry]
    return any(next(Path(folder).glob(_OTHER_LOG_SETTINGS), None) is not None for folder in folders)


def _has_locale(name: str) -> bool:
    """Return whether the system has a locale of this name."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return False
    locale.setlocale(locale.LC_CTYPE, before)
    return True
