"""Sums over the originals -> the axes of PCA, MCA and FAMD: the exact eigenproblem, on the driver. numpy alone.

A numeric column becomes (x - mean) / std, with the standard deviation of n, not n - 1; a modality becomes
(d - p) / sqrt(p), where d is 1 for the rows that have it and p is their share (Pagès, Multiple Factor Analysis by
Example Using R, 2015, chapter 3). The axes are the eigenvectors of Z'Z / n over these columns: FAMD, and PCA where
there are only numbers. MCA is the eigenvectors of X'X / (n Q^2) / sqrt(c c') - sqrt(c c') with c = p / Q and Q the
number of variables (Greenacre, Correspondence Analysis in Practice, 2017, appendix A): the same matrix, over Q.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cloaking.errors import InputError

Floats = NDArray[np.float64]

RANK_TOLERANCE = 1e-12  # of the largest eigenvalue: some ten times what rounding makes of zero for 1,000 columns
EQUAL = 1e-9  # relative gap under which two eigenvalues are taken for equal
SAME_SIZE = 1e-6  # loadings this near to the largest pass for it, so that rounding does not choose the sign


@dataclass(frozen=True)
class Sums:
    """What one pass over the originals adds up; number c stands in it as z = (x - centre[c]) / unit[c].

    `products` is `(p, p)` with p = numbers + modalities, of which the upper triangle is used: sums of z z', sums of z
    per modality, rows per modality (on the diagonal) and per pair of modalities.
    """

    rows: int
    centre: Floats = field(repr=False)
    unit: Floats = field(repr=False)
    totals: Floats = field(repr=False)
    products: Floats = field(repr=False)


@dataclass(frozen=True)
class Axes:
    """The scaled columns' spread and their axes: mean, std `(numbers,)`, share `(modalities,)`, axes `(p, ncp)`."""

    mean: Floats
    std: Floats
    share: Floats
    eigenvalues: Floats
    axes: Floats
    rank: int

    def unique(self) -> bool:
        """Whether the first ncp axes span one space only: the next eigenvalue is smaller than the last one kept."""
        ncp = self.axes.shape[1]
        if ncp >= len(self.eigenvalues):
            return True
        last, following = self.eigenvalues[ncp - 1 : ncp + 1]
        return bool(last - following > EQUAL * last)


def solve(sums: Sums, ncp: int, variables: int | None = None, label: str = "originals") -> Axes:
    """Return the first `ncp` axes of the scaled columns, by an exact eigendecomposition.

    The sign of an axis is such that its largest loading, the first of those of one size, is positive.

    Args:
        sums: sums over the originals, with no column that is constant.
        ncp: number of axes.
        variables: for MCA the number of variables, by which the eigenvalues are divided.
        label: what messages call the originals.

    Raises:
        InputError: there are fewer axes than `ncp`, with their number.
    """
    numbers, n = len(sums.totals), sums.rows
    products = np.triu(sums.products) / n
    products += np.triu(products, 1).T
    mean = sums.totals / n  # in units from the centre, from which it is not far
    share = np.diag(products)[numbers:].copy()
    middle = np.concatenate([mean, share])
    covariance = products - np.outer(middle, middle)
    std = np.sqrt(np.diag(covariance)[:numbers])
    spread = np.concatenate([std, np.sqrt(share)])
    correlation = covariance / np.outer(spread, spread)

    eigenvalues, vectors = np.linalg.eigh(correlation / (variables or 1))
    eigenvalues, vectors = np.maximum(eigenvalues[::-1], 0.0), vectors[:, ::-1]
    rank = int(np.count_nonzero(eigenvalues > RANK_TOLERANCE * eigenvalues[0]))
    if ncp > rank:
        raise InputError(f"{label}: --ncp {ncp} is above the rank of the columns, {rank}; give --ncp {rank} or less")
    axes = vectors[:, :ncp]
    size = np.abs(axes)
    first = np.argmax(size >= (1 - SAME_SIZE) * size.max(axis=0), axis=0)
    axes = axes * np.sign(axes[first, np.arange(ncp)])
    return Axes(sums.centre + sums.unit * mean, sums.unit * std, share, eigenvalues, axes, rank)
