"""Build a k-d tree of equal-sized leaves over the avatars, in flat, memory-mappable arrays."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Counts = NDArray[np.int64]
Rows = NDArray[np.intp]
_Float = TypeVar("_Float", np.float32, np.float64)

LEAF = 250  # most avatars per leaf: smaller leaves cost calls, larger ones products; a leaf's counts must fit in a byte
NOWHERE = float(np.finfo(np.float32).max)  # |y|^2 in an empty slot of a leaf: beyond every bound


class Tree(NamedTuple):
    """Avatars in leaves of equal size, under a complete binary tree: node 1 is the root, 2i and 2i + 1 are below i."""

    points: Floats  # (leaves, ncp, size) distinct avatars; inf in an empty slot, at most one per leaf
    weights: Counts  # (leaves, size) how many avatars equal the point
    heavy: NDArray[np.bool_]  # (leaves,) whether some weight is above 1
    factors: Singles  # (leaves, size, ncp + 1) -2y and |y|^2, y relative to the leaf's centre, over 2^exponent
    centres: Floats  # (2 leaves, ncp) centres of the nodes' boxes; row 0 is unused
    halves: Floats  # (2 leaves, ncp) half the sides of these boxes, rounded up
    counts: Counts  # (2 leaves,) avatars below each node
    axes: Rows  # (leaves,) the component that divides a node
    planes: Floats  # (leaves,) where it divides: points below the plane go to node 2i
    exponent: Rows  # (1,) the unit of float32 coordinates is 2^exponent, about the size of a leaf

    @property
    def leaves(self) -> int:
        """The number of leaves, a power of two."""
        return len(self.points)

    @property
    def depth(self) -> int:
        """The number of levels below the root."""
        return self.leaves.bit_length() - 1


def squares(components: NDArray[_Float]) -> NDArray[_Float]:
    """Return the sum of squares over the first axis, rounded at each step in component order."""
    total: NDArray[_Float] = np.square(components[0])
    for component in components[1:]:
        total += np.square(component)
    return total


def build(avatars: Floats, weights: Counts) -> Tree:
    """Return the tree over distinct avatars (m, ncp), each of which represents `weights` (m,) equal avatars."""
    m, ncp = avatars.shape
    depth = max(0, -(-m // LEAF) - 1).bit_length()
    leaves = 1 << depth
    size = -(-m // leaves)
    order, axes, planes = _divide(avatars, depth, size)
    absent = order >= m  # empty slots: at most one per leaf, which then has two or more slots
    some = np.where(absent[:, :1], order[:, -1:], order[:, :1])
    rows = np.where(absent, some, order)
    points = np.ascontiguousarray(avatars[rows].transpose(0, 2, 1))
    centres, halves = _boxes(points)
    sides = halves[leaves:].max(axis=1)
    exponent = int(np.clip(np.frexp(np.median(sides[sides > 0]))[1], -1000, 1000)) if sides.any() else 0

    factors = np.empty((leaves, size, ncp + 1), np.float32)
    seen = points - centres[leaves:, :, None]
    seen *= np.ldexp(1.0, -exponent)
    factors[:, :, :ncp] = seen.transpose(0, 2, 1)
    np.copyto(seen, factors[:, :, :ncp].transpose(0, 2, 1))  # |y|^2 of the rounded y that are multiplied
    factors[:, :, ncp] = squares(seen.transpose(1, 0, 2))
    factors[:, :, :ncp] *= -2
    factors[absent] = [0.0] * ncp + [NOWHERE]
    points.transpose(0, 2, 1)[absent] = np.inf

    below = np.where(absent, 0, weights[rows])
    counts = [below.sum(axis=1)]
    while len(counts[-1]) > 1:
        counts.append(counts[-1][::2] + counts[-1][1::2])
    counts.append(counts[-1])
    return Tree(
        points, below, below.max(axis=1) > 1, factors, centres, halves, np.concatenate(counts[::-1]), axes, planes,
        np.array([exponent]),
    )  # fmt: skip


def _divide(avatars: Floats, depth: int, size: int) -> tuple[Rows, Rows, Floats]:
    """Halve all nodes of a level at once, each across its widest side; return the rows (leaves, size), axes and planes.

    The last leaves * size - m rows hold no avatar; the bits of their row numbers send them to different leaves.
    """
    m, ncp = avatars.shape
    total = size << depth
    keys = np.empty((ncp, total))
    keys[:, :m] = avatars.T
    axes, planes = np.zeros(1 << depth, np.intp), np.zeros(1 << depth)
    order = np.arange(total)[None]
    for level in range(depth):
        nodes, width = 1 << level, total >> level
        keys[:, m:] = np.where(np.arange(total - m) >> level & 1, np.inf, -np.inf)
        sample = np.minimum(order[:, :: max(1, width // 32)], m - 1)  # enough points to find the widest side
        axis = np.ptp(keys[:, sample], axis=2).argmax(axis=0)
        key = keys.ravel().take(axis[:, None] * total + order)
        parts = np.argpartition(key, width // 2, axis=1)
        axes[nodes : 2 * nodes] = axis
        planes[nodes : 2 * nodes] = np.take_along_axis(key, parts[:, width // 2, None], axis=1)[:, 0]
        order = np.take_along_axis(order, parts, axis=1).reshape(2 * nodes, width // 2)
    return order, axes, planes


def _boxes(points: Floats) -> tuple[Floats, Floats]:
    """Return the centres and half sides of the boxes of all nodes and leaves, in the order of the nodes."""
    low, high = points.min(axis=2), points.max(axis=2)
    lows, highs = [low], [high]
    while len(low) > 1:
        low, high = np.minimum(low[::2], low[1::2]), np.maximum(high[::2], high[1::2])
        lows.append(low)
        highs.append(high)
    low, high = np.concatenate([low, *lows[::-1]]), np.concatenate([high, *highs[::-1]])
    return box(low, high)


def box(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the centre of the box between two corners, and half its sides, rounded up."""
    centre = low / 2 + high / 2  # never overflows
    return centre, np.maximum(high - centre, centre - low) * (1 + 2.0**-50)


def save(tree: Tree, path: Path | str) -> None:
    """Write the arrays to one file as successive .npy records, each starting at a multiple of 64 bytes."""
    with Path(path).open("wb") as file:
        for array in tree:
            np.save(file, array)
            file.write(bytes(-file.tell() % 64))


def load(path: Path | str) -> Tree:
    """Map the arrays of a saved tree into memory."""
    arrays = []
    with Path(path).open("rb") as file:
        for _ in Tree._fields:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            arrays.append(np.memmap(path, dtype, mode="r", offset=file.tell(), shape=shape))
            file.seek(arrays[-1].nbytes, 1)
            file.seek(-file.tell() % 64, 1)
    return Tree(*arrays)


def leaf_of(tree: Tree, originals: Floats) -> Rows:
    """Return the leaf (n,) whose region holds each original (n, ncp); leaves with near numbers are near in space."""
    n = len(originals)
    flat, start = np.ascontiguousarray(originals.T).ravel(), np.arange(n)
    node = np.ones(n, np.intp)
    for _ in range(tree.depth):
        place = tree.axes.take(node)
        place *= n
        place += start
        above = flat.take(place) >= tree.planes.take(node)
        node += node
        node += above
    return node - tree.leaves
