"""Table references <-> DataFrames, and reports to files: the only file that knows catalogs, formats and paths."""

import contextlib
import logging
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from pyarrow import ArrowException, fs
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from cloaking.errors import CloakingError, InputError, OutputError

log = logging.getLogger(__name__)

POSITION = "id"  # the key that --by-position makes: the row number from 0

_FORMAT_AND_PATH = re.compile(r"([a-z][a-z0-9_]*):(.+)", re.DOTALL)
_NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"(?i)^[+-]?(nan|inf|infinity)$"
_CORRUPT = "_corrupt_record"
_CSV = {"header": True, "encoding": "UTF-8", "escape": '"', "columnPruning": False, "enforceSchema": False}


def column(name: str) -> Column:
    """Return the column of exactly this name, whatever dots, spaces or quotes stand in it."""
    return F.col("`" + name.replace("`", "``") + "`")


def is_csv(ref: str) -> bool:
    """Tell whether the reference names CSV files, which carry no types."""
    return ref.startswith("csv:")


def read(
    spark: SparkSession,
    ref: str,
    role: str,
    *,
    where: str | None = None,
    text: Collection[str] = (),
    by_position: bool = False,
) -> DataFrame:
    """Return the table that `ref` names: `catalog.schema.table` or `format:path`.

    Args:
        ref: the reference; of CSV files, columns of numbers become double and all others stay text.
        role: what messages call the table, such as "originals".
        where: SQL condition of the rows to keep.
        text: columns that stay text in CSV files (keys and groups).
        by_position: number the rows of a single Parquet or CSV file from 0, in a column `id`.

    Raises:
        InputError: the table cannot be read, with what was found and the fix.
    """
    label = f"{role} '{ref}'"
    match = _FORMAT_AND_PATH.fullmatch(ref)
    with _reading(label):
        if match is None:
            if by_position:
                raise InputError(f"{label}: --by-position needs a file whose rows have an order, not a table; use --id")
            table = spark.table(ref)
        elif match[1] == "csv":
            table = _read_csv(spark, match[2], label, text, by_position)
        else:
            table = spark.read.format(match[1]).load(match[2])
            if by_position:
                table = _numbered_parquet(table, match[1], label)
    with _reading(f"{label}: --where"):
        return table.where(where) if where is not None else table


def match_key_types(tables: Sequence[tuple[DataFrame, Sequence[str], bool]]) -> list[DataFrame]:
    """Give the keys of CSV files the type of the other tables' keys.

    Each table comes as (table, its key columns, whether it is CSV); the keys correspond one by one. A key of a CSV
    takes the other side's type where every value of it is the canonical text of one; else both are text.
    """
    frames = [frame for frame, _, _ in tables]
    for keys in zip(*(columns for _, columns, _ in tables), strict=True):
        typed = {f.schema[k].dataType for f, k, (_, _, csv) in zip(frames, keys, tables, strict=True) if not csv}
        if len(typed) != 1 or len(typed) == 1 and isinstance(next(iter(typed)), StringType):
            continue
        target = next(iter(typed)).simpleString()
        csv_sides = [i for i, (_, _, csv) in enumerate(tables) if csv]
        casts = [F.expr(f"try_cast({_quoted(keys[i])} as {target})") for i in csv_sides]
        canonical = all(
            frames[i].where(column(keys[i]).isNotNull() & ~column(keys[i]).eqNullSafe(cast.cast("string"))).isEmpty()
            for i, cast in zip(csv_sides, casts, strict=True)
        )
        if canonical:
            for i, cast in zip(csv_sides, casts, strict=True):
                frames[i] = frames[i].withColumn(keys[i], cast)
        else:
            frames = [f.withColumn(k, column(k).cast("string")) for f, k in zip(frames, keys, strict=True)]
    return frames


def check_new(spark: SparkSession, ref: str, overwrite: bool) -> None:
    """Refuse to write over a table that exists, unless that is wanted.

    Raises:
        OutputError: the table exists and `overwrite` is not set.
    """
    match = _FORMAT_AND_PATH.fullmatch(ref)
    if match is None:
        exists = spark.catalog.tableExists(ref)
    else:
        local = _local(spark, match[2])
        exists = local is not None and local.exists()  # elsewhere Spark itself refuses, before it computes
    if exists and not overwrite:
        raise OutputError(f"counts '{ref}': exists already; give --overwrite to replace it")


def write(table: DataFrame, ref: str, overwrite: bool) -> DataFrame:
    """Write a table whole and return it as read back.

    On a local disk it is written under a temporary name and moved; elsewhere Spark's own commit makes it whole.

    Raises:
        OutputError: it exists and `overwrite` is not set, or it cannot be written.
    """
    spark = table.sparkSession
    mode = "overwrite" if overwrite else "errorifexists"
    match = _FORMAT_AND_PATH.fullmatch(ref)
    try:
        if match is None:
            table.write.mode(mode).saveAsTable(ref)
            return spark.table(ref)
        kind, path = match.groups()
        local = _local(spark, path)
        options = {"header": True} if kind == "csv" else {}
        if local is None:
            table.write.format(kind).options(**options).mode(mode).save(path)
        else:
            check_new(spark, ref, overwrite)
            with _beside(local) as temporary:
                table.write.format(kind).options(**options).save(str(temporary))
                if overwrite and local.is_dir():
                    shutil.rmtree(local)
                elif overwrite:
                    local.unlink(missing_ok=True)
                temporary.rename(local)
        return spark.read.format(kind).options(**options).schema(table.schema).load(path)
    except CloakingError:
        raise
    except (PySparkException, OSError) as error:
        raise OutputError(f"counts '{ref}': cannot be written ({_reason(error)}); nothing stands there") from error


def remove(spark: SparkSession, ref: str) -> str:
    """Remove a table that this run wrote, because a later step failed; return a line that says what stands."""
    match = _FORMAT_AND_PATH.fullmatch(ref)
    local = _local(spark, match[2]) if match else None
    if match is None:
        spark.sql(f"DROP TABLE IF EXISTS {'.'.join(_quoted(part) for part in ref.split('.'))}")
    elif local is not None:
        shutil.rmtree(local)
    else:
        return f"counts '{ref}': stands, written by this run, which failed later; remove it"
    return f"counts '{ref}': removed again, since a later step failed"


def write_text(folder: str, name: str, text: str) -> str:
    """Write a file into a local folder or an address that pyarrow opens, under a temporary name first.

    Returns:
        Where the file stands.

    Raises:
        OutputError: the folder cannot be made or the file not written; an earlier file of that name is untouched.
    """
    try:
        if "://" in folder:
            store, base = fs.FileSystem.from_uri(folder)
        else:
            store, base = fs.LocalFileSystem(), str(Path(folder).absolute())
        target, temporary = f"{base.rstrip('/')}/{name}", f"{base.rstrip('/')}/.{name}.{uuid.uuid4().hex}"
        store.create_dir(base, recursive=True)
        try:
            with store.open_output_stream(temporary) as stream:
                stream.write(text.encode())
            store.move(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError, ArrowException):
                store.delete_file(temporary)
            raise
    except (OSError, ArrowException) as error:
        raise OutputError(f"--output {folder}: {name} cannot be written ({_reason(error)})") from error
    return f"{folder.rstrip('/')}/{name}"


def _read_csv(spark: SparkSession, path: str, label: str, text: Collection[str], by_position: bool) -> DataFrame:
    """Read UTF-8 CSV with a header; refuse every other dialect instead of guessing."""
    options = _CSV | {"multiLine": by_position}
    head = spark.read.options(**(options | {"header": False, "multiLine": True})).csv(path).head(1)
    if not head:
        raise InputError(f"{label}: is empty; a header line is needed")
    names = [name or "" for name in head[0]]
    problems = _header_problems(names, label)
    if problems:
        raise InputError(*problems)

    # A broken row is counted in a column of its own: Spark's error for it would put the row's values into the log.
    fields = [StructField(name, StringType()) for name in [*names, _CORRUPT]]
    options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    table = spark.read.schema(StructType(fields)).options(**options).csv(path)
    numeric = _numeric_columns(table, [name for name in names if name not in text], label)
    if by_position:
        table = table.withColumn(POSITION, _row_number(table, label))
    kept = [*names, *([POSITION] if by_position and POSITION not in names else [])]
    return table.select(
        *(column(n).cast(DoubleType()).alias(n) if n in numeric and n != POSITION else column(n) for n in kept)
    )


def _header_problems(names: Sequence[str], label: str) -> list[str]:
    other = [mark for mark in (";", "\t", "|") if mark in names[0]]
    if len(names) == 1 and other:
        mark = "tab" if other[0] == "\t" else other[0]
        return [f"{label}: seems to be separated by '{mark}'; write it with commas and decimal points"]
    if any("�" in name or "\0" in name for name in names):
        return [f"{label}: the header is not UTF-8; write the file in UTF-8"]
    folded = [name.casefold() for name in names]
    repeated = sorted({name for name in names if name and folded.count(name.casefold()) > 1})
    problems = [f"{label}: the columns {repeated} differ at most in case; rename them"] if repeated else []
    if not all(names):
        problems.append(f"{label}: {names.count('')} column(s) have no name; name every column in the header")
    return problems


def _numeric_columns(table: DataFrame, names: Sequence[str], label: str) -> set[str]:
    """Return the columns whose every value is the text of a number, in one pass over the file."""
    filled = [F.count(column(name)) for name in names]
    numbers = [F.count_if(column(name).rlike(_NUMBER) | column(name).rlike(_NOT_FINITE)) for name in names]
    rows, broken, *counts = table.agg(F.count(F.lit(1)), F.count(column(_CORRUPT)), *filled, *numbers).head() or ()
    if broken:
        raise InputError(
            f"{label}: {broken:,} of {rows:,} rows do not have one value per column; "
            "use commas, double quotes, and no line breaks inside a value"
        )
    pairs = list(zip(names, counts[: len(names)], counts[len(names) :], strict=True))
    mixed = [(name, all_ - good, all_) for name, all_, good in pairs if 0 < good < all_]
    if mixed:
        raise InputError(
            *(
                f"{label}: column '{name}' holds numbers, but {bad:,} of its {all_:,} values are none; "
                "use decimal points and no units, or drop the column"
                for name, bad, all_ in mixed
            )
        )
    return {name for name, all_, good in pairs if good == all_}


def _row_number(table: DataFrame, label: str) -> Column:
    """Number the rows of one CSV file; read with multiLine, a file is never split, so its rows keep their order."""
    _refuse_folders(table, label)
    return F.monotonically_increasing_id()


def _numbered_parquet(table: DataFrame, kind: str, label: str) -> DataFrame:
    if kind != "parquet":
        raise InputError(f"{label}: --by-position reads parquet and csv, not {kind}; write it as parquet or use --id")
    _refuse_folders(table, label)
    return table.select("*", F.col("_metadata.row_index").alias("_row")).drop(POSITION).withColumnRenamed("_row", POSITION)


def _refuse_folders(table: DataFrame, label: str) -> None:
    files = len(table.inputFiles())
    if files != 1:
        raise InputError(
            f"{label}: --by-position needs one file, found {files}, whose order is not certain; "
            "write a single file or link the rows by a key (--id)"
        )


@contextlib.contextmanager
def _reading(label: str) -> Iterator[None]:
    """Turn Spark's refusal to read into one line with its error class, not its message, which may hold values."""
    try:
        yield
    except PySparkException as error:
        raise InputError(f"{label}: cannot be read ({_reason(error)}); check the name, the format and the rights") from error


def _reason(error: Exception) -> str:
    if isinstance(error, PySparkException):
        found = re.match(r"\s*\[([A-Z_.]+)\]", str(error))
        return error.getErrorClass() or (found[1] if found else type(error).__name__)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__


def _local(spark: SparkSession, path: str) -> Path | None:
    """Return the path on this machine's disk, None where only Spark knows the store."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    if "://" in path or not spark.conf.get("spark.master", "").startswith("local"):  # type: ignore[union-attr]
        return None
    return Path(path).absolute()


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Give a temporary path on the target's disk and remove what is left of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
