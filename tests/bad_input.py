"""Bad input for the command: good tables to change one by one, what a case consists of, and how its run is checked.

Every record has 7391 in its key and in its coordinates, and no line of any run may show it. `pytest -rA` prints the
lines of every case.
"""

import datetime
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

PLANTED = "7391"
KEYS = [73911, 73912, 73913, 73914, 73918, 73919]  # the originals have the first four, the avatars all six
X = [739150.0, 739160.0, 739170.0, 739180.0]
Y = [739151.0, 739160.0, 739190.0, 739181.0, 739149.0, 739169.0]
# By hand: the cloaking is 1 (a tie), 0, 4, 0, and an attacker guesses one of two for the first.
FIGURES = {"local_cloaking": 0.5, "hidden_rate": 37.5, "originals": 4, "avatars": 6}
NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Refused:
    """A run that the command must refuse, and the lines in which it says why.

    Args:
        files: name -> content: columns, written as Parquet or ORC by the name's ending, or text or bytes. `o.*` and
            `a.*` are the originals and the avatars; where they are left out, they are good Parquet tables.
        arguments: of the command, besides --originals and --avatars; `{}` is the folder of the files.
        problems: for each line on stderr the words that it must have, with " | " between them.
    """

    files: Mapping[str, Any] = field(default_factory=dict)
    arguments: str = ""
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class Accepted:
    """A run that must succeed with the figures of the good tables, although its input looks bad.

    Args:
        files: as those of `Refused`.
        arguments: as those of `Refused`.
        report: what report.json must have in addition to FIGURES, or instead of them.
    """

    files: Mapping[str, Any] = field(default_factory=dict)
    arguments: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)


def parameters(cases):
    """Return the cases as parameters of a test; those with tables of their own are slow."""
    return [
        pytest.param(case, id=name, marks=[pytest.mark.slow] if set(case.files) - {"c.toml"} else [])
        for name, case in cases.items()
    ]


# Tables


def originals(**columns):
    """Return good originals with these columns in addition or instead; None leaves a column out."""
    return {name: values for name, values in ({"id": KEYS[:4], "x": X} | columns).items() if values is not None}


def avatars(**columns):
    """Return good avatars with these columns in addition or instead; None leaves a column out."""
    return {name: values for name, values in ({"id": KEYS, "x": Y} | columns).items() if values is not None}


def link_table(**columns):
    """Return a good link table, with these columns instead."""
    return {"original_id": KEYS[:4], "avatar_id": KEYS[:4]} | columns


def both(convert, name="id"):
    """Return good originals and avatars as files, with one column converted on both sides."""
    return {
        "o.parquet": originals(**{name: convert(originals()[name])}),
        "a.parquet": avatars(**{name: convert(avatars()[name])}),
    }


def renamed(columns, **names):
    """Return the columns under new names."""
    return {names.get(name, name): values for name, values in columns.items()}


BY_POSITION = {"o.parquet": originals(id=None), "a.parquet": {"x": Y[:4]}}


# Contents of files


def csv_text(columns, sep=",", point="."):
    """Return a table as CSV with this separator and this decimal sign."""
    rows = [columns, *zip(*columns.values(), strict=True)]
    lines = [sep.join(str(v).replace(".", point) if isinstance(v, float) else str(v) for v in row) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def parquet_bytes(columns):
    """Return the bytes of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def damaged_parquet(columns):
    """Return a Parquet file with a good footer and damaged pages."""
    content = bytearray(parquet_bytes(columns))
    content[4:120] = b"\xff" * 116
    return bytes(content)


# Columns of a type


def as_type(kind, convert=lambda value: value) -> Callable:
    """Return a function that converts values and makes an Arrow array of this type from them."""
    return lambda values: pa.array([convert(value) for value in values], kind)


def day(value):
    return datetime.date(2000, 1, 1) + datetime.timedelta(days=int(value) % 7391)


def moment(value):
    return datetime.datetime(2000, 1, 1) + datetime.timedelta(seconds=int(value))


DOUBLES = pa.list_(pa.float64())
VECTOR = {"type": 1, "size": None, "indices": None, "values": [7391.25]}  # as Spark's ML library stores one
VECTOR_TYPE = pa.struct(
    {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32()), "values": pa.list_(pa.float64())}
)

dates = as_type(pa.date32(), day)
timestamps = as_type(pa.timestamp("us", "UTC"), moment)
local_timestamps = as_type(pa.timestamp("us"), moment)
planted_texts = as_type(pa.string(), lambda value: f"Zz-planted-{value}")
binaries = as_type(pa.binary(), lambda value: bytes([0, 255, value % 256]))
longs_beyond_2_53 = as_type(pa.int64(), lambda value: value - 73911 + 2**53)
doubles_in_lists = as_type(DOUBLES, lambda value: [value])
maps = as_type(pa.map_(pa.string(), pa.float64()), lambda _: [("Zz-planted-7391", 7391.25)])
nested_structs = as_type(pa.struct({"a": pa.struct({"b": DOUBLES})}), lambda value: {"a": {"b": [value]}})
vectors = as_type(VECTOR_TYPE, lambda _: VECTOR)


# Runs and their checks; tests/conftest.py imports the fixtures, which makes them available to all test files


@pytest.fixture(scope="module")
def victim(spark):
    """A table of the catalog that must survive whatever a reference says."""
    spark.createDataFrame([(1, 1.0)], "id long, x double").write.saveAsTable("victim", mode="overwrite")
    yield
    assert spark.table("victim").count() == 1
    for table in spark.catalog.listTables():
        spark.sql(f"DROP TABLE `{table.name}`")


@pytest.fixture
def run_case(victim, spark, command, tmp_path, caplog):
    """Write the files of a case, run the command, and return its outcome and the names of what it wrote."""

    def run(files, arguments):
        references = _write(tmp_path, files)
        before = _state(spark, tmp_path)
        argv = [word.replace("{}", str(tmp_path)) for word in shlex.split(arguments)]
        inputs = ["--originals", references["o"], "--avatars", references["a"]]
        outcome = command(*inputs, *argv, output=None if "--output" in argv else tmp_path / "report")
        lines = [*outcome.problems, *outcome.out.splitlines(), *caplog.messages]
        lines = [line.replace(str(tmp_path), "") for line in lines]
        print(f"exit code {outcome.code}", *lines, sep="\n  ")
        showing = [line for line in lines if PLANTED in line]
        assert not showing, f"lines that show a value of a record: {showing}"
        after = _state(spark, tmp_path)
        return outcome, {name for name, state in after.items() if before.get(name) != state}

    return run


def _write(folder: Path, files):
    """Write the files of a case, and good tables where it has none; return the reference to each, by its stem."""
    references = {}
    for name, content in {"o.parquet": originals(), "a.parquet": avatars(), **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict) and path.suffix == ".orc":
            pyarrow.orc.write_table(pa.table(content), path)
        elif isinstance(content, dict):
            path.write_bytes(parquet_bytes(content))
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        references[path.stem] = f"{path.suffix[1:]}:{path}"
    return references


def _state(spark, folder: Path):
    """Return the files below a folder and the tables of the catalog, with what changes when they are written."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    files = {str(path.relative_to(folder)): (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}
    return files | {table.name: "a table" for table in spark.catalog.listTables()}


def assert_refused(run_case, case: Refused):
    """Check that a run ends with exit code 2 and exactly the lines of the case, and that it writes nothing."""
    outcome, written = run_case(case.files, case.arguments)
    assert outcome.code == 2, outcome.problems
    assert all(problem.startswith("local-cloaking: ") for problem in outcome.problems), outcome.problems
    unmatched = list(outcome.problems)
    for words in case.problems:
        matching = [problem for problem in unmatched if all(word in problem for word in words.split(" | "))]
        assert matching, f"no line has {words}: {unmatched}"
        unmatched.remove(matching[0])
    assert not unmatched, f"lines that were not expected: {unmatched}"
    assert not written, f"written although refused: {written}"
    assert outcome.report is None
