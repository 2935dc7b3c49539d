"""Measure Local Cloaking and hidden rate at several k, on avatars simulated from the originals by the published method.

Only the avatars are random: the kernel compares each of them with every original and counts exactly.
"""

import logging
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from cloaking.kernel import AvatarIndex
from cloaking.kernel.tree import Floats, squares
from cloaking.sweep.results import AtK

log = logging.getLogger(__name__)

SMALLEST_DISTANCE = 1e-12  # of the published method: keeps the weight of a neighbour equal to the original finite
MOST_ORIGINALS = 1_000_000
MOST_NEIGHBOURS = 1 << 28  # originals times k: their row numbers are held in memory, 1 GiB
LARGEST_COORDINATE = 1e150  # the squared differences of larger ones overflow
METHOD = (
    "Avatars are simulated by the published method (Guillaudeux et al., npj Digital Medicine 6:37, 2023): each is the "
    "weighted mean of the k nearest originals other than its own, the weight of neighbour j proportional to "
    "(1/d_j) e_j 2^-pi(j), with e_j ~ Exp(1), pi a random permutation of 1..k and d_j at least 1e-12. "
    "Each set is measured exactly, every original of it against every avatar."
)

_LEAF = 40  # rows in a leaf of the tree: with tens of neighbours to find, larger leaves are faster
_CELLS = 1 << 22  # numbers in one array of a block, 32 MiB

Neighbours = NDArray[np.int32]


def refusals(originals: int, ks: Sequence[int]) -> list[str]:
    """Return why a sweep over these k is impossible with this many originals, one line per problem."""
    if originals > MOST_ORIGINALS:
        return [
            f"{originals:,} rows, and the sweep takes up to {MOST_ORIGINALS:,}; run the sweep on a sample of them "
            '(--where, such as "pmod(hash(id), 10) = 0"), whose figures are too high for the whole table: its k is a '
            "lower bound"
        ]
    largest = max(ks)
    if largest >= originals:
        beyond = ",".join(str(k) for k in sorted(ks) if k >= originals)
        return [f"--k {beyond}: an avatar is made of k other originals, and there are {originals - 1:,}; leave it out"]
    if originals * largest > MOST_NEIGHBOURS:
        return [
            f"--k {largest}: {originals:,} originals with that many neighbours do not fit into memory; "
            f"leave out what is above {MOST_NEIGHBOURS // originals:,}, or run the sweep on a sample (--where), whose "
            "figures are too high for the whole table"
        ]
    return []


def sweep(originals: Floats, ks: Sequence[int], repeats: int, seed: int) -> tuple[AtK, ...]:
    """Simulate several sets of avatars at each k, and measure each set.

    Args:
        originals: `(n, ncp)` finite; their order makes no difference to the result.
        ks: each from 1 to n - 1.
        repeats: how many sets of avatars to simulate at each k.
        seed: from 0 to 2^32 - 1; seed, k and the number of the repeat, from 1, determine a set of avatars, whatever
            other k and repeats are run.

    Returns:
        One result per k, in rising order.

    Raises:
        ValueError: a k is out of range.
    """
    points = in_order(originals)
    results = []
    for k in sorted(ks):
        start = time.monotonic()
        # A search for each k: which of equally near rows the tree returns depends on how many neighbours are sought,
        # and the values at one k must not depend on the others.
        neighbours = nearest_others(points, k)
        seeds = tuple((seed, k, repeat) for repeat in range(1, repeats + 1))
        found = [measure(points, simulate(points, neighbours, np.random.default_rng(own))) for own in seeds]
        at = AtK(k, seeds, *zip(*found, strict=True))
        results.append(at)
        spread = at.spread("local_cloaking")
        log.info("k=%d: local_cloaking=%g (%g to %g) seconds=%.1f", k, *spread, time.monotonic() - start)
    return tuple(results)


def in_order(originals: Floats) -> Floats:
    """Return the rows `(n, ncp)` sorted by their first component, then the second, and so on.

    Random numbers are assigned to rows by position, and the rows of a table on a cluster come in no fixed order.
    """
    return np.ascontiguousarray(originals[np.lexsort(originals.T[::-1])] + 0.0)  # + 0.0 turns -0.0 into 0.0


def nearest_others(originals: Floats, k: int) -> Neighbours:
    """Return, for each original `(n, ncp)`, the rows `(n, k)` of its k nearest other originals, the nearest first.

    "Other" means another row: one with equal values is a neighbour too.

    Raises:
        ValueError: there are fewer than k other originals, or k is below 1.
    """
    n = len(originals)
    if not 1 <= k < n:
        raise ValueError(f"k is {k}: expected 1 to {n - 1}, the other originals")
    tree = cKDTree(originals, leafsize=_LEAF)
    neighbours = np.empty((n, k), np.int32)
    step = max(1, _CELLS // (k + 1))
    for i in range(0, n, step):
        _, found = tree.query(originals[i : i + step], k=k + 1, workers=-1)
        itself = found == np.arange(i, i + len(found))[:, None]
        itself[~itself.any(axis=1), k] = True  # the row itself may be missing among over k equal rows: drop the last
        neighbours[i : i + step] = found[~itself].reshape(-1, k)
    return neighbours


def simulate(originals: Floats, neighbours: Neighbours, rng: np.random.Generator) -> Floats:
    """Return one avatar per original by the published method, in the same order, `(n, ncp)`.

    An avatar is the weighted mean of the original's neighbours; the weight of neighbour j, at a distance d_j, is
    proportional to (1 / d_j) e_j 2^-pi(j), with e_j ~ Exp(1) and pi a random permutation of 1..k.
    Source: Guillaudeux et al., npj Digital Medicine 6:37, 2023.

    Args:
        originals: `(n, ncp)`.
        neighbours: `(n, k)`, from `nearest_others`.
        rng: the source of the random numbers.
    """
    k = neighbours.shape[1]
    avatars = np.empty_like(originals)
    powers = np.exp2(-np.arange(1.0, k + 1.0))
    step = max(1, _CELLS // max(k, originals.shape[1]))
    for i in range(0, len(originals), step):
        rows = neighbours[i : i + step]
        weights = rng.exponential(size=rows.shape) * rng.permuted(np.tile(powers, (len(rows), 1)), axis=1)
        avatars[i : i + step] = _weighted_mean(originals, originals[i : i + step], rows, weights)
    return avatars


def _weighted_mean(originals: Floats, x: Floats, neighbours: Neighbours, weights: Floats) -> Floats:
    """Return the mean `(b, ncp)` of the neighbours `(b, k)` of x, weighted by `weights` divided by their distances.

    It is summed relative to the nearest one, so that with k = 1, or equal neighbours, it equals that row bit for bit.
    """
    nearest = originals[neighbours[:, 0]]
    moved, total = np.zeros_like(x), np.zeros(len(x))
    for j in range(neighbours.shape[1]):  # avoids an array (b, k, ncp)
        other = originals[neighbours[:, j]]
        weight = weights[:, j] / np.maximum(np.sqrt(squares((other - x).T)), SMALLEST_DISTANCE)
        moved += weight[:, None] * (other - nearest)
        total += weight
    return nearest + moved / total[:, None]


def measure(originals: Floats, avatars: Floats) -> tuple[float, float]:
    """Return Local Cloaking and the hidden rate in percent; row i of both `(n, ncp)` belongs to one original.

    If no avatar is closer than an original's own, an attacker picks among the own avatar and those tied with it, and is
    right with probability 1 / (1 + tied).
    """
    closer, within = AvatarIndex(avatars).count(originals, avatars)
    cloaking = within - 1  # the own avatar is within, but does not hide its original
    n = len(cloaking)
    middle = [(n - 1) // 2, n // 2]
    ties, originals_with = np.unique(cloaking[closer == 0], return_counts=True)
    caught = math.fsum(count / (1 + tied) for tied, count in zip(ties.tolist(), originals_with.tolist(), strict=True))
    return int(np.partition(cloaking, middle)[middle].sum()) / 2, 100 * (n - caught) / n
