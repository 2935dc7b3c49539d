"""Read tables by their references, from catalogs, files and databases."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from cloaking.addresses import published
from cloaking.columns import Side, column
from cloaking.errors import InputError
from cloaking.names import alike
from cloaking.spark_errors import reading
from cloaking.tables import csv, database, parquet
from cloaking.tables.reference import Connection, Ref

POSITION = "id"  # the key that reading by position makes: the row number from 0

_PATTERN = re.compile(r"[*?\[\]{}]")
_METADATA = "_metadata"  # Spark's hidden column with a row's file and position
_FOLDER = re.compile(r"(?:^|(?<=/))([^/=]+)=")


def read_table(
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
        ref: the reference; in CSV files, numeric columns become double and all others stay text.
        role: the table's role in messages, for example "originals".
        where: an SQL condition for the rows to keep.
        text: columns that stay text in CSV files (keys and groups).
        by_position: number the rows of a single Parquet or CSV file from 0, in a column `id`.
        connections: the connections to databases' tables, by NAME.

    Raises:
        InputError: the table cannot be read; the message says what was found and how to fix it.
    """
    ref = Ref(ref)
    label = ref.label(role)
    with reading(label, everything=True):
        if ref.path is None:
            table = spark.table(ref)
        elif ref.kind == "parquet":
            _check_pattern(ref.path, label)
            table = parquet.read(spark, ref.path, label)
        elif ref.kind == "csv":
            _check_pattern(ref.path, label)
            table = csv.read(spark, ref.path, label, text, whole_files=by_position)
        elif ref.kind == "jdbc":
            if ref.path not in (connections or {}):
                raise InputError(
                    f"{label}: there is no block [{published(ref).replace(':', '.', 1)}]; name one of a --config file"
                )
            table = database.read(spark, (connections or {})[ref.path], label)
        else:
            table = spark.read.format(str(ref.kind)).load(ref.path)
        _ = table.schema  # Spark Connect reports errors only here
        if by_position:
            table = _numbered(table, ref.kind or "a table", label)
        if where is None:
            return table
    with reading(f'{label}: the condition "{where}"', everything=True):
        kept = table.where(where)
        _ = kept.schema
        return kept


def partition_columns(spark: SparkSession, ref: str, table: DataFrame) -> tuple[str, ...]:
    """Return the partition columns, which come from a catalog's table or from folders NAME=VALUE.

    Folders that are part of the reference itself give no columns.
    """
    ref = Ref(ref)
    if ref.path is None:
        return tuple(one.name for one in spark.catalog.listColumns(ref) if one.isPartition)
    named = set(_FOLDER.findall(ref.path))
    folders = {unquote(file).rpartition("/")[0] for file in table.inputFiles()}
    return tuple(sorted({name for folder in folders for name in _FOLDER.findall(folder)} - named))


def match_key_types(left: Side, right: Side) -> tuple[Side, Side]:
    """Cast the key of a CSV table to the type of the other table's key, column by column.

    A column is cast if all its values are in the other type's canonical form; otherwise both columns become text.
    If both tables are CSV, both keys are text already; if neither is, nothing changes.
    """
    if left.is_csv == right.is_csv:
        return left, right
    if left.is_csv:
        right, left = match_key_types(right, left)
        return left, right
    typed_table, text_table = left.table, right.table
    for typed, plain in zip(left.key, right.key, strict=True):
        if typed not in typed_table.columns or plain not in text_table.columns:
            continue
        kind = typed_table.schema[typed].dataType
        if isinstance(kind, StringType):
            continue
        cast = csv.take_type(text_table, plain, kind)
        if cast is not None:
            text_table = cast
        else:
            typed_table = typed_table.withColumn(typed, column(typed).cast("string"))
    return replace(left, table=typed_table), replace(right, table=text_table)


def _check_pattern(path: str, label: str) -> None:
    """Refuse an existing file whose name Spark would read as a glob pattern."""
    if _PATTERN.search(path) and "://" not in path and Path(path.removeprefix("file:")).exists():
        raise InputError(f"{label}: Spark reads * ? [ ] {{ }} in a path as a pattern of other names; rename the file")


def _numbered(table: DataFrame, kind: str, label: str) -> DataFrame:
    """Number the rows of a single file from 0, in the file's order."""
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
    # An unsplit CSV file is one partition, in which the monotonic id is the row number.
    row = F.col(f"{_METADATA}.row_index") if kind == "parquet" else F.monotonically_increasing_id()
    rest = [column(name) for name in table.columns if name.casefold() != POSITION]
    return table.select(row.alias(POSITION), *rest)
