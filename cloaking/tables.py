"""Table references <-> DataFrames: the only file that knows catalogs, formats and paths of tables."""

import contextlib
import logging
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from cloaking import csv_tables
from cloaking.errors import InputError, OutputError
from cloaking.names import column, quoted

log = logging.getLogger(__name__)

POSITION = "id"  # the key that reading by position makes: the row number from 0

_FORMAT_AND_PATH = re.compile(r"([a-z][a-z0-9_]*):(.+)", re.DOTALL)
# Spark's error classes that speak of a user's table or condition, met only once the rows are read.
_READING = re.compile(r"FAILED_READ_FILE|CANNOT_|CAST_|DIVIDE_BY_ZERO|PARQUET|MALFORMED|INVALID_|_LEGACY_ERROR_TEMP_2")

_STORES = ("java.io.", "java.nio.", "org.apache.hadoop.")  # where the errors of stores come from


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
) -> DataFrame:
    """Return the table that `ref` names: `catalog.schema.table` or `format:path`.

    Args:
        spark: the session to read with.
        ref: the reference; of CSV files, columns of numbers become double and all others stay text.
        role: what messages call the table, such as "originals".
        where: SQL condition of the rows to keep.
        text: columns that stay text in CSV files (keys and groups).
        by_position: number the rows of a single Parquet or CSV file from 0, in a column `id`.

    Raises:
        InputError: the table cannot be read, with what was found and the fix.
    """
    label = f"{role} '{ref}'"
    match = _FORMAT_AND_PATH.fullmatch(ref)
    with reading(label, everything=True):
        if match is None:
            table = spark.table(ref)
        elif match[1] == "csv":
            table = csv_tables.read(spark, match[2], label, text, whole_files=by_position)
        else:
            table = spark.read.format(match[1]).load(match[2])
        if by_position:
            table = _numbered(table, match[1] if match else "a table", label)
        if where is None:
            return table
    with reading(f'{label}: the condition "{where}"', everything=True):
        return table.where(where)


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


def check_new(spark: SparkSession, ref: str, overwrite: bool, inputs: Collection[str] = ()) -> None:
    """Refuse to write over a table that exists, unless that is wanted, and over an input in any case.

    Raises:
        OutputError: the table exists and `overwrite` is not set, it is one of the inputs, or its name makes no table.
    """
    if _same_place(spark, ref) in {_same_place(spark, other) for other in inputs}:
        raise OutputError(f"counts '{ref}': is one of the tables to measure; name another")
    match = _FORMAT_AND_PATH.fullmatch(ref)
    if match is None:
        with _writing(f"counts '{ref}'"):
            exists = spark.catalog.tableExists(ref)
    else:
        local = _local(spark, match[2])
        exists = local is not None and local.exists()  # in other stores Spark refuses, before it computes
    if exists and not overwrite:
        raise OutputError(f"counts '{ref}': exists already; give --overwrite to replace it")


def write(table: DataFrame, ref: str, overwrite: bool) -> DataFrame:
    """Write a table whole and return it as read back.

    On a local disk it is written under a temporary name and moved; elsewhere Spark's own commit makes it whole.

    Raises:
        OutputError: it exists and `overwrite` is not set, or the store refuses it.
    """
    spark = table.sparkSession
    check_new(spark, ref, overwrite)
    mode = "overwrite" if overwrite else "errorifexists"
    match = _FORMAT_AND_PATH.fullmatch(ref)
    with _writing(f"counts '{ref}'"):
        if match is None:
            table.write.mode(mode).saveAsTable(ref)
            return spark.table(ref)
        kind, path = match.groups()
        local = _local(spark, path)
        with _moved_to(local) if local is not None else contextlib.nullcontext(path) as target:
            if kind == "csv":
                csv_tables.write(table, str(target), mode)
            else:
                table.write.format(kind).mode(mode).save(str(target))
        if kind == "csv":
            return csv_tables.read_back(spark, path, table.schema)
        return spark.read.format(kind).schema(table.schema).load(path)


def read_existing(spark: SparkSession, ref: str, role: str, schema: StructType) -> DataFrame | None:
    """Return the table of a known schema that `ref` names, None where there is none yet.

    Raises:
        InputError: there is one, and it cannot be read.
    """
    match = _FORMAT_AND_PATH.fullmatch(ref)
    with reading(f"{role} '{ref}'", everything=True):
        if match is None:
            return spark.table(ref).select(*schema.names) if spark.catalog.tableExists(ref) else None
        try:
            return spark.read.format(match[1]).schema(schema).load(match[2])
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return None
            raise


def replace_partitions(table: DataFrame, ref: str, keys: Sequence[str]) -> None:
    """Write rows into a table partitioned by `keys`, in the place of the partitions of their keys and of no others.

    Raises:
        OutputError: the table cannot be written.
    """
    match = _FORMAT_AND_PATH.fullmatch(ref)
    spark = table.sparkSession
    writer = table.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    with _writing(f"history '{ref}'"):
        if match is not None:
            writer.format(match[1]).partitionBy(*keys).save(match[2])
        elif spark.catalog.tableExists(ref):
            names = spark.table(ref).columns
            table.select(*names).write.option("partitionOverwriteMode", "dynamic").insertInto(ref, overwrite=True)
        else:
            writer.partitionBy(*keys).saveAsTable(ref)


def remove(spark: SparkSession, ref: str) -> str:
    """Remove a table that this run wrote, since a later step failed; return a line that says what stands."""
    match = _FORMAT_AND_PATH.fullmatch(ref)
    local = _local(spark, match[2]) if match else None
    if match is None:
        spark.sql(f"DROP TABLE IF EXISTS {'.'.join(map(quoted, ref.split('.')))}")
    elif local is not None:
        shutil.rmtree(local)
    else:
        return f"counts '{ref}': stands, written by this run, which failed afterwards; remove it"
    return f"counts '{ref}': removed again, since a later step failed"


@contextlib.contextmanager
def reading(label: str, everything: bool = False) -> Iterator[None]:
    """Turn Spark's failure to read a table into one line: its error class, not its message, which may hold values.

    Later than the table's opening, only errors that speak of the table are turned (or `everything` is).
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        reason = _reason(error)
        if not (everything or isinstance(error, AnalysisException) or _READING.match(reason)):
            raise
        raise InputError(f"{label}: cannot be read ({reason}); check its name, format, content and rights") from error


@contextlib.contextmanager
def _writing(label: str) -> Iterator[None]:
    """Turn a store's refusal to be written into one line; an error of the computing itself goes on as it is."""
    try:
        yield
    except (PySparkException, Py4JJavaError, OSError) as error:
        kind = error.java_exception.getClass().getName() if isinstance(error, Py4JJavaError) else ""
        reason = _reason(error)
        if (
            isinstance(error, AnalysisException | OSError)
            or kind.startswith(_STORES)
            or reason.startswith("DATA_SOURCE")
        ):
            raise OutputError(f"{label}: cannot be written ({reason}); look at its name, format and rights") from error
        raise


def _numbered(table: DataFrame, kind: str, label: str) -> DataFrame:
    """Number the rows of one file from 0, in its order."""
    if kind not in ("parquet", "csv"):
        raise InputError(
            f"{label}: --by-position reads parquet and csv files, not {kind}; link the rows by a key (--id)"
        )
    files = len(table.inputFiles())
    if files != 1:
        raise InputError(
            f"{label}: --by-position needs one file, found {files}, whose order is not certain; "
            "write one file or link the rows by a key (--id)"
        )
    # A whole CSV file is one partition, in which the running id is the row's number.
    row = F.col("_metadata.row_index") if kind == "parquet" else F.monotonically_increasing_id()
    rest = [column(name) for name in table.columns if name.casefold() != POSITION]
    return table.select(row.alias(POSITION), *rest)


def _reason(error: Exception) -> str:
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


def _local(spark: SparkSession, path: str) -> Path | None:
    """Return the path on this machine's disk, None where only Spark knows the store."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    if "://" in path or not str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    return Path(path).absolute()


def _same_place(spark: SparkSession, ref: str) -> str:
    """Return a name that two references to one table share, as far as names tell."""
    match = _FORMAT_AND_PATH.fullmatch(ref)
    local = _local(spark, match[2]) if match else None
    return str(local.resolve()) if local is not None else (match[2].rstrip("/") if match else ref.lower())


@contextlib.contextmanager
def _moved_to(target: Path) -> Iterator[Path]:
    """Give a temporary path beside the target; move it there when all went well, else remove what is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    temporary.mkdir()  # tried here, where it fails with a word; Spark makes its own
    temporary.rmdir()
    try:
        yield temporary
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
