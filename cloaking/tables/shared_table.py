"""Read a table that several runs share, and replace the rows of one key, also while other runs write theirs."""

import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from cloaking.columns import column
from cloaking.errors import InputError, OutputError
from cloaking.names import alike, parts, quoted
from cloaking.spark_errors import reading, writing
from cloaking.tables.overlap import check_path, local
from cloaking.tables.reference import FOLDER_SIGN, Ref

_NO_TABLE = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")  # no folder, or an empty one
_IN_FOLDERS = ("parquet", "orc")  # each key's rows are in a folder, which is overwritten separately
# These replace only the rows that meet a condition. Other formats accept it, ignore it and empty the table.
_BY_CONDITION = ("delta", "iceberg")
_SERDES = {"ParquetHiveSerDe": "parquet", "OrcSerde": "orc"}  # the formats of Hive's tables, by their SerDe
_NO_ESCAPES = "spark.sql.parser.escapedStringLiterals"
_PLAIN = re.compile(r"[A-Za-z0-9_ .-]")  # needs no escape in an SQL string; $ does, as it begins a variable


def read(spark: SparkSession, ref: str, role: str, schema: StructType, keys: tuple[str, ...]) -> DataFrame | None:
    """Return the table that `ref` names, with this schema; None if it does not exist yet.

    Raises:
        InputError: the table cannot be read, or lacks columns of the schema.
        OutputError: the table is of a kind in which `replace` cannot replace rows.
    """
    ref = Ref(ref)
    label, kind = ref.label(role), str(ref.kind)
    if ref.path is not None:
        _check(kind, ref.path, label)
        found = _at_path(spark, kind, ref.path, label)
    else:
        name = ref.name(role)
        with reading(label, everything=True):
            found = spark.table(name) if spark.catalog.tableExists(name) else None
    if found is None:
        return None
    missing = [name for name in schema.names if not alike(name, found.columns)]
    if missing:
        raise InputError(f"{label}: is another table, without the columns {', '.join(missing)}; name a new one")
    if ref.path is None:
        with reading(label, everything=True):
            _format(spark, name, label, keys)
    else:
        if not _in_folders(found, keys):
            raise OutputError(_not_partitioned(label, keys))
        # With the schema, since Spark would infer a number from a partition value like 007.
        found = spark.read.format(kind).schema(schema).load(ref.path)
    return found.select(*(column(one.name).cast(one.dataType).alias(one.name) for one in schema))


def replace(row: DataFrame, ref: str, role: str, key: Mapping[str, Any]) -> None:
    """Replace the rows of a key by one row; it is added if there are none, and the table is created if needed.

    In Parquet and ORC, at a path or in a catalog, each key has its own folder, which is overwritten directly: Spark's
    INSERT OVERWRITE of a partition loses rows if two runs write at once. Delta and Iceberg overwrite by a condition.

    Args:
        row: one row, with the key among its columns.
        ref: the table's reference.
        role: the table's role in messages.
        key: the columns of the key and the row's values in them.

    Raises:
        OutputError: the table cannot be written, or not without changing other rows.
    """
    ref = Ref(ref)
    label = ref.label(role)
    with writing(label):
        if ref.path is not None:
            _check(str(ref.kind), ref.path, label)
            folders = (f"{name}={FOLDER_SIGN.sub(_escaped, str(value))}" for name, value in key.items())
            _overwrite(row.drop(*key), str(ref.kind), "/".join((ref.path.rstrip("/"), *folders)))
            return
        spark, name = row.sparkSession, ref.name(role)
        if not spark.catalog.tableExists(name):
            _create(spark, name, row.schema, tuple(key))
        kind = _format(spark, name, label, tuple(key))
        filled = row.select(*(_filled(one, row.columns) for one in spark.table(name).schema))
        if kind in _BY_CONDITION:
            filled.writeTo(name).overwrite(_equal({alike(one, filled.columns)[0]: value for one, value in key.items()}))
        else:
            rest = filled.drop(*(alike(one, filled.columns)[0] for one in key))
            _overwrite(rest, kind, _partition(spark, name, key, label))
            spark.catalog.refreshTable(name)


def _check(kind: str, path: str, label: str) -> None:
    if kind not in _IN_FOLDERS:
        raise OutputError(f"{label}: {kind} cannot keep it; use parquet:, orc: or a table of a catalog")
    check_path(path, label)


def _at_path(spark: SparkSession, kind: str, path: str, label: str) -> DataFrame | None:
    with reading(label, everything=True):
        try:
            # Two paths, because Spark logs a long warning if a single one is missing.
            _ = spark.read.format("text").load([path, path]).schema
            found = spark.read.format(kind).load(path)
            _ = found.schema  # Spark Connect reports errors only here
            return found
        except AnalysisException as error:
            if not any(known in str(error) for known in _NO_TABLE):
                raise
            return None


def _in_folders(table: DataFrame, keys: tuple[str, ...]) -> bool:
    """Return whether all files are in folders KEY=VALUE of these keys, in this order."""
    above = (PurePosixPath(file).parts[-len(keys) - 1 : -1] for file in table.inputFiles())
    return all([folder.partition("=")[0] for folder in folders] == [*keys] for folders in above)


def _format(spark: SparkSession, name: str, label: str, keys: tuple[str, ...]) -> str:
    """Return the format of a catalog's table, after a check that the rows of one key can be replaced in it.

    Raises:
        OutputError: replacing the rows of a key might change others.
    """
    by = [one.name.lower() for one in spark.catalog.listColumns(name) if one.isPartition]
    if sorted(by) != sorted(keys):
        raise OutputError(_not_partitioned(label, keys))
    details = _details(spark, name)
    found = details.get("Provider", "").lower()
    found = _SERDES.get(details.get("Serde Library", "").rpartition(".")[2], found) if found == "hive" else found
    plain = (
        details.get("Catalog") == "spark_catalog"
        and details.get("Partition Provider") == "Catalog"
        and "Num Buckets" not in details
        and "transactional=true" not in details.get("Table Properties", "").lower()
    )
    if found in _BY_CONDITION or (found in _IN_FOLDERS and plain):
        return found
    raise OutputError(
        f"{label}: is a table that is not known to replace the rows of a {' and a '.join(keys)} and no others (format: "
        f"{found or 'unknown'}); use Delta, Iceberg, or Parquet or ORC in Spark's own catalog, without buckets or "
        "transactions and with its partitions in the catalog"
    )


def _details(spark: SparkSession, described: str) -> dict[str, str]:
    """Return the catalog's details of a table or a partition, by the names that the catalog gives them."""
    found: dict[str, str] = {}
    reached = False
    for name, value, *_ in spark.sql(f"DESCRIBE TABLE EXTENDED {described}").collect():
        if reached:
            found.setdefault(name, value)  # a partition's own details come before its table's
        reached = reached or name.startswith("# Detailed ")
    return found


def _not_partitioned(label: str, keys: tuple[str, ...]) -> str:
    by = " and ".join(keys)
    return f"{label}: is not partitioned by {by}, so that rows of others would be lost; name a new table"


def _create(spark: SparkSession, name: str, schema: StructType, keys: tuple[str, ...]) -> None:
    """Create the empty table, unless another run has just created it.

    It is not created by writing rows: Spark would then empty the folder of a table that another run has just created.
    """
    columns = ", ".join(f"{quoted(one.name)} {one.dataType.simpleString()}" for one in schema)
    by = ", ".join(map(quoted, keys))
    try:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({columns}){_using(spark, name)} PARTITIONED BY ({by})")
    except AnalysisException:
        if not spark.catalog.tableExists(name):
            raise


def _using(spark: SparkSession, name: str) -> str:
    """Return the USING clause for Spark's own catalog, which would otherwise create a Hive table; empty for others."""
    first, *rest = (part.strip("`") for part in parts(name))
    named = len(rest) > 1 or (rest and spark.conf.get(f"spark.sql.catalog.{first}", None) is not None)
    if (first if named else spark.catalog.currentCatalog()) != "spark_catalog":
        return ""
    usual = str(spark.conf.get("spark.sql.sources.default"))
    return f" USING {usual if usual in (*_IN_FOLDERS, *_BY_CONDITION) else _IN_FOLDERS[0]}"


def _filled(field: StructField, columns: list[str]) -> Column:
    """Return the row's column for a field of the table, or null if the row has no such column."""
    value = column(field.name) if alike(field.name, columns) else F.lit(None)
    return value.cast(field.dataType).alias(field.name)


def _partition(spark: SparkSession, name: str, key: Mapping[str, Any], label: str) -> str:
    """Return a key's folder in a table of Spark's own catalog; its partition is created if needed."""
    texts = {one: "".join(map(_literal, str(value))) for one, value in key.items()}
    if any("\\" in text for text in texts.values()) and spark.conf.get(_NO_ESCAPES) == "true":
        raise OutputError(f"{label}: a name with special characters needs {_NO_ESCAPES}=false")
    partition = "PARTITION (" + ", ".join(f"{quoted(one)} = '{text}'" for one, text in texts.items()) + ")"
    if spark.sql(f"SHOW PARTITIONS {name} {partition}").first() is None:  # an in-memory catalog moves an existing one
        spark.sql(f"ALTER TABLE {name} ADD IF NOT EXISTS {partition}")
    return _details(spark, f"{name} {partition}")["Location"]


def _literal(character: str) -> str:
    """Return a character as SQL reads it in a string: quotes, $ and line ends as \\u escapes."""
    if _PLAIN.fullmatch(character):
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _escaped(sign: re.Match[str]) -> str:
    """Return a character as Spark escapes it in the name of a partition's folder."""
    return f"%{ord(sign[0]):02X}"


def _overwrite(row: DataFrame, kind: str, folder: str) -> None:
    """Replace all that a folder holds by one row; on a local disk, only once the new row is completely written."""
    place, row = local(row.sparkSession, folder), row.coalesce(1)  # to one file
    if place is None:
        row.write.format(kind).mode("overwrite").save(folder)
        return
    new, earlier = (place.with_name(f".{uuid.uuid4().hex}") for _ in range(2))
    try:
        row.write.format(kind).save(f"file:{new}")
        if place.exists():
            place.rename(earlier)
        new.rename(place)
    finally:
        if earlier.exists() and not place.exists():
            earlier.rename(place)
        for one in (new, earlier):
            shutil.rmtree(one, ignore_errors=True)


def _equal(key: Mapping[str, Any]) -> Column:
    first, *rest = (column(name) == F.lit(value) for name, value in key.items())
    for one in rest:
        first &= one
    return first
