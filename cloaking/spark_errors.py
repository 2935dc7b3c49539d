"""Translate Spark's errors about a user's table into one line each."""

import contextlib
import os
import re
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException

from cloaking.errors import InputError, OutputError

# Spark's error classes that speak of a user's table or condition, met only once the rows are read.
_CONTENT = re.compile(r"FAILED_READ_FILE|CANNOT_|CAST_|DIVIDE_BY_ZERO|PARQUET|MALFORMED|INVALID_|_LEGACY_ERROR_TEMP_2")
# What Spark's error classes mean to who gave the reference.
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
)  # where the errors of stores come from
_FULL = re.compile(r"Exception: (No space left on device|Disk quota exceeded)$", re.MULTILINE)


@contextlib.contextmanager
def reading(label: str, everything: bool = False) -> Iterator[None]:
    """Turn Spark's failure to read a table into one line: its error class, not its message, which may hold values.

    While a table is opened, `everything` that Spark says is about it. Later only errors of its content are; a query
    that Spark does not understand is then a mistake of this program, and goes on as it is.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = reason(error)
        if found.startswith("INVALID_CONF_VALUE"):  # a setting of the session, met first where a table is opened
            raise
        content = not isinstance(error, AnalysisException) and _CONTENT.match(found)
        if not (everything or content):
            raise
        twice = _TWICE.search(str(error))
        if twice:
            raise InputError(f"{label}: column '{twice[1]}' is there twice, but for case; rename one") from error
        said = f"{found}: {_MEANING[found]}" if found in _MEANING else found
        raise InputError(f"{label}: cannot be read ({said}); check its name, format, content and rights") from error


@contextlib.contextmanager
def writing(label: str) -> Iterator[None]:
    """Turn a store's refusal to be written into one line; an error of the computing itself goes on as it is."""
    try:
        yield
    except (PySparkException, Py4JJavaError, OSError) as error:
        kind = error.java_exception.getClass().getName() if isinstance(error, Py4JJavaError) else ""
        full = _FULL.search(str(error))  # what a task of Spark met stands in the text, under an error of Spark's own
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
    """Return what kind of error it is: Spark's error class, the system's word, or the type."""
    if isinstance(error, PySparkException | Py4JJavaError):
        classes = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))
        if classes:
            return classes[1]
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getSimpleName())
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__
