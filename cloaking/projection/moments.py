"""Sum selected columns of the originals, for the axes, in one pass and bounded memory.

Numbers are summed as z = (x - centre) / unit, where the centre is near the mean and the unit a power of two above the
range: nothing is lost to cancellation (a raw sum of squares loses 0.14 % of the variance of a column of epoch
seconds), nothing overflows, and blocks merge by addition, so that Spark can merge them instead of the driver. Pairs of
modalities are counted, and numbers summed per modality, by the modalities' codes. Indicators are built only for
categories with few modalities, a few rows at a time, because there a matrix product is faster.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame

from cloaking.errors import InputError
from cloaking.projection.axes import Sums
from cloaking.projection.profiles import MOST_COLUMNS, Profile

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

CENTRE_STEPS = 4_096  # centres are multiples of unit / 4,096, so that the mean's order of summation seldom changes them
FEW_LEVELS = 5  # up to this many modalities, a matrix product of indicators is faster than counting by codes
_DENSE_ROWS = 1_024  # rows whose indicators are in memory at a time: 8 MiB for 1,000 columns
_CHUNK = 1_024  # numbers per record: Python receives 10,000 records at a time, which are 80 MiB
_SCHEMA = "chunk int, part int, sums binary"


@dataclass(frozen=True)
class Frame:
    """The basis of the sums: per number its centre, unit and value if missing, per category its modalities."""

    centre: Floats
    unit: Floats
    fill: Floats
    levels: tuple[tuple[str | None, ...], ...]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The first of each category's columns among the p columns, and the end of the last category's."""
        return len(self.centre) + np.cumsum([0, *map(len, self.levels)])


def frame(profile: Profile, numbers: Sequence[int], categories: Sequence[int], label: str) -> Frame:
    """Return the frame for the numbers and categories at these positions; modalities sorted by text, missing last.

    Raises:
        InputError: there are no columns, or too many.
    """
    found = [profile.continuous[i] for i in numbers]
    levels = [sorted(profile.categorical[q], key=lambda level: (level is None, level or "")) for q in categories]
    columns = len(found) + sum(map(len, levels))
    if not columns:
        raise InputError(f"{label}: every column holds one value; there is nothing to project")
    if columns > MOST_COLUMNS:
        raise InputError(
            f"{label}: {columns:,} numbers and modalities, at most {MOST_COLUMNS:,} can be projected; "
            "regroup modalities or leave columns out with --drop"
        )
    scales = [centre_and_unit(each.mean, each.low, each.high) for each in found]
    centre, unit = np.array(scales).reshape(-1, 2).T
    return Frame(centre, unit, np.array([each.mean for each in found]), tuple(map(tuple, levels)))


def centre_and_unit(mean: float, low: float, high: float) -> tuple[float, float]:
    """Return a centre near the mean and a power of two above the range."""
    unit = 2.0 ** int(np.frexp(high - low)[1])
    step = unit / CENTRE_STEPS
    return float(np.rint(mean / step) * step), unit


def sums(selected: DataFrame, numbers: Sequence[int], categories: Sequence[int], frame: Frame, label: str) -> Sums:
    """Return the sums over the selected rows, in one Spark action.

    Args:
        selected: the result of `roles.select`.
        numbers: the positions of the frame's numbers among the selected numbers.
        categories: the same for the categories.
        frame: the basis of the sums.
        label: the name of the table in messages.

    Raises:
        InputError: the rows have disappeared since the table was checked.
    """
    partial = selected.mapInArrow(_summer(numbers, categories, frame), _SCHEMA)
    ordered = partial.repartition("chunk").sortWithinPartitions("part")
    rows = ordered.mapInArrow(_merged, _SCHEMA).collect()
    if not rows:
        raise InputError(f"{label}: its rows are gone since it was checked; project a snapshot of the table")
    flat = np.concatenate([np.frombuffer(row["sums"]) for row in sorted(rows, key=lambda row: row["chunk"])])
    p, c = int(frame.offsets[-1]), len(frame.centre)
    products = np.zeros((p, p))
    products[np.triu_indices(p)] = flat[1 + c : 1 + c + p * (p + 1) // 2]
    return Sums(int(flat[0]), frame.centre, frame.unit, flat[1 : 1 + c], products)


def codes(array: pa.Array, levels: Sequence[str | None]) -> Codes:
    """Return the index of each row's modality among the levels, or the number of levels if it is not among them."""
    place = pc.index_in(array, value_set=pa.array(levels, type=array.type))
    found: Codes = pc.fill_null(place, len(levels)).to_numpy(zero_copy_only=False).astype(np.intp)
    return found


def numbers_of(batch: pa.RecordBatch, place: int) -> Floats:
    """Return the values of the number at a position, nan where they are missing."""
    values: Floats = batch[f"number_{place}"].to_numpy(zero_copy_only=False)
    return values


def add(totals: Floats, products: Floats, z: Floats, coded: Sequence[Codes], frame: Frame) -> None:
    """Add the sums of a block of rows to the totals `(numbers,)` and to the upper triangle of the products `(p, p)`.

    Args:
        totals: sums of z.
        products: as in `Sums`.
        z: `(numbers, n)`.
        coded: `(n,)` per category.
        frame: gives the columns of each category's modalities.
    """
    at, sizes = frame.offsets, np.diff(frame.offsets)
    totals += z.sum(axis=1)
    _add_dense(products, z, coded, [q for q, size in enumerate(sizes) if size <= FEW_LEVELS], frame)
    for q, code in enumerate(coded):
        if sizes[q] <= FEW_LEVELS:
            continue
        own, size = slice(at[q], at[q + 1]), sizes[q]
        diagonal = np.arange(at[q], at[q + 1])
        products[diagonal, diagonal] += np.bincount(code, minlength=size)
        for i, values in enumerate(z):
            products[i, own] += np.bincount(code, weights=values, minlength=size)
        for r, other in enumerate(coded):
            if r < q:
                pairs = np.bincount(other * size + code, minlength=sizes[r] * size)
                products[at[r] : at[r + 1], own] += pairs.reshape(sizes[r], size)
            elif r > q and sizes[r] <= FEW_LEVELS:  # a later category with many modalities counts this pair itself
                pairs = np.bincount(code * sizes[r] + other, minlength=size * sizes[r])
                products[own, at[r] : at[r + 1]] += pairs.reshape(size, sizes[r])


def _add_dense(products: Floats, z: Floats, coded: Sequence[Codes], few: Sequence[int], frame: Frame) -> None:
    """Add the products of numbers and categories with few modalities, by matrix products of a few rows each."""
    at, c, n = frame.offsets, *z.shape
    place = np.concatenate([np.arange(c), *(np.arange(at[q], at[q + 1]) for q in few)])
    starts = c + np.cumsum([0, *(at[q + 1] - at[q] for q in few)])
    sums = np.zeros((len(place), len(place)))
    for start in range(0, n, _DENSE_ROWS):
        rows = slice(start, min(start + _DENSE_ROWS, n))
        dense = np.zeros((len(place), rows.stop - rows.start))
        dense[:c] = z[:, rows]
        for first, q in zip(starts, few, strict=False):
            dense[first + coded[q][rows], np.arange(dense.shape[1])] = 1.0
        sums += dense @ dense.T
    products[np.ix_(place, place)] += sums


def _summer(
    numbers: Sequence[int], categories: Sequence[int], frame: Frame
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that sums one partition and yields the sums in chunks."""

    def summed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        n, p = 0, int(frame.offsets[-1])
        totals, products = np.zeros(len(frame.centre)), np.zeros((p, p))
        for batch in batches:
            n += batch.num_rows
            z = np.empty((len(numbers), batch.num_rows))
            for i, place in enumerate(numbers):
                values = numbers_of(batch, place)
                z[i] = np.where(np.isnan(values), frame.fill[i], values)
                z[i] -= frame.centre[i]
                z[i] /= frame.unit[i]
            coded = [codes(batch[f"category_{q}"], level) for q, level in zip(categories, frame.levels, strict=True)]
            if any(len(code) and code.max() == len(levels) for code, levels in zip(coded, frame.levels, strict=True)):
                raise ValueError("a modality was not there when the table was checked; project a snapshot of the table")
            add(totals, products, z, coded, frame)
        flat = np.concatenate([[n], totals, products[np.triu_indices(p)]])
        part = TaskContext.get().partitionId()  # type: ignore[union-attr]
        if n:
            yield from _records({k: flat[at : at + _CHUNK] for k, at in enumerate(range(0, len(flat), _CHUNK))}, part)

    return summed


def _merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up the chunks in one partition, which arrive in the order of the partitions that they sum."""
    chunks: dict[int, Floats] = {}
    for batch in batches:
        for chunk, value in zip(batch["chunk"].to_pylist(), batch["sums"], strict=True):
            part = np.frombuffer(value.as_buffer())
            chunks[chunk] = chunks[chunk] + part if chunk in chunks else part.copy()
    yield from _records(chunks, 0)


def _records(chunks: dict[int, Floats], part: int) -> Iterator[pa.RecordBatch]:
    columns = [
        pa.array(list(chunks), pa.int32()),
        pa.array([part] * len(chunks), pa.int32()),
        pa.array([values.tobytes() for values in chunks.values()], pa.binary()),
    ]
    yield pa.RecordBatch.from_arrays(columns, names=["chunk", "part", "sums"])
