"""DataFrames -> new tables by their references, each whole or not at all."""

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
_REFUSED = (AnalysisException, UnsupportedOperationException, Py4JJavaError)  # a statement that a catalog does not take
_DETAILS = "# Detailed Table Information"  # after the columns, one of which may be called Location too


def check_new(spark: SparkSession, ref: str, role: str, overwrite: bool) -> None:
    """Refuse to write over a table that exists, unless that is wanted.

    Raises:
        OutputError: the table exists and `overwrite` is not set, or its name makes no table.
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
        exists = local is not None and local.exists()  # in other stores Spark refuses, before it computes
        if local is not None and exists and local.resolve().is_mount():
            raise OutputError(f"{label}: is a mount point, which cannot be replaced; name a folder in it")
    if exists and not overwrite:
        raise OutputError(f"{label}: exists already; give --overwrite to replace it")


def write(table: DataFrame, ref: str, role: str, overwrite: bool, results: Together) -> DataFrame:
    """Write a table whole beside its place, which it takes with the other results, and return it as read back.

    Until then an earlier table stands as it is. Stopped for good between two moves, it is found beside its place: of a
    path `.../NAME` as `.../.NAME.<32 digits>/earlier`, of a catalog's table NAME as `NAME_<32 digits>_earlier`. To a
    store that only Spark reaches, a table is written at once where none is.

    Raises:
        OutputError: it exists and `overwrite` is not set, or the store refuses it.
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
            Path(result.folder).mkdir(parents=True)  # fails with a word where none can be made
        if ref.path is None:
            table.write.saveAsTable(result.temporary)
            back = spark.table(result.temporary)
        else:
            scheme = "file:" if on_disk is not None else ""  # whatever Spark takes a path without one for
            _save(table, kind, scheme + result.temporary)
            back = _load(spark, kind, scheme + result.temporary, table.schema)
        result.reported = result.written = True
        return back


def _in_catalog(spark: SparkSession, name: str, label: str) -> Result:
    """Return the result that is to be this table."""
    temporary = f"{name[:-1]}_{uuid.uuid4().hex}`"
    return Result(Catalog(spark), label, writing, name, temporary, f"{temporary[:-1]}_earlier`")


def _on_disk(path: Path, label: str) -> Result:
    """Return the result that is to lie at this path."""
    place = path.resolve()  # a link stays one
    beside = _beside(str(place.parent), place.name)
    store = Files(fs.LocalFileSystem())
    return Result(store, label, writing, str(place), f"{beside}/new", f"{beside}/earlier", folder=beside)


def _at_address(store: "Addresses", path: str, label: str) -> Result:
    """Return the result that is to be written over what lies at this address."""
    parent, _, name = path.rstrip("/").rpartition("/")
    beside = _beside(parent, name)
    return Result(store, label, writing, path, f"{beside}/new", f"{beside}/earlier")


def _beside(parent: str, name: str) -> str:
    """Return a folder that is hidden from those who read all that lies there; of a table so named Spark would warn."""
    return f"{parent}/.{name}.{uuid.uuid4().hex}"


def _at_once(table: DataFrame, kind: str, path: str, label: str, results: Together) -> DataFrame:
    """Write a table where none is and only Spark can write; its own commit makes it whole."""
    _save(table, kind, path, mode="error")  # the one name of it that Spark Connect knows
    results.undo.callback(log.error, "%s: stands, written by this run, which failed afterwards; remove it", label)
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
    """Tables by their names in a catalog."""

    spark: SparkSession

    def exists(self, name: str) -> bool:
        """Tell whether there is a table of this name."""
        return self.spark.catalog.tableExists(name)

    def move(self, name: str, to: str) -> None:
        """Give a table another name within its schema.

        Raises:
            MoveRefusedError: the catalog, or the table's format, renames nothing, or not by these rights.
        """
        own = parts(to)[-1]  # the new name within the schema: not all catalogs take a longer one
        try:
            self.spark.sql(f"ALTER TABLE {name} RENAME TO {own}")
        except _REFUSED as error:
            raise MoveRefusedError(reason(error)) from error

    def copy(self, name: str, to: str) -> None:
        """Write a table once more, over another one if there is one."""
        self.spark.table(name).write.mode("overwrite").saveAsTable(to)

    def remove(self, name: str) -> str | None:
        """Drop a table and its files; return in words where files stand all the same, None if none do."""
        where = self._location(name)
        try:
            self.spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")  # Iceberg keeps the files of a table without it
        except _REFUSED:
            self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        stands = where is not None and _files_at(self.spark, where)
        return f"dropped, but its files are still at {where}" if stands else None

    def _location(self, name: str) -> str | None:
        """Return the folder or address of a table's files; None where the catalog states none."""
        rows = [tuple(row)[:2] for row in self.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()]
        keys = [key for key, _ in rows]
        return dict(rows[keys.index(_DETAILS) :]).get("Location") if _DETAILS in keys else None


@dataclass(frozen=True)
class Addresses:
    """Tables of one format and schema by their paths, in stores that only Spark reaches: it moves and removes none."""

    spark: SparkSession
    kind: str
    schema: StructType

    def exists(self, name: str) -> bool:
        """Tell whether there is anything at this path."""
        return _there(self.spark, name) is not None

    def move(self, name: str, to: str) -> None:
        """Refuse it.

        Raises:
            MoveRefusedError: always.
        """
        raise MoveRefusedError("only Spark reaches the store")

    def copy(self, name: str, to: str) -> None:
        """Write a table once more, over another one if there is one."""
        _save(_load(self.spark, self.kind, name, self.schema), self.kind, to)

    def remove(self, name: str) -> str:
        """Write a table without rows over it; return in words that it stands."""
        _save(self.spark.createDataFrame([], self.schema), self.kind, name)
        return "emptied, but stands without rows"


def _there(spark: SparkSession, path: str) -> DataFrame | None:
    """Return the files at a path, none of them read yet; None where there is no such path."""
    try:
        # Twice: of one path Spark logs at length that it is missing.
        found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load([path, path])
        _ = found.schema  # Spark Connect reads no sooner
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
