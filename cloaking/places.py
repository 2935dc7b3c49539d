"""References -> the places where tables lie, and a refusal of results that lie on an input or on each other."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from cloaking.errors import OutputError
from cloaking.names import parts, quoted
from cloaking.tables import FORMAT_AND_PATH

_PATTERN = re.compile(r"[*?\[\]{}\\]")  # what Spark reads as a pattern of paths, though it writes it as it is
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_ADDRESS = re.compile(r"(?:([a-z][a-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
_CLUSTERS_OWN = {"", "file", "hdfs", "dbfs"}  # what a path without a scheme may be
_TABLE = "table"  # the store of names in a catalog

Place = tuple[str, str, tuple[str, ...]]  # the store's scheme, its host or bucket, the folders or the parts of a name


def check_path(path: str, label: str) -> None:
    """Refuse to write to a path that Spark would read as a pattern of others.

    Raises:
        OutputError: it holds a sign of a pattern.
    """
    if _PATTERN.search(path):
        raise OutputError(f"{label}: a path to write to may hold none of * ? [ ] {{ }} \\; name it otherwise")


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
    written: dict[str, Place] = {}
    for role, ref in results.items():
        place = _place(spark, ref)
        if any(_within(place, other) or _within(other, place) for other in read):
            problems.append(_on_an_input(role, ref))
        for other_role, other in written.items():
            if _within(place, other) or _within(other, place):
                problems.append(f"{role} '{ref}': lies on the {other_role}; name another place")
        written[role] = place
    if folder is not None:
        on_disk = "://" not in folder  # whatever the cluster's own store is
        place = ("file", "", Path(folder).resolve().parts) if on_disk else _folder(spark, folder)
        if any(_within(place, other) for other in read):
            problems.append(f"--output {folder}: lies in one of the tables to read; name another folder")
        for role, other in written.items():
            if _within(place, other):
                problems.append(f"--output {folder}: lies in the {role} '{results[role]}'; name another folder")
    if problems:
        raise OutputError(*problems)


def check_files(spark: SparkSession, results: Mapping[str, str], read: Iterable[DataFrame]) -> None:
    """Refuse tables that lie on files of the inputs by another name: a pattern, a view, a table's location.

    It sees the inputs that Spark reads from files itself; a table of Iceberg or of a database has none.

    Raises:
        OutputError: with a line per result.
    """
    if not results:
        return
    files = {file for table in read for file in table.inputFiles()}
    places = [_folder(spark, unquote(file)) for file in files]
    problems = []
    for role, ref in results.items():
        match = FORMAT_AND_PATH.fullmatch(ref)
        if match is not None:
            place = _folder(spark, match[2])
            hit = any(_within(file, place) for file in places)
        else:
            name = catalog_name(ref, role)
            hit = spark.catalog.tableExists(name) and not files.isdisjoint(spark.table(name).inputFiles())
        if hit:
            problems.append(_on_an_input(role, ref))
    if problems:
        raise OutputError(*problems)


def catalog_name(ref: str, role: str) -> str:
    """Return a catalog's table in the one form that SQL can take for nothing else: each part in backticks.

    Raises:
        OutputError: it is no name.
    """
    found = parts(ref)
    if ".".join(found) != ref:
        raise OutputError(f"{role} '{ref}': is no name of a table; write catalog.schema.table or format:path")
    return ".".join(part if part.startswith("`") else quoted(part) for part in found)


def local(spark: SparkSession, path: str) -> Path | None:
    """Return the path on this machine's disk, None where only Spark knows the store."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    if "://" in path or not str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    return Path(path).absolute()


def _place(spark: SparkSession, ref: str) -> Place:
    """Return where a table is, as far as names tell."""
    match = FORMAT_AND_PATH.fullmatch(ref)
    if match is not None and match[1] != "jdbc":
        return _folder(spark, match[2])
    name = tuple(part.strip("`").lower() for part in parts(ref))
    if match is None:
        missing = max(3 - len(name), 0)
        name = (spark.catalog.currentCatalog(), spark.catalog.currentDatabase())[:missing] + name
    return (_TABLE, "", name)


def _folder(spark: SparkSession, path: str) -> Place:
    on_disk = local(spark, path)
    if on_disk is not None:
        return ("file", "", on_disk.resolve().parts)
    scheme, host, rest = (part or "" for part in _ADDRESS.fullmatch(path).groups())  # type: ignore[union-attr]
    return (_SAME_STORE.get(scheme, scheme), host, tuple(part for part in rest.split("/") if part))


def _within(place: Place, other: Place) -> bool:
    """Tell whether a place is the other one or, of folders, lies in it."""
    if place[0] == _TABLE:
        return place == other
    stores, hosts = {place[0], other[0]}, {place[1], other[1]}
    same_store = len(stores) == 1 or ("" in stores and stores <= _CLUSTERS_OWN)
    return same_store and len(hosts - {""}) <= 1 and place[2][: len(other[2])] == other[2]


def _on_an_input(role: str, ref: str) -> str:
    return f"{role} '{ref}': lies on one of the tables to read; name another place"
