"""Refuse to write results to places that overlap an input or each other."""

import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cloaking.addresses import published
from cloaking.errors import OutputError
from cloaking.names import parts
from cloaking.tables.reference import Ref

_PATTERN = re.compile(r"[*?\[\]{}\\]")  # Spark reads these as a glob pattern, but writes them literally
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_ADDRESS = re.compile(r"(?:([a-z][a-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TABLE = "table"  # used as the scheme of a catalog's table

Place = tuple[str, str, tuple[str, ...]]  # the store's scheme; its host or bucket; folders, or the parts of a name


def check_path(path: str, label: str) -> None:
    """Refuse to write to a path that Spark would read as a glob pattern.

    Raises:
        OutputError: the path contains a glob character.
    """
    if _PATTERN.search(path):
        raise OutputError(f"{label}: an output path may contain none of * ? [ ] {{ }} \\; choose another path")


def check_apart(spark: SparkSession, results: Mapping[str, str], inputs: Collection[str], folder: str | None) -> None:
    """Refuse a result that is, contains or is within an input or another result, and a report folder within a table.

    Args:
        spark: the session that will write.
        results: the tables to write, by their role.
        inputs: the tables to read.
        folder: the report's folder, if a report is written.

    Raises:
        OutputError: results overlap; the message has a line for each.
    """
    read = [_place(spark, ref) for ref in inputs]
    problems = []
    written: dict[str, Place] = {}
    for role, ref in results.items():
        place = _place(spark, ref)
        if any(_within(place, other) or _within(other, place) for other in read):
            problems.append(_on_an_input(role, ref))
        for other_role, other in written.items():
            if _within(place, other) or _within(other, place):
                problems.append(f"{Ref(ref).label(role)}: overlaps the {other_role}; choose another place")
        written[role] = place
    if folder is not None:
        on_disk = "://" not in folder  # also where Spark's default file system is another one
        place = _folder(spark, f"file:{Path(folder).resolve()}" if on_disk else folder)
        if any(_within(place, other) for other in read):
            problems.append(f"--output {published(folder)}: is within one of the tables to read; choose another folder")
        for role, other in written.items():
            if _within(place, other):
                table = f"{Ref(results[role]).label(role)}"
                problems.append(f"--output {published(folder)}: is within the {table}; choose another folder")
    if problems:
        raise OutputError(*problems)


def check_files(spark: SparkSession, results: Mapping[str, str], read: Iterable[DataFrame]) -> None:
    """Refuse results that would replace the inputs' files under another name: a pattern, a view, a table's location.

    Only inputs that Spark itself reads from files are checked; for Iceberg and databases Spark lists no files.

    Raises:
        OutputError: results overlap the inputs; the message has a line for each.
    """
    if not results:
        return
    files = {file for table in read for file in table.inputFiles()}
    places = [_folder(spark, unquote(file)) for file in files]
    problems = []
    for role, ref in results.items():
        ref = Ref(ref)
        if ref.path is not None:
            place = _folder(spark, ref.path)
            hit = any(_within(file, place) for file in places)
        else:
            name = ref.name(role)
            hit = spark.catalog.tableExists(name) and not files.isdisjoint(spark.table(name).inputFiles())
        if hit:
            problems.append(_on_an_input(role, ref))
    if problems:
        raise OutputError(*problems)


def local(spark: SparkSession, path: str) -> Path | None:
    """Return the path on this machine's disk to which Spark writes `path`, or None if that may be another machine's.

    It is on this machine if Spark resolves it to `file:`, Spark runs in local mode, and the session is no Spark Connect
    session, whose server may be elsewhere. If Spark does not say how it resolves the path, the result is None.
    """
    session: object = spark  # a Spark Connect session is of another class
    here = isinstance(session, SparkSession) and str(spark.conf.get("spark.master", "")).startswith("local")
    address = _address(spark, path) if here else ""
    if not address.startswith("file:"):
        return None
    return Path("/" + address.removeprefix("file:").lstrip("/"))


def _address(spark: SparkSession, path: str) -> str:
    """Return a path with the scheme that Spark adds; unchanged if it has a scheme, or if Spark does not say.

    A path without a scheme is in the cluster's default file system, which may be configured in files that the session's
    settings do not show. So this asks Spark for a missing file: the error names the folder in which Spark looked.
    """
    if _SCHEME.match(path) or path.startswith("//"):
        return path
    missing = uuid.uuid4().hex
    try:
        # Two paths, because Spark logs a long warning if a single one is missing.
        # The schema is needed because Spark Connect resolves a path only then.
        _ = spark.read.format("text").load([missing, missing]).schema
    except (PySparkException, Py4JJavaError) as error:
        found = re.search(rf"({_SCHEME.pattern}(?://[^/]*)?)(/.*){missing}", str(error))
        if found is not None:
            return found[1] + (path if path.startswith("/") else found[2] + path)
    return path


def _place(spark: SparkSession, ref: str) -> Place:
    """Return the place of a table, judged by its reference only."""
    ref = Ref(ref)
    if ref.path is not None and ref.kind != "jdbc":
        return _folder(spark, ref.path)
    name = tuple(part.strip("`").lower() for part in parts(ref))
    if ref.path is None:
        missing = max(3 - len(name), 0)
        name = (spark.catalog.currentCatalog(), spark.catalog.currentDatabase())[:missing] + name
    return (_TABLE, "", name)


def _folder(spark: SparkSession, path: str) -> Place:
    scheme, host, rest = (part or "" for part in _ADDRESS.fullmatch(_address(spark, path)).groups())  # type: ignore[union-attr]
    if scheme == "file":
        rest = str(Path(rest).resolve())
    return (_SAME_STORE.get(scheme, scheme), host, tuple(part for part in rest.split("/") if part))


def _within(place: Place, other: Place) -> bool:
    """Return whether a place equals another or is a folder within it; an unknown store may be any store."""
    if _TABLE in (place[0], other[0]):
        return place == other
    same_store = place[0] == other[0] or "" in (place[0], other[0])
    return same_store and len({place[1], other[1]} - {""}) <= 1 and place[2][: len(other[2])] == other[2]


def _on_an_input(role: str, ref: str) -> str:
    return f"{Ref(ref).label(role)}: overlaps one of the tables to read; choose another place"
