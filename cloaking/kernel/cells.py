"""Divide space into cells, using a sample of the avatars, so that an original visits only cells its ball crosses.

numpy only. Every point lies in exactly one cell, and one function finds it for avatars and originals alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_PAIRS = 1 << 20  # the most (original, cell) pairs tested together: 8 MiB per temporary array
_TOGETHER = 16  # boxes grouped under one larger box, which decides for all of them where it can


@dataclass(frozen=True)
class Cells:
    """Space halved repeatedly into leaf cells, and points so frequent that each has a cell of its own.

    Inner node i sends points whose coordinate `axis[i]` is below `cut[i]` to node `below[i]`, the others to node
    `below[i] + 1`; a leaf has axis -1 and its cell in `cell[i]`. Frequent points are numbered after the leaves' cells.
    """

    axis: Integers
    cut: Floats
    below: Integers
    cell: Integers
    frequent: Floats  # (points, ncp)

    @property
    def count(self) -> int:
        """The number of cells, including those of the frequent points."""
        return self.leaves + len(self.frequent)

    @property
    def leaves(self) -> int:
        """The number of cells that are not a single point."""
        return int(np.count_nonzero(self.axis < 0))

    def of(self, points: Floats) -> Integers:
        """Return the cell of each of the points `(n, ncp)`."""
        node = np.zeros(len(points), np.int64)
        inner = np.flatnonzero(self.axis[node] >= 0)
        while len(inner):
            at = node[inner]
            above = points[inner, self.axis[at]] >= self.cut[at]
            node[inner] = self.below[at] + above
            inner = inner[self.axis[node[inner]] >= 0]
        cell = self.cell[node]
        for number, point in enumerate(self.frequent, start=self.leaves):
            cell[(points == point).all(axis=1)] = number
        return cell


def cut_cells(sample: Floats, most: int) -> Cells:
    """Divide space so that no cell holds more than `most` of the sample's points `(s, ncp)`, unless they are equal.

    A point that occurs more than `most` times in the sample gets a cell of its own.
    """
    points, sizes = np.unique(sample, axis=0, return_counts=True)
    frequent = points[sizes > most]
    rest = np.repeat(points[sizes <= most], sizes[sizes <= most], axis=0)
    nodes = [_Node()]
    leaves = 0
    pending = [(nodes[0], rest)]
    while pending:
        node, inside = pending.pop()
        found = _middle_cut(inside) if len(inside) > most else None
        if found is None:
            node.cell = leaves
            leaves += 1
            continue
        node.axis, node.cut = found
        node.below = len(nodes)
        nodes += [_Node(), _Node()]
        is_above = inside[:, node.axis] >= node.cut
        pending += [(nodes[-2], inside[~is_above]), (nodes[-1], inside[is_above])]
    axis, below, cell = (np.array([getattr(node, name) for node in nodes]) for name in ("axis", "below", "cell"))
    return Cells(axis, np.array([node.cut for node in nodes]), below, cell, frequent)


@dataclass
class _Node:
    """A node of the division while it is built; axis -1 marks a leaf."""

    axis: int = -1
    cut: float = 0.0
    below: int = 0
    cell: int = 0


def _middle_cut(points: Floats) -> tuple[int, float] | None:
    """Return the widest axis and a cut at or next to its median, with points on both sides; None if all are equal."""
    low, high = points.min(axis=0), points.max(axis=0)
    axis = int(np.argmax(high / 2 - low / 2))  # halves, since the difference may overflow
    if low[axis] == high[axis]:
        return None
    values = points[:, axis]
    middle = np.partition(values, len(values) // 2)[len(values) // 2]
    return axis, float(middle if middle > low[axis] else values[values > low[axis]].min())


@dataclass(frozen=True)
class Boxes:
    """The exact bounding box and number of avatars of each cell that holds any, ordered by the cell's number.

    Cells with near numbers are near each other in space, except those of the frequent points.
    """

    cell: Integers
    size: Integers
    low: Floats = field(repr=False)  # (cells, ncp)
    high: Floats = field(repr=False)

    def meet(
        self, originals: Floats, lower: Floats, upper: Floats, everywhere: NDArray[np.bool_]
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Decide which cells each original must visit, and count the avatars of cells that need no visit.

        The distances to a box's nearest and farthest points are summed by the same operations in the same order as the
        distance to an avatar, and rounding is monotone: if such a point is beyond or within a bound, so is every
        avatar of the box, bit for bit. A box around several boxes decides for all of them in the same way.

        Args:
            originals: `(n, ncp)`.
            lower: `(n,)`, squared distance below which an avatar is closer than the original's own.
            upper: `(n,)`, squared distance up to which an avatar is within the tie bound.
            everywhere: `(n,)`, originals that must visit all cells.

        Returns:
            row, cell: one pair per visit, in the order of the rows.
            closer, within: `(n,)`, counts of avatars in cells that need no visit.
        """
        n, levels = len(originals), self._levels()
        closer, within = np.zeros(n, np.int64), np.zeros(n, np.int64)
        rows, cells = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        step = max(1, _PAIRS // max(1, len(self.cell)))
        for start in range(0, n, step):
            part = slice(start, start + step)
            x, count = np.ascontiguousarray(originals[part].T), len(originals[part])
            row, box = (axis.ravel() for axis in np.indices((count, len(levels[-1].cell))))
            for level in reversed(levels):
                if level is not levels[-1]:  # replace each box by those inside it
                    row, box = np.repeat(row, _TOGETHER), (box[:, None] * _TOGETHER + np.arange(_TOGETHER)).ravel()
                    there = box < len(level.cell)
                    row, box = row[there], box[there]
                ask = everywhere[part][row]
                near, far = level._corners(x, row, box)
                low, high = lower[part][row], upper[part][row]
                all_within = ~ask & (far <= high) & ((far < low) | (near >= low))
                all_closer = all_within & (far < low)
                for total, decided in ((closer, all_closer), (within, all_within)):
                    total[part] += np.bincount(row[decided], level.size[box[decided]], count).astype(np.int64)
                crossed = (ask | ~(near > high)) & ~all_within
                row, box = row[crossed], box[crossed]
            rows.append(row + start)
            cells.append(self.cell[box])
        return np.concatenate(rows), np.concatenate(cells), closer, within

    def _levels(self) -> list[Boxes]:
        """Return these boxes, then boxes around _TOGETHER of them each, and so on, until a few are left."""
        levels = [self]
        while len(levels[-1].cell) > _TOGETHER:
            below = levels[-1]
            starts = np.arange(0, len(below.cell), _TOGETHER)
            levels.append(
                Boxes(
                    np.arange(len(starts)),
                    np.add.reduceat(below.size, starts),
                    np.minimum.reduceat(below.low, starts),
                    np.maximum.reduceat(below.high, starts),
                )
            )
        return levels

    def _corners(self, x: Floats, row: Integers, box: Integers) -> tuple[Floats, Floats]:
        """Return squared distances `(pairs,)` from points, columns of x, to the nearest and farthest ends of boxes."""
        near, far = np.zeros(len(row)), np.zeros(len(row))
        with np.errstate(over="ignore", under="ignore"):
            for values, low, high in zip(x, self.low.T, self.high.T, strict=True):
                value = values[row]
                to_low, to_high = low[box] - value, value - high[box]
                near += np.square(np.maximum(np.maximum(to_low, to_high), 0.0))
                far += np.square(np.maximum(np.abs(to_low), np.abs(to_high)))
        return near, far
