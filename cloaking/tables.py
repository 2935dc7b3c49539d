"""Table references -> DataFrames, from catalogs, files and databases; `stores` writes what `tables` reads."""

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from cloaking import csv_tables, jdbc, parquet_tables
from cloaking.addresses import published
from cloaking.config_file import Connection
from cloaking.errors import InputError
from cloaking.names import alike, column

POSITION = "id"  # the key that reading by position makes: the row number from 0

FORMAT_AND_PATH = re.compile(r"([a-z][a-z0-9_]*):(.+)", re.DOTALL)
# Spark's error classes that speak of a user's table or condition, met only once the rows are read.
_CONTENT = re.compile(r"FAILED_READ_FILE|CANNOT_|CAST_|DIVIDE_BY_ZERO|PARQUET|MALFORMED|INVALID_|_LEGACY_ERROR_TEMP_2")
_PATTERN = re.compile(r"[*?\[\]{}]")
# What Spark's error classes mean to who gave the reference.
_MEANING = {
    "PATH_NOT_FOUND": "there is no such file or folder",
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table",
    "UNABLE_TO_INFER_SCHEMA": "there are no files of this format",
    "DATA_SOURCE_NOT_FOUND": "there is no such format",
    "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER": "a file is not of this format, or damaged",
    "FAILED_READ_FILE.FILE_NOT_EXIST": "a file went away meanwhile",
}
_METADATA = "_metadata"  # where Spark keeps what it knows of a file's row
_FOLDER = re.compile(r"(?:^|(?<=/))([^/=]+)=")
_TWICE = re.compile(r"\[COLUMN_ALREADY_EXISTS\][^`]*`(.+?)`")


def is_csv(ref: str) -> bool:
    """Tell whether the reference names CSV files, which carry no types."""
    return ref.startswith("csv:")


def read(
    spark: SparkSession,
    ref: str,
    role: str,
    *,
    where: str | None = None,
    text: Collection[str] = (),
    by_position: bool = False,
    connections: Mapping[str, Connection] | None = None,
) -> DataFrame:
    """Return the table that `ref` names: `catalog.schema.table`, `format:path` or, of a database, `jdbc:NAME`.

    Args:
        spark: the session to read with.
        ref: the reference; of CSV files, columns of numbers become double and all others stay text.
        role: what messages call the table, such as "originals".
        where: SQL condition of the rows to keep.
        text: columns that stay text in CSV files (keys and groups).
        by_position: number the rows of a single Parquet or CSV file from 0, in a column `id`.
        connections: the databases' tables by their NAME.

    Raises:
        InputError: the table cannot be read, with what was found and the fix.
    """
    label = f"{role} '{published(ref)}'"
    match = FORMAT_AND_PATH.fullmatch(ref)
    with reading(label, everything=True):
        if match is None:
            table = spark.table(ref)
        elif match[1] == "parquet":
            _check_pattern(match[2], label)
            table = parquet_tables.read(spark, match[2], label)
        elif match[1] == "csv":
            _check_pattern(match[2], label)
            table = csv_tables.read(spark, match[2], label, text, whole_files=by_position)
        elif match[1] == "jdbc":
            if match[2] not in (connections or {}):
                raise InputError(
                    f"{label}: there is no block [{published(ref).replace(':', '.', 1)}]; name one of a --config file"
                )
            table = jdbc.read(spark, (connections or {})[match[2]], label)
        else:
            table = spark.read.format(match[1]).load(match[2])
        _ = table.schema  # Spark Connect reads no sooner
        if by_position:
            table = _numbered(table, match[1] if match else "a table", label)
        if where is None:
            return table
    with reading(f'{label}: the condition "{where}"', everything=True):
        kept = table.where(where)
        _ = kept.schema
        return kept


def partition_columns(spark: SparkSession, ref: str, table: DataFrame) -> tuple[str, ...]:
    """Return the columns that the table gets from its layout: partitions of a catalog's table, or folders NAME=VALUE.

    Folders that the reference itself names give no columns.
    """
    match = FORMAT_AND_PATH.fullmatch(ref)
    if match is None:
        return tuple(one.name for one in spark.catalog.listColumns(ref) if one.isPartition)
    named = set(_FOLDER.findall(match[2]))
    folders = {unquote(file).rpartition("/")[0] for file in table.inputFiles()}
    return tuple(sorted({name for folder in folders for name in _FOLDER.findall(folder)} - named))


def match_key_types(
    left: DataFrame,
    left_key: Sequence[str],
    left_csv: bool,
    right: DataFrame,
    right_key: Sequence[str],
    right_csv: bool,
) -> tuple[DataFrame, DataFrame]:
    """Give the key of CSV files the type of the other table's key, column by column.

    It takes the other side's type where every value of it is the canonical text of one; else both become text. Where
    both are CSV, both are text already; where neither is, nothing changes.
    """
    if left_csv == right_csv:
        return left, right
    if left_csv:
        right, left = match_key_types(right, right_key, right_csv, left, left_key, left_csv)
        return left, right
    for typed, plain in zip(left_key, right_key, strict=True):
        if typed not in left.columns or plain not in right.columns:
            continue
        kind = left.schema[typed].dataType
        if isinstance(kind, StringType):
            continue
        taken = csv_tables.take_type(right, plain, kind)
        if taken is not None:
            right = taken
        else:
            left = left.withColumn(typed, column(typed).cast("string"))
    return left, right


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


def _check_pattern(path: str, label: str) -> None:
    """Refuse a file that is there by a name which Spark would take for a pattern of other names."""
    if _PATTERN.search(path) and "://" not in path and Path(path.removeprefix("file:")).exists():
        raise InputError(f"{label}: Spark reads * ? [ ] {{ }} in a path as a pattern of other names; rename the file")


def _numbered(table: DataFrame, kind: str, label: str) -> DataFrame:
    """Number the rows of one file from 0, in its order."""
    if kind not in ("parquet", "csv"):
        raise InputError(
            f"{label}: --by-position reads parquet and csv files, not {kind}; link the rows by a key (--id)"
        )
    if kind == "parquet" and alike(_METADATA, table.columns):
        raise InputError(f"{label}: column '{_METADATA}' hides the numbers of the rows; rename it")
    files = len(table.inputFiles())
    if files != 1:
        raise InputError(
            f"{label}: --by-position needs one file, found {files}, whose order is not certain; "
            "write one file or link the rows by a key (--id)"
        )
    # A whole CSV file is one partition, in which the running id is the row's number.
    row = F.col(f"{_METADATA}.row_index") if kind == "parquet" else F.monotonically_increasing_id()
    rest = [column(name) for name in table.columns if name.casefold() != POSITION]
    return table.select(row.alias(POSITION), *rest)


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
