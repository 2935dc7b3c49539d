"""DataFrames -> new tables by their references, each whole or not at all."""

import contextlib
import logging
import re
import shutil
import uuid
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession

from cloaking import csv_tables
from cloaking.errors import OutputError
from cloaking.names import parts, quoted
from cloaking.tables import FORMAT_AND_PATH, reason

log = logging.getLogger(__name__)

_STORES = ("java.io.", "java.nio.", "org.apache.hadoop.")  # where the errors of stores come from
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
    else:
        refuse(match[1], ("jdbc",), f"{role} '{ref}'")
        local = _local(spark, match[2])
        exists = local is not None and local.exists()  # in other stores Spark refuses, before it computes
    if exists and not overwrite:
        raise OutputError(f"{role} '{ref}': exists already; give --overwrite to replace it")


def check_apart(spark: SparkSession, results: Mapping[str, str], inputs: Collection[str], folder: str | None) -> None:
    """Refuse tables that lie on, in or around an input or another result, and a report's folder inside of a table.

    Args:
        spark: the session that will write.
        results: the tables to write, by their role.
        inputs: the tables to read.
        folder: of the report, if one is written.

    Raises:
        OutputError: with a line per result.
    """
    read = [_place(spark, ref) for ref in inputs]
    problems = []
    written: dict[str, tuple[str, ...]] = {}
    for role, ref in results.items():
        place = _place(spark, ref)
        if any(_within(place, other) or _within(other, place) for other in read):
            problems.append(f"{role} '{ref}': lies on one of the tables to read; name another place")
        for other_role, other in written.items():
            if _within(place, other) or _within(other, place):
                problems.append(f"{role} '{ref}': lies on the {other_role}; name another place")
        written[role] = place
    if folder is not None:
        place = _place(spark, f"folder:{folder}")
        if any(_within(place, other) for other in read):
            problems.append(f"--output {folder}: lies in one of the tables to read; name another folder")
        for role, other in written.items():
            if _within(place, other):
                problems.append(f"--output {folder}: lies in the {role} '{results[role]}'; name another folder")
    if problems:
        raise OutputError(*problems)


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
    with writing(f"{role} '{ref}'"):
        if match is None:
            name = catalog_name(ref, role)
            _save_as_table(table, name)
            return spark.table(name)
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


def remove(spark: SparkSession, ref: str, role: str) -> str:
    """Remove a table that this run wrote, since a later step failed; return a line that says what stands."""
    match = FORMAT_AND_PATH.fullmatch(ref)
    removed = f"{role} '{ref}': removed again, since a later step failed"
    try:
        if match is None:
            spark.sql(f"DROP TABLE IF EXISTS {catalog_name(ref, role)}")
            return removed
        local = _local(spark, match[2])
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


def catalog_name(ref: str, role: str) -> str:
    """Return a catalog's table in the one form that SQL can take for nothing else: each part in backticks.

    Raises:
        OutputError: it is no name.
    """
    found = parts(ref)
    if ".".join(found) != ref:
        raise OutputError(f"{role} '{ref}': is no name of a table; write catalog.schema.table or format:path")
    return ".".join(part if part.startswith("`") else quoted(part) for part in found)


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


def _local(spark: SparkSession, path: str) -> Path | None:
    """Return the path on this machine's disk, None where only Spark knows the store."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    if "://" in path or not str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    return Path(path).absolute()


def _place(spark: SparkSession, ref: str) -> tuple[str, ...]:
    """Return where a table is, as far as names tell: the folders down to it, or the name of a catalog's table."""
    match = FORMAT_AND_PATH.fullmatch(ref)
    if match is None or match[1] == "jdbc":
        return ("table", ref.lower().replace("`", ""))
    local = _local(spark, match[2])
    return local.resolve().parts if local is not None else tuple(match[2].rstrip("/").split("/"))


def _within(place: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Tell whether a place is the other one or lies in it."""
    return place[: len(other)] == other


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
