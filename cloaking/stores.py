"""DataFrames -> new tables by their references, each whole or not at all."""

import contextlib
import logging
import re
import shutil
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession

from cloaking import csv_tables, places
from cloaking.errors import OutputError
from cloaking.names import parts
from cloaking.places import catalog_name
from cloaking.tables import FORMAT_AND_PATH, reason

log = logging.getLogger(__name__)

_VIEWS = ("VIEW", "TEMPORARY")
_STORES = (
    "java.io.",
    "java.nio.",
    "org.apache.hadoop.",
    "org.apache.iceberg.",
    "io.delta.",
)  # where the errors of stores come from
_FULL = re.compile(r"Exception: (No space left on device|Disk quota exceeded)$", re.MULTILINE)


def check_new(spark: SparkSession, ref: str, role: str, overwrite: bool) -> None:
    """Refuse to write over a table that exists, unless that is wanted.

    Raises:
        OutputError: the table exists and `overwrite` is not set, or its name makes no table.
    """
    match = FORMAT_AND_PATH.fullmatch(ref)
    if match is None:
        name = catalog_name(ref, role)
        with writing(f"{role} '{ref}'"):
            exists = spark.catalog.tableExists(name)
            if exists and spark.catalog.getTable(name).tableType in _VIEWS:
                raise OutputError(f"{role} '{ref}': is a view; name a table")
    else:
        refuse(match[1], ("jdbc",), f"{role} '{ref}'")
        places.check_path(match[2], f"{role} '{ref}'")
        local = places.local(spark, match[2])
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
    mode = "overwrite" if overwrite else "error"  # the one name of it that Spark Connect knows
    match = FORMAT_AND_PATH.fullmatch(ref)
    with writing(f"{role} '{ref}'"):
        if match is None:
            name = catalog_name(ref, role)
            _save_as_table(table, name)
            return spark.table(name)
        kind, path = match.groups()
        local = places.local(spark, path)
        with _moved_to(local) if local is not None else contextlib.nullcontext(path) as target:
            if kind == "csv":
                csv_tables.write(table, str(target), mode)
            else:
                table.write.format(kind).mode(mode).save(str(target))
        if kind == "csv":
            return csv_tables.read_back(spark, path, table.schema)
        return spark.read.format(kind).schema(table.schema).load(path)


def remove(spark: SparkSession, ref: str, role: str) -> str:
    """Remove a table that this run wrote, since a later step failed; return a line that says what stands."""
    match = FORMAT_AND_PATH.fullmatch(ref)
    removed = f"{role} '{ref}': removed again, since a later step failed"
    try:
        if match is None:
            spark.sql(f"DROP TABLE IF EXISTS {catalog_name(ref, role)}")
            return removed
        local = places.local(spark, match[2])
        if local is not None:
            shutil.rmtree(local)
            return removed
    except (PySparkException, Py4JError, OSError):  # the catalog, or Spark itself, may be what failed
        pass
    return f"{role} '{ref}': stands, written by this run, which failed afterwards; remove it"


def _save_as_table(table: DataFrame, name: str) -> None:
    """Write a catalog's table under a temporary name and give it its own, in the place of an earlier one.

    Where the catalog renames nothing, the earlier table is overwritten by Spark's own means, from the temporary one.
    Stopped between dropping the one and renaming the other, the temporary table stays.
    """
    spark, temporary = table.sparkSession, f"{name[:-1]}_{uuid.uuid4().hex}`"
    own = parts(name)[-1]  # the new name within the schema: not all catalogs take a longer one
    try:
        table.write.saveAsTable(temporary)
        written = spark.table(temporary)
        try:
            spark.sql(f"DROP TABLE IF EXISTS {name}")
            spark.sql(f"ALTER TABLE {temporary} RENAME TO {own}")
        except (AnalysisException, UnsupportedOperationException, Py4JJavaError) as error:
            log.warning("the catalog does not rename to %s (%s): the table is written twice", name, reason(error))
            written.write.mode("overwrite").saveAsTable(name)
    finally:
        with contextlib.suppress(PySparkException, Py4JError, OSError):  # what failed before is what is told
            if spark.catalog.tableExists(name):
                spark.sql(f"DROP TABLE IF EXISTS {temporary}")


def refuse(kind: str, kinds: Collection[str], label: str) -> None:
    if kind in kinds:
        raise OutputError(f"{label}: {kind} cannot keep it; use parquet:, orc: or a table of a catalog")


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


@contextlib.contextmanager
def _moved_to(target: Path) -> Iterator[Path]:
    """Give a temporary path beside the target; move it there when all went well, else leave the target as it was."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    temporary.mkdir()  # tried here, where it fails with a word; Spark makes its own
    temporary.rmdir()
    earlier = temporary.with_name(f"{temporary.name}.earlier")
    try:
        yield temporary
        if target.exists():
            target.rename(earlier)  # removing it takes long; stopped between two renames it can still be found
        temporary.rename(target)
    finally:
        if earlier.exists() and not target.exists():
            earlier.rename(target)
        shutil.rmtree(earlier, ignore_errors=True) if earlier.is_dir() else earlier.unlink(missing_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
