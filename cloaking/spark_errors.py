"""Translate Spark's errors about a user's table into errors of one line."""

import contextlib
import os
import re
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException

from cloaking.errors import InputError, OutputError

# Spark's error classes for faults of a user's table or condition that appear only when rows are read.
_CONTENT = re.compile(r"FAILED_READ_FILE|CANNOT_|CAST_|DIVIDE_BY_ZERO|PARQUET|MALFORMED|INVALID_|_LEGACY_ERROR_TEMP_2")
# What Spark's error classes mean to the user who gave the reference.
_MEANING = {
    "PATH_NOT_FOUND": "there is no such file or folder",
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table",
    "UNABLE_TO_INFER_SCHEMA": "there are no files of this format",
    "DATA_SOURCE_NOT_FOUND": "there is no such format",
    "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER": "a file is not of this format, or damaged",
    "FAILED_READ_FILE.FILE_NOT_EXIST": "a file went away meanwhile",
}
_TWICE = re.compile(r"\[COLUMN_ALREADY_EXISTS\][^`]*`(.+?)`")
_STORES = (
    "java.io.",
    "java.nio.",
    "org.apache.hadoop.",
    "org.apache.iceberg.",
    "io.delta.",
)  # the packages of the stores' exceptions
_FULL = re.compile(r"Exception: (No space left on device|Disk quota exceeded)$", re.MULTILINE)


@contextlib.contextmanager
def reading(label: str, everything: bool = False) -> Iterator[None]:
    """Translate Spark's errors about a table into an InputError with the error class; the message may hold values.

    While a table is opened, `everything` is translated. After opening, translate only errors caused by the table's
    content; a query that Spark rejects is then a bug of this program, and its error is raised unchanged.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = reason(error)
        if found.startswith("INVALID_CONF_VALUE"):  # a wrong setting of the session, detected only now
            raise
        content = not isinstance(error, AnalysisException) and _CONTENT.match(found)
        if not (everything or content):
            raise
        twice = _TWICE.search(str(error))
        if twice:
            raise InputError(f"{label}: column '{twice[1]}' occurs twice if case is ignored; rename one") from error
        said = f"{found}: {_MEANING[found]}" if found in _MEANING else found
        raise InputError(f"{label}: cannot be read ({said}); check its name, format, content and rights") from error


@contextlib.contextmanager
def writing(label: str) -> Iterator[None]:
    """Translate a store's refusal to write into an OutputError; errors of the computation are raised unchanged."""
    try:
        yield
    except (PySparkException, Py4JJavaError, OSError) as error:
        kind = error.java_exception.getClass().getName() if isinstance(error, Py4JJavaError) else ""
        full = _FULL.search(str(error))  # a task's error is only in the text of Spark's
        found = full[1] if full else reason(error)
        if (
            isinstance(error, AnalysisException | UnsupportedOperationException | OSError)
            or full is not None
            or kind.startswith(_STORES)
            or found.startswith("DATA_SOURCE")
        ):
            raise OutputError(f"{label}: cannot be written ({found}); look at its name, format and rights") from error
        raise


def reason(error: Exception) -> str:
    """Return the kind of an error: Spark's error class, the system's message, or the type."""
    if isinstance(error, PySparkException | Py4JJavaError):
        classes = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))
        if classes:
            return classes[1]
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getSimpleName())
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__
