"""DataFrames -> tables by their references: new ones, whole or not at all, and rows in the place of others."""

import contextlib
import logging
import shutil
import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from cloaking import csv_tables
from cloaking.errors import OutputError
from cloaking.names import quoted
from cloaking.tables import FORMAT_AND_PATH, reading, reason

log = logging.getLogger(__name__)

_STORES = ("java.io.", "java.nio.", "org.apache.hadoop.")  # where the errors of stores come from


def check_new(spark: SparkSession, ref: str, role: str, overwrite: bool, inputs: Collection[str] = ()) -> None:
    """Refuse to write over a table that exists, unless that is wanted, and over an input in any case.

    Raises:
        OutputError: the table exists and `overwrite` is not set, it is one of the inputs, or its name makes no table.
    """
    if _same_place(spark, ref) in {_same_place(spark, other) for other in inputs}:
        raise OutputError(f"{role} '{ref}': is one of the tables to read; name another")
    match = FORMAT_AND_PATH.fullmatch(ref)
    if match is None:
        with _writing(f"{role} '{ref}'"):
            exists = spark.catalog.tableExists(ref)
    else:
        _refuse(match[1], ("jdbc",), f"{role} '{ref}'")
        local = _local(spark, match[2])
        exists = local is not None and local.exists()  # in other stores Spark refuses, before it computes
    if exists and not overwrite:
        raise OutputError(f"{role} '{ref}': exists already; give --overwrite to replace it")


def write(table: DataFrame, ref: str, role: str, overwrite: bool) -> DataFrame:
    """Write a table whole and return it as read back.

    In a catalog and on a local disk it is written under a temporary name and moved, so that an earlier table stands
    until then; in other stores Spark's own commit makes it whole.

    Raises:
        OutputError: it exists and `overwrite` is not set, or the store refuses it.
    """
    spark = table.sparkSession
    check_new(spark, ref, role, overwrite)
    mode = "overwrite" if overwrite else "errorifexists"
    match = FORMAT_AND_PATH.fullmatch(ref)
    with _writing(f"{role} '{ref}'"):
        if match is None:
            _save_as_table(table, ref)
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
    match = FORMAT_AND_PATH.fullmatch(ref)
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
    match = FORMAT_AND_PATH.fullmatch(ref)
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


def check_partitions(ref: str, role: str) -> None:
    """Refuse a format whose partitions `replace_partitions` cannot replace one by one, or that keeps no types.

    Raises:
        OutputError: it is one of those.
    """
    match = FORMAT_AND_PATH.fullmatch(ref)
    if match is not None:
        _refuse(match[1], ("jdbc", "csv", "text"), f"{role} '{ref}'")


def remove(spark: SparkSession, ref: str, role: str) -> str:
    """Remove a table that this run wrote, since a later step failed; return a line that says what stands."""
    match = FORMAT_AND_PATH.fullmatch(ref)
    local = _local(spark, match[2]) if match else None
    if match is None:
        spark.sql(f"DROP TABLE IF EXISTS {_in_sql(ref)}")
    elif local is not None:
        shutil.rmtree(local)
    else:
        return f"{role} '{ref}': stands, written by this run, which failed afterwards; remove it"
    return f"{role} '{ref}': removed again, since a later step failed"


def _save_as_table(table: DataFrame, ref: str) -> None:
    """Write a catalog's table under a temporary name and give it its own, in the place of an earlier one.

    Where the catalog renames nothing, the earlier table is overwritten by Spark's own means, from the temporary one.
    """
    spark, temporary = table.sparkSession, f"{ref}_{uuid.uuid4().hex}"
    try:
        table.write.saveAsTable(temporary)
        written = spark.table(temporary)
        try:
            spark.sql(f"DROP TABLE IF EXISTS {_in_sql(ref)}")
            spark.sql(f"ALTER TABLE {_in_sql(temporary)} RENAME TO {_in_sql(ref)}")
        except (AnalysisException, Py4JJavaError) as error:
            log.warning("the catalog does not rename '%s' (%s): the table is written twice", ref, reason(error))
            written.write.mode("overwrite").saveAsTable(ref)
    finally:
        with contextlib.suppress(PySparkException, Py4JJavaError):  # what failed before is what is told
            spark.sql(f"DROP TABLE IF EXISTS {_in_sql(temporary)}")


def _in_sql(ref: str) -> str:
    return ".".join(map(quoted, ref.split(".")))


def _refuse(kind: str, kinds: Collection[str], label: str) -> None:
    if kind in kinds:
        raise OutputError(f"{label}: {kind} cannot keep it; use parquet:, orc: or a table of a catalog")


@contextlib.contextmanager
def _writing(label: str) -> Iterator[None]:
    """Turn a store's refusal to be written into one line; an error of the computing itself goes on as it is."""
    try:
        yield
    except (PySparkException, Py4JJavaError, OSError) as error:
        kind = error.java_exception.getClass().getName() if isinstance(error, Py4JJavaError) else ""
        found = reason(error)
        if (
            isinstance(error, AnalysisException | OSError)
            or kind.startswith(_STORES)
            or found.startswith("DATA_SOURCE")
        ):
            raise OutputError(f"{label}: cannot be written ({found}); look at its name, format and rights") from error
        raise


def _local(spark: SparkSession, path: str) -> Path | None:
    """Return the path on this machine's disk, None where only Spark knows the store."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    if "://" in path or not str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    return Path(path).absolute()


def _same_place(spark: SparkSession, ref: str) -> str:
    """Return a name that two references to one table share, as far as names tell."""
    match = FORMAT_AND_PATH.fullmatch(ref)
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
        earlier = temporary.with_name(f"{temporary.name}.earlier")
        if target.exists():
            target.rename(earlier)  # removing it takes long; stopped between two renames it can still be found
        temporary.rename(target)
        shutil.rmtree(earlier, ignore_errors=True) if earlier.is_dir() else earlier.unlink(missing_ok=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
