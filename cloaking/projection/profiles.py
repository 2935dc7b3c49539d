"""Profile the selected columns of a table in one pass: missing values, ranges, modalities and their numbers of rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

MOST_COLUMNS = 4_096  # numbers and modalities in all: 128 MiB for each matrix of them, a minute for its eigenvectors
FEW_VALUES = 10  # numbers with at most so many distinct values may be codes of categories
_COLLECTED = 100_000  # the most rows that the driver collects: modalities of all columns, far above MOST_COLUMNS

_ROWS = -1  # the column number of the record that counts the table's rows
_SCHEMA = (
    "column int, level string, rows bigint, infinite bigint, low double, high double, total double, beyond boolean"
)
_NAMES = [field.split()[0] for field in _SCHEMA.split(", ")]

Record = tuple[int, str | None, int, int, float | None, float | None, float, bool]


@dataclass(frozen=True)
class NumberProfile:
    """The contents of a continuous column: its number of `values`, including infinite ones, their range and mean."""

    values: int
    infinite: int
    low: float
    high: float
    mean: float
    few: bool  # at most FEW_VALUES distinct values


@dataclass(frozen=True)
class Profile:
    """The contents of a table's columns, in the order of their roles; None is the missing modality."""

    rows: int
    continuous: tuple[NumberProfile, ...]
    categorical: tuple[Mapping[str | None, int], ...]
    endless: tuple[int, ...] = ()  # positions of categorical columns with more modalities than can be counted


_NOTHING = NumberProfile(0, 0, np.nan, np.nan, np.nan, False)  # the profile in a table without partitions


def profile(selected: DataFrame, continuous: int, categorical: int) -> Profile:
    """Return the profile of `roles.select`'s columns, given the number of each kind, in one Spark action."""
    found = selected.mapInArrow(_profiler(continuous, categorical), _SCHEMA)
    merged = found.groupBy("column", "level").agg(
        *(F.sum(name).alias(name) for name in ("rows", "infinite", "total")),
        F.min("low").alias("low"),
        F.max("high").alias("high"),
        F.max("beyond").alias("beyond"),
    )
    rows = merged.limit(_COLLECTED).collect()

    levels: list[dict[str | None, int]] = [{} for _ in range(categorical)]
    distinct: Counter[int] = Counter()
    numbers: dict[int, NumberProfile] = {}
    endless: set[int] = set()
    total = 0
    for row in rows:
        place = row["column"]
        if place == _ROWS:
            total = row["rows"]
        elif place >= continuous:
            if row["beyond"]:
                endless.add(place - continuous)
            if row["rows"]:
                levels[place - continuous][row["level"]] = row["rows"]
        elif row["level"] is not None:
            distinct[place] += 1
        else:
            n = row["rows"]
            low, high = (np.nan if row[name] is None else row[name] for name in ("low", "high"))
            mean = row["total"] / n if n else np.nan
            numbers[place] = NumberProfile(n, row["infinite"], low, high, mean, not row["beyond"])
    endless |= {q for q, each in enumerate(levels) if len(each) > MOST_COLUMNS}
    if len(rows) == _COLLECTED and categorical:  # some rows are cut off: if no column is beyond, take the largest
        endless = endless or {max(range(categorical), key=lambda q: len(levels[q]))}
    return Profile(
        total,
        tuple(_with_distinct(numbers.get(i, _NOTHING), distinct[i]) for i in range(continuous)),
        tuple(levels),
        tuple(sorted(endless)),
    )


def _with_distinct(number: NumberProfile, distinct: int) -> NumberProfile:
    few = number.few and distinct <= FEW_VALUES
    return NumberProfile(number.values, number.infinite, number.low, number.high, number.mean, few)


def _profiler(continuous: int, categorical: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that turns one partition into records of _SCHEMA."""

    def profiled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        numbers = [_Range() for _ in range(continuous)]
        levels: list[Counter[str | None] | None] = [Counter() for _ in range(categorical)]
        for batch in batches:
            rows += batch.num_rows
            for i, number in enumerate(numbers):
                number.add(batch[f"number_{i}"])
            for q, known in enumerate(levels):
                if known is None:
                    continue
                counted = pc.value_counts(batch[f"category_{q}"])
                known.update(dict(zip(*(counted.field(k).to_pylist() for k in (0, 1)), strict=True)))
                if len(known) > MOST_COLUMNS:
                    levels[q] = None
        records: list[Record] = [(_ROWS, None, rows, 0, None, None, 0.0, False)]
        for i, number in enumerate(numbers):
            records += number.records(i)
        for place, counts in enumerate(levels, start=continuous):
            if counts is None:
                records.append((place, None, 0, 0, None, None, 0.0, True))
            else:
                records += [(place, level, n, 0, None, None, 0.0, False) for level, n in counts.items()]
        schema = pa.schema(
            zip(_NAMES, (pa.int32(), pa.string(), *[pa.int64()] * 2, *[pa.float64()] * 3, pa.bool_()), strict=True)
        )
        columns = [
            pa.array(values, kind) for values, kind in zip(zip(*records, strict=True), schema.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return profiled


class _Range:
    """The range, sum and first distinct values of a continuous column in one partition."""

    def __init__(self) -> None:
        self.values = self.infinite = 0
        self.low, self.high, self.total = np.inf, -np.inf, 0.0
        self.distinct: set[float] = set()

    def add(self, array: pa.Array) -> None:
        values = array.drop_null().to_numpy(zero_copy_only=False)
        if not len(values):
            return
        self.values += len(values)
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        if not np.isfinite([self.low, self.high]).all():
            self.infinite += int(np.count_nonzero(np.isinf(values)))
            values = values[np.isfinite(values)]
        with np.errstate(over="ignore"):  # if the sum overflows, the range shows the cause
            self.total += float(values.sum())
        if len(self.distinct) <= FEW_VALUES:
            self.distinct |= set(np.unique(values + 0.0)[: FEW_VALUES + 1].tolist())

    def records(self, place: int) -> list[Record]:
        beyond = len(self.distinct) > FEW_VALUES
        low, high = (float(self.low), float(self.high)) if self.values else (None, None)
        summary: Record = (place, None, self.values, self.infinite, low, high, self.total, beyond)
        seen: list[Record] = [] if beyond else [(place, repr(v), 0, 0, None, None, 0.0, False) for v in self.distinct]
        return [summary, *seen]
