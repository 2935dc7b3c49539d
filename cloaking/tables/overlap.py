"""References -> the places where tables lie, and a refusal of results that lie on an input or on each other."""

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

_PATTERN = re.compile(r"[*?\[\]{}\\]")  # what Spark reads as a pattern of paths, though it writes it as it is
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
_ADDRESS = re.compile(r"(?:([a-z][a-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
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
                problems.append(f"{Ref(ref).label(role)}: lies on the {other_role}; name another place")
        written[role] = place
    if folder is not None:
        on_disk = "://" not in folder  # whatever Spark takes a path without a scheme for
        place = _folder(spark, f"file:{Path(folder).resolve()}" if on_disk else folder)
        if any(_within(place, other) for other in read):
            problems.append(f"--output {published(folder)}: lies in one of the tables to read; name another folder")
        for role, other in written.items():
            if _within(place, other):
                table = f"{Ref(results[role]).label(role)}"
                problems.append(f"--output {published(folder)}: lies in the {table}; name another folder")
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
    """Return the path on this machine's disk, None where Spark may write it to another place.

    That is: Spark takes it for a path of `file:`, all of Spark runs in this machine's processes, and it is not asked
    through Spark Connect, whose server may be elsewhere. Where Spark cannot say what it takes a path for, it is None.
    """
    session: object = spark  # under Connect it is another class
    here = isinstance(session, SparkSession) and str(spark.conf.get("spark.master", "")).startswith("local")
    address = _address(spark, path) if here else ""
    if not address.startswith("file:"):
        return None
    return Path("/" + address.removeprefix("file:").lstrip("/"))


def _address(spark: SparkSession, path: str) -> str:
    """Return a path with the scheme that Spark gives it; as it is where it has one, or where Spark cannot say it.

    A path without a scheme lies in the cluster's default file system, which may be set in files that no setting of the
    session shows. So Spark is asked for a file that is not there, and names the folder in which it looked.
    """
    if _SCHEME.match(path) or path.startswith("//"):
        return path
    missing = uuid.uuid4().hex
    try:
        # Twice: of one path Spark logs at length that it is missing. The schema: Spark Connect reads no sooner.
        _ = spark.read.format("text").load([missing, missing]).schema
    except (PySparkException, Py4JJavaError) as error:
        found = re.search(rf"({_SCHEME.pattern}(?://[^/]*)?)(/.*){missing}", str(error))
        if found is not None:
            return found[1] + (path if path.startswith("/") else found[2] + path)
    return path


def _place(spark: SparkSession, ref: str) -> Place:
    """Return where a table is, as far as names tell."""
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
    """Tell whether a place is the other one or, of folders, lies in it; one in an unknown store may lie in any."""
    if _TABLE in (place[0], other[0]):
        return place == other
    same_store = place[0] == other[0] or "" in (place[0], other[0])
    return same_store and len({place[1], other[1]} - {""}) <= 1 and place[2][: len(other[2])] == other[2]


def _on_an_input(role: str, ref: str) -> str:
    return f"{Ref(ref).label(role)}: lies on one of the tables to read; name another place"
