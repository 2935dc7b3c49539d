"""Count the avatars that are certainly closer, in float32; return the pairs that float32 cannot decide.

An avatar counts as inside or outside a ball only if the error bound derived in `balls` leaves no doubt; all other pairs
of a ball and a leaf are returned for exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloaking.kernel.balls import LARGEST, balls_of, slack
from cloaking.kernel.tree import Counts, Floats, Rows, Singles, Tree, squares

_LEVELS = 3  # of the tree that one step of the descent goes down
_PAIRS = 1 << 16  # (block, node) pairs tested at once
_TILE = 1 << 17  # numbers in a temporary array of the inner loops: 512 KiB stay in a core's cache
_PRODUCT = 1_000_000  # multiplications in a matrix product: up to here OpenBLAS uses its kernels for small matrices
_OPEN = 1 << 20  # (original, leaf) pairs to collect before leaves are counted, so that many originals share a leaf
_STRIP = 1 << 20  # coordinates of these pairs held at once: 8 MiB in float64
_DOUBLE = 1e-13  # margin for the rounding of the float64 boxes, relative to the square of the farthest distance


class Undecided(NamedTuple):
    """Pairs of a ball and a leaf with points that may be on either side of a bound."""

    rows: Rows  # (pairs,) balls
    leaves: Rows  # (pairs,)
    sure: Counts  # (pairs,) avatars of the leaf already counted, certainly below the lower bound
    points: Counts  # (pairs,) undecided points of the leaf, at least 1
    avatars: Counts  # (pairs,) undecided avatars: the sum of the points' weights


class Sieve:
    """A count in progress: blocks descend the tree, originals are tested against leaves, products count in the leaves.

    Iterating once does all the work and yields the undecided pairs; then `closer` is the number of avatars (n,) that
    are certainly nearer than `lower`.

    Args:
        tree: of the avatars.
        originals: `(n, ncp)`, at least one; neighbours in space should be neighbours in order, for speed.
        lower, upper: `(n,)` squared distances in units of 4^exponents.
        exponents: `(n,)`.
    """

    def __init__(
        self, tree: Tree, originals: Floats, lower: Floats, upper: Floats, exponents: NDArray[np.int32]
    ) -> None:
        self.tree, self.balls = tree, balls_of(tree, originals, lower, upper, exponents)
        scale = np.ldexp(1.0, -int(tree.exponent[0]))
        self.slack = slack(tree.centres.shape[1])
        self.centres, self.halves = tree.centres * scale, tree.halves * scale
        self.radii = squares(self.halves.T)  # (nodes,) squared distance from a box's centre to its corners
        self.size = self.balls.lowers.shape[1]  # number of originals in a block
        self.tiles = np.zeros((5, max(_TILE, self.size)), np.float32)  # the first stays zero
        self.inside = np.zeros(len(self.balls.middles))  # avatars inside the lower balls of all originals of a block
        self.counted = np.zeros(len(self.balls.middles) * self.size)  # the others per original, exact up to 2^53
        self.waiting: list[tuple[Rows, Rows]] = []
        self.open_pairs = 0

    def __iter__(self) -> Iterator[Undecided]:
        for block, nodes, far in self._descend():
            self._test(block, nodes, far)
            if self.open_pairs > _OPEN:
                yield from self._count_leaves()
        yield from self._count_leaves()

    @property
    def closer(self) -> Counts:
        """The number of avatars (n,) certainly nearer than the lower bound."""
        counts = self.counted + np.repeat(self.inside, self.size)
        return counts[: len(self.balls.centres)].astype(np.int64)

    def _descend(self) -> Iterator[tuple[int, Rows, Floats]]:
        """Yield per block the leaves that may touch an upper ball and are not in all lower ones, with the far distance.

        All blocks go down the tree together. The far distance, squared, is between the farthest points of both boxes.
        """
        tree, balls, blocks = self.tree, self.balls, len(self.balls.middles)
        smallest, _, largest = balls.bounds
        start = tree.depth % _LEVELS
        level_blocks, nodes = np.arange(blocks).repeat(1 << start), np.tile(np.arange(1 << start, 2 << start), blocks)
        stack = [(start, level_blocks, nodes)]
        below = np.arange(1 << _LEVELS)
        while stack:
            level, block, node = stack.pop()
            near, far = self._reach(block, node)
            inside = far * (1 + _DOUBLE) < smallest.take(block)
            self.inside += np.bincount(block[inside], weights=tree.counts[node[inside]], minlength=blocks)
            beyond = near - far * _DOUBLE > largest.take(block)
            kept = np.flatnonzero(~(inside | beyond))
            block, node, far = block[kept], node[kept], far[kept]
            if level < tree.depth:
                for i in range(0, len(block), _PAIRS >> _LEVELS):
                    part = slice(i, i + (_PAIRS >> _LEVELS))
                    children = ((node[part, None] << _LEVELS) + below).ravel()
                    stack.append((level + _LEVELS, block[part].repeat(1 << _LEVELS), children))
                continue
            for number, first, last in _runs(block):
                step = max(1, _TILE // self.size)
                for i in range(first, last, step):
                    part = slice(i, min(last, i + step))
                    yield number, node[part], far[part]

    def _reach(self, block: Rows, node: Rows) -> tuple[Floats, Floats]:
        """Return the squared distances between the nearest and the farthest points of the blocks' and nodes' boxes."""
        near, far = np.zeros(len(block)), np.zeros(len(block))
        for k in range(self.centres.shape[1]):
            distance = np.abs(self.balls.middles[:, k].take(block) - self.centres[:, k].take(node))
            sides = self.balls.halves[:, k].take(block) + self.halves[:, k].take(node)
            far += np.square(distance + sides)
            near += np.square(np.maximum(distance - sides, 0))
        return near, far

    def _test(self, block: int, nodes: Rows, far: Floats) -> None:
        """Keep the pairs of an original and a leaf whose box its ball crosses; count the leaves inside a lower ball.

        Sums such as low - x are matrix products, (low, -1) by (1, x), since numpy broadcasts row over column slowly.
        """
        balls, ncp, p = self.balls, self.centres.shape[1], len(nodes)
        centre, half = self.centres[nodes] - balls.middles[block], self.halves[nodes]
        faces = np.empty((ncp, 2, p, 2), np.float32)
        faces[:, 0, :, 0], faces[:, 0, :, 1] = (centre - half).T, -1
        faces[:, 1, :, 0], faces[:, 1, :, 1] = -(centre + half).T, 1
        spread = np.ones((p, 2), np.float32)
        spread[:, 0] = far * self.slack
        zeros, total, limit = (tile[: p * self.size].reshape(p, self.size) for tile in self.tiles[:3])
        for k, outside in self._outside(block, faces):
            np.maximum(outside[0], outside[1], out=outside[0])
            np.maximum(outside[0], zeros, out=outside[0])
            np.square(outside[0], out=total if k == 0 else outside[0])
            if k:
                total += outside[0]
        np.matmul(spread, balls.uppers[block], out=limit)
        kept = ~(total > limit)

        small = np.flatnonzero(self.radii[nodes] < balls.bounds[1, block])  # a leaf inside a ball is smaller than it
        if len(small):
            kept[small] &= ~self._inside(block, nodes[small], faces[:, :, small], spread[small, 0])
        place = np.flatnonzero(kept)
        leaf = place // self.size
        place -= leaf * self.size
        place += block * self.size
        if block == len(balls.middles) - 1:
            real = place < len(balls.centres)
            place, leaf = place[real], leaf[real]
        self.waiting.append((place, (nodes - self.tree.leaves)[leaf]))
        self.open_pairs += len(place)

    def _outside(self, block: int, faces: Singles) -> Iterator[tuple[int, Singles]]:
        """Yield per component how far originals are below and above the leaves, (2, leaves, size), negative inside."""
        ncp, _, p, _ = faces.shape
        outside = self.tiles[3:].reshape(-1)[: 2 * p * self.size].reshape(2, p, self.size)
        for k in range(ncp):
            np.matmul(faces[k].reshape(2 * p, 2), self.balls.offsets[block, k], out=outside.reshape(2 * p, self.size))
            yield k, outside

    def _inside(self, block: int, nodes: Rows, faces: Singles, spread: Singles) -> NDArray[np.bool_]:
        """Return which originals (leaves, size) have the whole leaf inside their lower ball, and count its avatars."""
        total = self.tiles[1, : len(nodes) * self.size].reshape(len(nodes), self.size)
        total[:] = spread[:, None]
        for _, outside in self._outside(block, faces):
            np.minimum(outside[0], outside[1], out=outside[0])
            np.square(outside[0], out=outside[0])
            total += outside[0]
        inside: NDArray[np.bool_] = total < self.balls.lowers[block]
        self.counted[block * self.size : (block + 1) * self.size] += self.tree.counts[nodes].astype(np.float64) @ inside
        return inside

    def _count_leaves(self) -> Iterator[Undecided]:
        """Count the waiting pairs, leaf by leaf."""
        if not self.open_pairs:
            return
        rows, leaves = (np.concatenate(part) for part in zip(*self.waiting, strict=True))
        self.waiting, self.open_pairs = [], 0
        small = np.uint16 if self.tree.leaves <= 1 << 16 else np.int64  # for 16 bits numpy uses radix sort
        order = np.argsort(leaves.astype(small), kind="stable")
        step = max(1, _STRIP // self.centres.shape[1])
        for i in range(0, len(order), step):
            part = order[i : i + step]
            yield self._count_strip(rows[part], leaves[part])

    def _count_strip(self, rows: Rows, leaves: Rows) -> Undecided:
        """Count pairs sorted by leaf, one product per leaf: compare |y|^2 - 2xy with the squared radius minus |x|^2."""
        tree, size = self.tree, self.tree.points.shape[2]
        seen, lower, upper = self._seen(rows, leaves)
        weighted = bool(tree.heavy.any())
        # points (at most 255 per leaf) and avatars, each as two rows: below the lower bound, beyond the upper bound
        points = np.empty((2, len(rows)), np.uint8)
        avatars = np.empty((2, len(rows)), np.int64) if weighted else points
        width = max(1, min(_TILE, _PRODUCT // len(seen)) // size)
        memory, bits_memory = self.tiles[1], np.empty(width * size, np.bool_)
        for leaf, first, last in _runs(leaves):
            for i in range(first, last, width):
                part = slice(i, min(last, i + width))
                shape = size, part.stop - i
                product, bits = memory[: size * shape[1]].reshape(shape), bits_memory[: size * shape[1]].reshape(shape)
                np.matmul(tree.factors[leaf], seen[:, part], out=product)
                for side, decided, bound in ((0, np.less, lower), (1, np.greater, upper)):
                    decided(product, bound[part], out=bits)
                    np.add.reduce(bits.view(np.uint8), axis=0, dtype=np.uint8, out=points[side, part])
                    if weighted:
                        avatars[side, part] = tree.weights[leaf].astype(np.float64) @ bits

        self.counted += np.bincount(rows, weights=avatars[0], minlength=len(self.counted))
        kept = np.flatnonzero(points[0] + points[1] != size)
        rows, leaves, below, beyond = rows[kept], leaves[kept], *avatars[:, kept].astype(np.int64)
        open_points = size - points[:, kept].sum(axis=0, dtype=np.int64)
        # if only an empty slot of a leaf is undecided, exact arithmetic finds no avatar in it
        open_avatars = tree.counts[tree.leaves :][leaves] - below - beyond if weighted else open_points
        return Undecided(rows, leaves, below, open_points, open_avatars)

    def _seen(self, rows: Rows, leaves: Rows) -> tuple[Singles, Singles, Singles]:
        """Return the originals relative to the leaves' centres, over a row of ones, and the bounds for the products."""
        tree, balls = self.tree, self.balls
        difference = balls.centres.take(rows, axis=0)
        difference -= self.centres[tree.leaves :].take(leaves, axis=0)
        seen = np.ones((difference.shape[1] + 1, len(rows)), np.float32)
        seen[:-1] = difference.T
        norms = squares(seen[:-1])
        radii = self.radii[tree.leaves :]
        spread = np.where(radii < LARGEST, radii * self.slack, np.inf).astype(np.float32).take(leaves)
        lower, upper = balls.lower.take(rows) - spread, balls.upper.take(rows) + spread
        lower -= norms * np.float32(1 + self.slack)
        upper -= norms * np.float32(1 - self.slack)
        if not norms.max() < LARGEST:
            far = ~(norms < LARGEST)
            lower[far], upper[far] = -np.inf, np.inf
        return seen, lower, upper


def _runs(values: Rows) -> Iterator[tuple[int, int, int]]:
    """Yield each run of equal values: the value, its first index and the index after its last."""
    if not len(values):
        return
    ends = [*(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    yield from zip(values[[0, *ends[:-1]]].tolist(), [0, *ends[:-1]], ends, strict=True)
