"""Count by partition: space is cut into cells of avatars, each original visits cells, and its counts are summed.

An original adds the sizes of the cells entirely inside its ball, visits the cells that its ball crosses, and skips the
rest. A task holds at most the avatars of one cell and one batch of the originals that visit it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.errors import InputError
from cloaking.kernel import AvatarIndex
from cloaking.kernel.cells import Boxes, Cells, cut_cells
from cloaking.kernel.tie_rule import bounds
from cloaking.spark.arrow import Batches, collected, joined, matrix, schema, with_columns
from cloaking.spark.link import Columns
from cloaking.spark.plan import Plan

log = logging.getLogger(__name__)

SAMPLED_PER_CELL = 1_000  # with this many sampled points per cell, the cells' sizes are equal within a tenth

Integers = NDArray[np.int64]


def count(plan: Plan, linked: DataFrame) -> DataFrame:
    """Return one row per original: its key, group, closer and within (bigint); arguments as for `count.count`."""
    avatars, columns, rows = plan.avatars, plan.columns, plan.rows.avatars
    tie_tolerance, cell_rows = plan.options.tie_tolerance, plan.options.cell_rows
    start = time.monotonic()
    cells = _cut(avatars, columns, rows, cell_rows)
    boxes = _boxes(avatars, columns, cells)
    found = int(boxes.size.sum())
    if found != rows:
        raise InputError(f"avatars: {rows:,} rows when checked, {found:,} when read; measure a snapshot")
    # A cell that is too large, as the sample missed a cluster of points, is split by a hash; each part is visited.
    parts = np.ones(cells.count, np.int64)
    parts[boxes.cell] = -(-boxes.size // cell_rows)
    log.info(
        "cells: avatars=%d cells=%d largest=%d split=%d seconds=%.1f",
        rows,
        len(boxes.cell),
        boxes.size.max(),
        np.count_nonzero(parts > 1),
        time.monotonic() - start,
    )
    visits = _visits(linked, columns, cells, boxes, parts, tie_tolerance)
    placed = _placed(avatars, columns, cells, parts)
    both = visits.unionByName(placed, allowMissingColumns=True)
    ordered = both.repartition(int(parts.sum()), "cell", "part").sortWithinPartitions("cell", "part", "visitor")
    kept = [*columns.keys, "group"]
    partial = ordered.mapInArrow(
        _cell_counter(columns, kept, tie_tolerance),
        schema(linked, kept, closer=T.LongType(), within=T.LongType()),
    )
    return partial.groupBy(*kept).agg(F.sum("closer").alias("closer"), F.sum("within").alias("within"))


def _cut(avatars: DataFrame, columns: Columns, rows: int, cell_rows: int) -> Cells:
    """Cut space into cells of about `cell_rows` avatars, estimated from a sample."""
    wanted = SAMPLED_PER_CELL * -(-rows // cell_rows)
    points = avatars.select(*columns.avatars)
    if wanted < rows:
        points = points.sample(fraction=wanted / rows, seed=0)
    sample = matrix(collected(points), columns.avatars)
    # Nine tenths, so that the sample's error does not push a cell over its limit.
    return cut_cells(sample, max(1, int(0.9 * cell_rows * len(sample) / rows)))


def _boxes(avatars: DataFrame, columns: Columns, cells: Cells) -> Boxes:
    """Return each cell's exact size and bounding box."""
    placed = _placed(avatars, columns, cells, np.ones(cells.count, np.int64))
    corners = [function(name) for function in (F.min, F.max) for name in columns.avatars]
    found = collected(placed.groupBy("cell").agg(F.count(F.lit(1)), *corners))
    found = np.column_stack([column.to_numpy().astype(np.float64) for column in found.columns])
    found = found[found[:, 0].argsort()]
    cell, size = found[:, :2].astype(np.int64).T
    low, high = np.hsplit(found[:, 2:], 2)
    return Boxes(cell, size, low, high)


def _placed(avatars: DataFrame, columns: Columns, cells: Cells, parts: Integers) -> DataFrame:
    """Add to each avatar its cell and its part of the cell, by a hash, so that a retried task gives the same parts."""
    own = columns.avatars
    hashed = avatars.select(*own, F.xxhash64(*columns.keys, *own).alias("hash"))

    def placed(batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in joined(batches):
            cell = cells.of(matrix(table, own))
            part = table["hash"].to_numpy() % parts[cell]
            yield from with_columns(table.select(own), cell=cell, part=part, visitor=np.zeros(len(cell), bool))

    return hashed.mapInArrow(
        placed, schema(avatars, own, cell=T.LongType(), part=T.LongType(), visitor=T.BooleanType())
    )


def _visits(
    linked: DataFrame, columns: Columns, cells: Cells, boxes: Boxes, parts: Integers, tie_tolerance: float
) -> DataFrame:
    """Return a row per original and part of a cell that it visits; its first row has the counts that need no visit.

    An original that visits no cell also has one row, with a negative cell; these rows are spread over as many tasks.
    """
    originals, own = columns.originals, columns.avatars
    kept = [*columns.keys, "group", *originals, *own]
    hashed = linked.select(*kept, F.xxhash64(*columns.keys).alias("hash"))
    spread = int(parts.sum())

    def visiting(batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in joined(batches):
            x, y = matrix(table, originals), matrix(table, own)
            exponents, lower, upper = bounds(x, y, tie_tolerance)
            row, cell, closer, within = boxes.meet(x, lower, upper, everywhere=exponents != 0)
            row, cell, part = _each_part(row, cell, parts)
            own_here = (cells.of(y)[row] == cell) & (parts[cell] == 1)  # in a split cell its part is not determined
            idle = np.setdiff1d(np.arange(len(x)), row)
            no_cell = -1 - table["hash"].to_numpy()[idle] % spread
            row = np.concatenate([row, idle])
            first = np.zeros(len(row), bool)
            first[np.unique(row, return_index=True)[1]] = True
            yield from with_columns(
                table.select(kept).take(pa.array(row)),
                cell=np.concatenate([cell, no_cell]),
                part=np.concatenate([part, np.zeros_like(idle)]),
                visitor=np.ones(len(row), bool),
                own_here=np.concatenate([own_here, np.zeros(len(idle), bool)]),
                closer=np.where(first, closer[row], 0),
                within=np.where(first, within[row], 0),
            )

    longs = dict.fromkeys(("cell", "part"), T.LongType())
    flags = dict.fromkeys(("visitor", "own_here"), T.BooleanType())
    counts = dict.fromkeys(("closer", "within"), T.LongType())
    return hashed.mapInArrow(visiting, schema(linked, kept, **longs, **flags, **counts))


def _each_part(row: Integers, cell: Integers, parts: Integers) -> tuple[Integers, Integers, Integers]:
    """Repeat each visit of a cell for every part of the cell."""
    times = parts[cell]
    part = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return np.repeat(row, times), np.repeat(cell, times), part


def _cell_counter(
    columns: Columns, kept: list[str], tie_tolerance: float
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the function that counts over rows sorted by cell and part, with the avatars before the visitors."""
    originals, own = columns.originals, columns.avatars

    def counted(batches: Batches) -> Iterator[pa.RecordBatch]:
        here: tuple[int, int] | None = None
        points: list[NDArray[np.float64]] = []
        index: AvatarIndex | None = None
        for place, visitor, table in _runs(joined(batches)):
            if place != here:
                here, points, index = place, [], None
            if not visitor:
                points.append(matrix(table, own))
                continue
            closer, within = (table[name].to_numpy() for name in ("closer", "within"))
            if points:
                index, points = AvatarIndex(np.concatenate(points)), []
            if index is not None:
                own_here = table["own_here"].to_numpy()
                more = index.count(matrix(table, originals), matrix(table, own), tie_tolerance, own_here)
                closer, within = closer + more[0], within + more[1]
            yield from with_columns(table.select(kept), closer=closer, within=within)

    return counted


def _runs(tables: Iterable[pa.Table]) -> Iterator[tuple[tuple[int, int], bool, pa.Table]]:
    """Split tables where cell, part or visitor changes, and yield (cell, part), visitor and rows of each piece."""
    for table in tables:
        cell, part, visitor = (table[name].to_numpy() for name in ("cell", "part", "visitor"))
        change = (np.diff(cell) != 0) | (np.diff(part) != 0) | (visitor[1:] != visitor[:-1])
        starts = [0, *(np.flatnonzero(change) + 1), len(cell)]
        for start, end in pairwise(starts):
            if end > start:
                place = (int(cell[start]), int(part[start]))
                yield place, bool(visitor[start]), table.slice(start, end - start)
