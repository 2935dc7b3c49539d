"""Write DataFrames as new tables by their references, each completely or not at all."""

import logging
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyarrow import fs
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from cloaking.errors import OutputError
from cloaking.names import parts
from cloaking.spark_errors import reason, writing
from cloaking.tables import csv, overlap
from cloaking.tables.reference import Ref
from cloaking.tables.replacing import MoveRefusedError, Result, Together
from cloaking.tables.text_files import Files

log = logging.getLogger(__name__)

_VIEWS = ("VIEW", "TEMPORARY")
_REFUSED = (AnalysisException, UnsupportedOperationException, Py4JJavaError)  # the catalog rejects a statement
_DETAILS = "# Detailed Table Information"  # follows the columns, one of which may also be called Location


def check_new(spark: SparkSession, ref: str, role: str, overwrite: bool) -> None:
    """Refuse to overwrite an existing table, unless `overwrite` is set.

    Raises:
        OutputError: the table exists and `overwrite` is not set, or no table can be written by this name.
    """
    ref = Ref(ref)
    label = ref.label(role)
    if ref.path is None:
        name = ref.name(role)
        with writing(label):
            exists = spark.catalog.tableExists(name)
            if exists and spark.catalog.getTable(name).tableType in _VIEWS:
                raise OutputError(f"{label}: is a view; name a table")
    else:
        refuse(str(ref.kind), ("jdbc",), label)
        overlap.check_path(ref.path, label)
        local = overlap.local(spark, ref.path)
        exists = local is not None and local.exists()  # in other stores Spark itself refuses, before it computes
        if local is not None and exists and local.resolve().is_mount():
            raise OutputError(f"{label}: is a mount point, which cannot be replaced; name a folder in it")
    if exists and not overwrite:
        raise OutputError(f"{label}: exists already; give --overwrite to replace it")


def write(table: DataFrame, ref: str, role: str, overwrite: bool, results: Together) -> DataFrame:
    """Write a table under a temporary name, from which it moves to its place with the other results; return it re-read.

    Until then an earlier table is unchanged. If the process is killed between two moves, the earlier table of a path
    `.../NAME` is `.../.NAME.<32 digits>/earlier`, that of a catalog's table NAME is `NAME_<32 digits>_earlier`. In a
    store that only Spark can access, a table that does not exist yet is written directly to its place.

    Raises:
        OutputError: the table exists and `overwrite` is not set, or the store refuses it.
    """
    ref = Ref(ref)
    spark, label = table.sparkSession, ref.label(role)
    check_new(spark, ref, role, overwrite)
    kind = str(ref.kind)
    with writing(label):
        if ref.path is None:
            result = _in_catalog(spark, ref.name(role), label)
        elif (on_disk := overlap.local(spark, ref.path)) is not None:
            result = _on_disk(on_disk, label)
        else:
            store = Addresses(spark, kind, table.schema)
            if not (overwrite and store.exists(ref.path)):
                return _at_once(table, kind, ref.path, label, results)
            result = _at_address(store, ref.path, label)
        result.overwrite = overwrite
        results.add(result)
        if result.folder is not None:
            Path(result.folder).mkdir(parents=True)  # raises an error if it cannot be created
        if ref.path is None:
            table.write.saveAsTable(result.temporary)
            back = spark.table(result.temporary)
        else:
            scheme = "file:" if on_disk is not None else ""  # since Spark's default file system may be another
            _save(table, kind, scheme + result.temporary)
            back = _load(spark, kind, scheme + result.temporary, table.schema)
        result.reported = result.written = True
        return back


def _in_catalog(spark: SparkSession, name: str, label: str) -> Result:
    """Return the result for a catalog's table of this name."""
    temporary = f"{name[:-1]}_{uuid.uuid4().hex}`"
    return Result(Catalog(spark), label, writing, name, temporary, f"{temporary[:-1]}_earlier`")


def _on_disk(path: Path, label: str) -> Result:
    """Return the result for a table at this path on the local disk."""
    place = path.resolve()  # a symbolic link stays, and its target is replaced
    beside = _beside(str(place.parent), place.name)
    store = Files(fs.LocalFileSystem())
    return Result(store, label, writing, str(place), f"{beside}/new", f"{beside}/earlier", folder=beside)


def _at_address(store: "Addresses", path: str, label: str) -> Result:
    """Return the result for a table that replaces the one at this address."""
    parent, _, name = path.rstrip("/").rpartition("/")
    beside = _beside(parent, name)
    return Result(store, label, writing, path, f"{beside}/new", f"{beside}/earlier")


def _beside(parent: str, name: str) -> str:
    """Return a folder in `parent` that readers of `parent` skip; Spark warns if a table itself has a hidden name."""
    return f"{parent}/.{name}.{uuid.uuid4().hex}"


def _at_once(table: DataFrame, kind: str, path: str, label: str, results: Together) -> DataFrame:
    """Write a new table directly to a store that only Spark can access; Spark's own commit makes it complete."""
    _save(table, kind, path, mode="error")  # Spark Connect does not know the synonym "errorifexists"
    results.undo.callback(log.error, "%s: was written by this run, which failed afterwards; remove it", label)
    return _load(table.sparkSession, kind, path, table.schema)


def _save(table: DataFrame, kind: str, path: str, mode: str = "overwrite") -> None:
    if kind == "csv":
        csv.write(table, path, mode)
    else:
        table.write.format(kind).mode(mode).save(path)


def _load(spark: SparkSession, kind: str, path: str, schema: StructType) -> DataFrame:
    if kind == "csv":
        return csv.read_back(spark, path, schema)
    return spark.read.format(kind).schema(schema).load(path)


@dataclass(frozen=True)
class Catalog:
    """A catalog's tables, by their names."""

    spark: SparkSession

    def exists(self, name: str) -> bool:
        """Return whether there is a table of this name."""
        return self.spark.catalog.tableExists(name)

    def move(self, name: str, to: str) -> None:
        """Rename a table within its schema.

        Raises:
            MoveRefusedError: the catalog, the table's format or the user's rights do not allow it.
        """
        own = parts(to)[-1]  # the new name within the schema: not all catalogs accept a qualified one
        try:
            self.spark.sql(f"ALTER TABLE {name} RENAME TO {own}")
        except _REFUSED as error:
            raise MoveRefusedError(reason(error)) from error

    def copy(self, name: str, to: str) -> None:
        """Copy a table to another name and overwrite what is there."""
        self.spark.table(name).write.mode("overwrite").saveAsTable(to)

    def remove(self, name: str) -> str | None:
        """Drop a table and its files; return a phrase that says where files remain, None if none do."""
        where = self._location(name)
        try:
            self.spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")  # without PURGE Iceberg keeps the files
        except _REFUSED:
            self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        remain = where is not None and _files_at(self.spark, where)
        return f"dropped, but its files are still at {where}" if remain else None

    def _location(self, name: str) -> str | None:
        """Return the folder or address of a table's files; None if the catalog states none."""
        rows = [tuple(row)[:2] for row in self.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()]
        keys = [key for key, _ in rows]
        return dict(rows[keys.index(_DETAILS) :]).get("Location") if _DETAILS in keys else None


@dataclass(frozen=True)
class Addresses:
    """Tables by their paths, in stores that only Spark can access, which moves and removes no files there."""

    spark: SparkSession
    kind: str
    schema: StructType

    def exists(self, name: str) -> bool:
        """Return whether there is anything at this path."""
        return _there(self.spark, name) is not None

    def move(self, name: str, to: str) -> None:
        """Refuse to move a table.

        Raises:
            MoveRefusedError: always.
        """
        raise MoveRefusedError("only Spark reaches the store")

    def copy(self, name: str, to: str) -> None:
        """Copy a table to another name and overwrite what is there."""
        _save(_load(self.spark, self.kind, name, self.schema), self.kind, to)

    def remove(self, name: str) -> str:
        """Overwrite the table with an empty one; return a phrase that says that it remains."""
        _save(self.spark.createDataFrame([], self.schema), self.kind, name)
        return "emptied but not removed"


def _there(spark: SparkSession, path: str) -> DataFrame | None:
    """Return the files at a path without reading them yet; None if there is no such path."""
    try:
        # Two paths, because Spark logs a long warning if a single one is missing.
        found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load([path, path])
        _ = found.schema  # Spark Connect reports errors only here
        return found
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        return None


def _files_at(spark: SparkSession, path: str) -> bool:
    found = _there(spark, path)
    return found is not None and not found.select("path").isEmpty()


def refuse(kind: str, kinds: Collection[str], label: str) -> None:
    if kind in kinds:
        raise OutputError(f"{label}: {kind} cannot keep it; use parquet:, orc: or a table of a catalog")
