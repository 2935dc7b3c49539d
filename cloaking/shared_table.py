"""A table that several runs share, also at once: its rows are read, and one is put in the place of those of its key."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cloaking.errors import InputError, OutputError
from cloaking.names import alike, column, parts, quoted
from cloaking.places import catalog_name, check_path
from cloaking.stores import refuse, writing
from cloaking.tables import FORMAT_AND_PATH, reading

_NO_TABLE = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")  # no folder, or an empty one
_NO_PLAN = ("AnalysisException", "Error occurred during query planning")  # what Spark 3 and 4 explain instead of a plan
# What insertInto takes from the session alone: that it replaces the partitions of its rows and leaves all others.
_ONE_BY_ONE = {
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "hive.exec.dynamic.partition.mode": "nonstrict",  # for tables in a format of Hive's own
}
_SETTINGS = threading.Lock()  # a session's settings are one for all of its threads


def read(spark: SparkSession, ref: str, role: str, schema: StructType, keys: tuple[str, ...]) -> DataFrame | None:
    """Return the table of a known schema that `ref` names, None where there is none yet.

    Raises:
        InputError: there is one, and it cannot be read or is another.
        OutputError: there is one, and `replace` could not put a row in the place of another in it.
    """
    label = f"{role} '{ref}'"
    match = FORMAT_AND_PATH.fullmatch(ref)
    if match is not None:
        refuse(match[1], ("jdbc", "csv", "text"), label)
        check_path(match[2], label)
        found = _at_path(spark, match[1], match[2], label)
        parted = found is not None and _in_folders(found, keys)
    else:
        name = catalog_name(ref, role)
        with reading(label, everything=True):
            found = spark.table(name) if spark.catalog.tableExists(name) else None
        parted = found is not None and _partitioned(spark, name, keys)
    if found is None:
        return None
    missing = [name for name in schema.names if not alike(name, found.columns)]
    if missing:
        raise InputError(f"{label}: is another table, without the columns {', '.join(missing)}; name a new one")
    if not parted:
        raise OutputError(_not_partitioned(label, keys))
    if match is not None:  # by the schema, since partitions would give a name like 007 another type
        found = spark.read.format(match[1]).schema(schema).load(match[2])
    return found.select(*schema.names)


def replace(row: DataFrame, ref: str, role: str, key: Mapping[str, Any]) -> None:
    """Put a row in the place of those of its key; without any yet, or without a table, it is added.

    A folder is partitioned by the key, and Spark replaces its partitions one by one. So it does in a catalog, unless
    the table's format replaces rows by a condition, as Iceberg and Delta do.

    Args:
        row: one row, with the key among its columns.
        ref: the table.
        role: what messages call it.
        key: the columns of the key and the row's values in them.

    Raises:
        OutputError: the table cannot be written, or not without touching other rows.
    """
    label = f"{role} '{ref}'"
    match = FORMAT_AND_PATH.fullmatch(ref)
    with writing(label):
        if match is not None:
            writer = row.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
            writer.format(match[1]).partitionBy(*key).save(match[2])
            return
        spark, name = row.sparkSession, catalog_name(ref, role)
        if not spark.catalog.tableExists(name):
            _create(spark, name, row.schema, tuple(key))
        there = spark.table(name).schema
        kept = [column(one.name) if alike(one.name, row.columns) else F.lit(None).cast(one.dataType) for one in there]
        filled = row.select(*(one.alias(field.name) for one, field in zip(kept, there, strict=True)))
        if not _partitioned(spark, name, tuple(key)):
            raise OutputError(_not_partitioned(label, tuple(key)))
        if _replaces_by_condition(spark, name, tuple(key)):
            filled.writeTo(name).overwrite(_equal({alike(one, filled.columns)[0]: value for one, value in key.items()}))
        else:
            with _one_by_one(spark):
                filled.write.insertInto(name, overwrite=True)


def _at_path(spark: SparkSession, kind: str, path: str, label: str) -> DataFrame | None:
    with reading(label, everything=True):
        try:
            found = spark.read.format(kind).load(path)
            _ = found.schema  # Spark Connect reads no sooner
            return found
        except AnalysisException as error:
            if not any(known in str(error) for known in _NO_TABLE):
                raise
            return None


def _in_folders(table: DataFrame, keys: tuple[str, ...]) -> bool:
    """Tell whether all files lie in folders KEY=VALUE of these keys, in this order."""
    above = (PurePosixPath(file).parts[-len(keys) - 1 : -1] for file in table.inputFiles())
    return all([folder.partition("=")[0] for folder in folders] == [*keys] for folders in above)


def _partitioned(spark: SparkSession, name: str, keys: tuple[str, ...]) -> bool:
    """Tell whether the table has partitions by these keys and no others."""
    by = [one.name.lower() for one in spark.catalog.listColumns(name) if one.isPartition]
    return sorted(by) == sorted(keys)


def _replaces_by_condition(spark: SparkSession, name: str, keys: tuple[str, ...]) -> bool:
    """Tell whether the table's format can replace the rows of a condition; Spark is asked for the plan alone."""
    where = " AND ".join(f"{quoted(key)} IS NULL" for key in keys)
    plan = spark.sql(f"EXPLAIN INSERT INTO {name} REPLACE WHERE {where} SELECT * FROM {name} LIMIT 0").first()
    return plan is not None and not any(word in str(plan[0]) for word in _NO_PLAN)


def _not_partitioned(label: str, keys: tuple[str, ...]) -> str:
    by = " and ".join(keys)
    return f"{label}: is not partitioned by {by}, so that rows of others would be lost; name a new table"


def _create(spark: SparkSession, name: str, schema: StructType, keys: tuple[str, ...]) -> None:
    """Create the empty table, unless another run just did.

    Never by writing rows with it: Spark then empties the folder of a table that another run made in the meantime.
    """
    columns = ", ".join(f"{quoted(one.name)} {one.dataType.simpleString()}" for one in schema)
    by = ", ".join(map(quoted, keys))
    try:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({columns}){_using(spark, name)} PARTITIONED BY ({by})")
    except AnalysisException:
        if not spark.catalog.tableExists(name):
            raise


def _using(spark: SparkSession, name: str) -> str:
    """Return the format's clause for Spark's own catalog, which would make a table in a format of Hive's own."""
    first, *rest = (part.strip("`") for part in parts(name))
    named = len(rest) > 1 or (rest and spark.conf.get(f"spark.sql.catalog.{first}", None) is not None)
    catalog = first if named else spark.catalog.currentCatalog()
    return f" USING {spark.conf.get('spark.sql.sources.default')}" if catalog == "spark_catalog" else ""


@contextlib.contextmanager
def _one_by_one(spark: SparkSession) -> Iterator[None]:
    """Let insertInto replace the partitions of its rows alone, and give the session its settings back."""
    with _SETTINGS:
        before = {key: spark.conf.get(key, None) for key in _ONE_BY_ONE}
        try:
            for key, value in _ONE_BY_ONE.items():
                spark.conf.set(key, value)
            yield
        finally:
            for key, earlier in before.items():
                spark.conf.unset(key) if earlier is None else spark.conf.set(key, earlier)


def _equal(key: Mapping[str, Any]) -> Column:
    first, *rest = (column(name) == F.lit(value) for name, value in key.items())
    for one in rest:
        first &= one
    return first
