"""Read and write typed DataFrames as CSV files of one dialect; any other dialect is refused, not guessed."""

import contextlib
import re
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from operator import or_

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from cloaking.columns import column
from cloaking.errors import InputError
from cloaking.names import alike, quoted

_NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_NEARLY = r"^\s*[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?\s*$"  # also decimal commas, outer blanks
_NOT_FINITE = r"(?i)^[+-]?(nan|inf|infinity)$"
_BROKEN = "_broken_row"
# Column pruning is off, so that a row with too few or too many values is detected whichever columns are selected.
_DIALECT = {"encoding": "UTF-8", "sep": ",", "quote": '"', "escape": '"', "columnPruning": "false"}
# Spark's defaults trim strings and cut timestamps to milliseconds, which can make different keys equal.
_WRITE_OPTIONS = {
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
_NOT_UTF8 = "\ufffd"  # Spark replaces bytes that are not UTF-8 by this character


def read(spark: SparkSession, path: str, label: str, text: Collection[str], whole_files: bool = False) -> DataFrame:
    """Read UTF-8 files with a header, commas, decimal points and double quotes.

    Args:
        path: a file or a folder of files with one header.
        label: the table's name in messages.
        text: columns that stay text; other columns become double if all their values are numbers.
        whole_files: never split a file, so that its rows stay in order and values may contain line breaks.

    Raises:
        InputError: the files have another dialect; the message says how to fix it.
    """
    head = spark.read.options(**_DIALECT, header="false", multiLine="true").csv(path).head(1)
    if not head:
        raise InputError(f"{label}: is empty; a header line is needed")
    names = [name or "" for name in head[0]]
    problems = _header_problems(names, label)
    if problems:
        raise InputError(*problems)

    # Broken rows are flagged and counted, because Spark's own error would write their values to the log.
    broken = _BROKEN
    while alike(broken, names):
        broken += "_"
    schema = StructType([StructField(name, StringType()) for name in [*names, broken]])
    options = {"header": "true", "enforceSchema": "false", "columnNameOfCorruptRecord": broken}
    table = spark.read.schema(schema).options(**_DIALECT, **options, multiLine=str(whole_files).lower()).csv(path)
    with _one_header(label):
        numeric = _numeric_columns(table, names, broken, text, label)
    return table.select(
        *(column(name).cast("double").alias(name) if name in numeric else column(name) for name in names)
    )


def write(table: DataFrame, path: str, mode: str) -> None:
    """Write a table in the dialect that `read` accepts."""
    table.write.options(**_WRITE_OPTIONS, header="true", escape='"').mode(mode).csv(path)


def read_back(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    """Read the files that `write` wrote from a table of this schema."""
    return spark.read.schema(schema).options(**_DIALECT, header="true", multiLine="true").csv(path)


def take_type(table: DataFrame, name: str, kind: DataType) -> DataFrame | None:
    """Cast a text column to another type if every value is in that type's canonical form; else return None."""
    cast = F.expr(f"try_cast({quoted(name)} as {kind.simpleString()})")
    other_text = column(name).isNotNull() & ~column(name).eqNullSafe(cast.cast("string"))
    return table.withColumn(name, cast) if table.where(other_text).isEmpty() else None


@contextlib.contextmanager
def _one_header(label: str) -> Iterator[None]:
    """Replace Spark's error about differing headers, which names the file and the columns only deep in its text."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if "CSV header" not in str(error):
            raise
        raise InputError(
            f"{label}: its files differ in their header; give all the same columns in one order"
        ) from error


def _header_problems(names: Sequence[str], label: str) -> list[str]:
    """Return the problems of the first line; if it may hold values instead of names, none of them is shown."""
    other = _other_kind(names[0])
    if other:
        return [f"{label}: {other}"]
    if names[0].casefold().startswith("sep="):
        return [f"{label}: its first line is Excel's '{names[0]}' and not the header; remove that line"]
    if names[0].startswith("\ufeff"):
        return [f"{label}: begins with two byte order marks (U+FEFF); write the file with one or none"]
    for mark, called in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(names) == 1 and mark in names[0]:
            return [f"{label}: seems to be separated by {called}; write it with commas and decimal points"]
    if any("\0" in name for name in names):
        return [f"{label}: seems to be UTF-16, as Excel's Unicode text is; write the file in UTF-8"]
    if any(_NOT_UTF8 in name for name in names):
        return [f"{label}: the header is not UTF-8; write the file in UTF-8"]
    values = _values_among(names)
    if values:
        return [
            f"{label}: {values} of the {len(names)} names in its first line are numbers, so that it seems to be a row; "
            "put a header line above it"
        ]
    problems = []
    if not all(names):
        problems.append(f"{label}: {names.count('')} column(s) have no name; name every column in the header")
    repeated = sorted({name for name in names if name and len(alike(name, names)) > 1})
    if repeated:
        problems.append(f"{label}: columns {', '.join(repeated)} have the same name if case is ignored; rename them")
    return problems


def _other_kind(start: str) -> str | None:
    """Return what kind of binary file begins with these characters, and the fix; None for a text file."""
    if start.startswith("PK\x03\x04"):
        return "is a zip archive, as Excel's .xlsx files are; export the table as CSV, or unpack it"
    if start.startswith("\x1f" + _NOT_UTF8):
        return "is compressed by gzip; give it a name that ends in .gz, or unpack it"
    return None


def _values_among(names: Sequence[str]) -> int:
    """Return how many names are numbers if this makes the first line look like a row; else 0.

    Whole numbers can be intended as names, such as those of a matrix's columns: 0, 1, 2, ...
    """
    numbers = [name for name in names if re.fullmatch(_NUMBER, name.strip())]
    fractions = [name for name in numbers if not name.strip().isdecimal()]
    return len(numbers) if fractions else 0


def _numeric_columns(
    table: DataFrame, everything: Sequence[str], broken: str, text: Collection[str], label: str
) -> set[str]:
    """Return the columns in which every value is a number, after one pass over the files.

    A column in which only some values are numbers or nearly so is refused: as text it would silently be left out of
    the components.
    """
    names = [name for name in everything if not alike(name, [*text])]
    patterns = {"good": f"{_NUMBER}|{_NOT_FINITE}", "nearly": f"{_NEARLY}|{_NOT_FINITE}"}
    row = table.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count(broken).alias("broken"),
        F.count_if(reduce(or_, (F.contains(column(name), F.lit(_NOT_UTF8)) for name in everything))).alias("foreign"),
        *(F.count(column(name)).alias(f"filled_{i}") for i, name in enumerate(names)),
        *(
            F.count_if(column(name).rlike(pattern)).alias(f"{kind}_{i}")
            for kind, pattern in patterns.items()
            for i, name in enumerate(names)
        ),
    ).collect()[0]
    if row["broken"]:
        raise InputError(
            f"{label}: {row['broken']:,} of {row['rows']:,} rows do not have one value per column; "
            "use commas, double quotes, and no line breaks inside a value"
        )
    if row["foreign"]:
        raise InputError(f"{label}: {row['foreign']:,} of {row['rows']:,} rows are not UTF-8; write the file in UTF-8")
    counts = {name: (row[f"filled_{i}"], row[f"good_{i}"], row[f"nearly_{i}"]) for i, name in enumerate(names)}
    mixed = [
        f"{label}: column '{name}' holds numbers, but {filled - good:,} of its {filled:,} values are not written as "
        "one; use decimal points, no units and no blanks, or drop the column"
        for name, (filled, good, nearly) in counts.items()
        if good < filled and nearly
    ]
    if mixed:
        raise InputError(*mixed)
    return {name for name, (filled, good, _) in counts.items() if good == filled}
