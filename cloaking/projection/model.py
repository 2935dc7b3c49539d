"""Hold a projected space, compute coordinates of rows in it, and read and write it as model.json.

numpy only. Each column adds a part to each coordinate: a number adds (x - mean) / std times its loading, the row's
modality adds loading / sqrt(p), and an unseen modality adds nothing. (The formula (d - p) / sqrt(p) also subtracts the
sum of sqrt(p) times loading over a variable's modalities, which is zero on every axis with variance.) In MCA each part
is divided by sqrt(Q), where Q is the number of variables, including those with an unseen modality: the row profile over
sqrt(c), c = p / Q.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloaking.errors import InputError
from cloaking.projection.axes import Axes
from cloaking.results import Notice

Floats = NDArray[np.float64]


SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Number:
    """A continuous column: its scaling, and its loading on each axis, `(ncp,)`."""

    name: str
    mean: float
    std: float
    axes: tuple[float, ...]


@dataclass(frozen=True)
class Category:
    """A categorical column: its type, its modalities as text (None is a missing value), their shares and loadings.

    `axes` is `(modalities, ncp)`.
    """

    name: str
    type: str
    levels: tuple[str | None, ...]
    proportions: tuple[float, ...]
    axes: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Model:
    """A projected space: all that is needed to compute the coordinates of a raw row, and how the space was fitted.

    It holds aggregates of the originals, including the name and the share of every modality.
    """

    method: str  # famd, pca or mca
    ncp: int
    rows: int
    rank: int
    eigenvalues: tuple[float, ...]  # all of them, largest first; their sum is the total variance
    continuous: tuple[Number, ...]
    categorical: tuple[Category, ...]
    constant: tuple[str, ...]  # columns left out because all originals have the same value
    missing_continuous: str  # error, mean or drop-rows
    missing_categorical: str  # error or level
    warnings: tuple[Notice, ...]
    versions: Mapping[str, str]

    @property
    def explained_variance(self) -> tuple[float, ...]:
        """The share of the variance that each component explains, `(ncp,)`."""
        total = math.fsum(self.eigenvalues)
        return tuple(value / total for value in self.eigenvalues[: self.ncp])

    @property
    def components(self) -> tuple[str, ...]:
        """The names of the coordinates: dim_1 to dim_ncp."""
        return tuple(f"dim_{k}" for k in range(1, self.ncp + 1))

    def to_json(self) -> str:
        """Return the model as JSON, from which every number can be restored bit for bit."""
        document = {"schema_version": SCHEMA_VERSION, **asdict(self), "explained_variance": self.explained_variance}
        return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, label: str = "model") -> "Model":
        """Return the model that `to_json` wrote; `label` is its name in messages.

        Raises:
            InputError: the text is not a model, or its schema version differs.
        """
        fix = "give a model.json that this version wrote, or fit the model again"
        try:
            document = json.loads(text)
            if document["schema_version"] != SCHEMA_VERSION:
                raise InputError(f"{label}: its schema_version is not {SCHEMA_VERSION}; {fix}")
            model = cls(
                **{name: document[name] for name in ("method", "ncp", "rows", "rank")},
                **{name: document[name] for name in ("missing_continuous", "missing_categorical")},
                eigenvalues=tuple(document["eigenvalues"]),
                continuous=tuple(Number(**each | {"axes": tuple(each["axes"])}) for each in document["continuous"]),
                categorical=tuple(map(_category, document["categorical"])),
                constant=tuple(document["constant"]),
                warnings=tuple(Notice(**each) for each in document["warnings"]),
                versions=document["versions"],
            )
            shapes = [np.shape(each.axes) == (model.ncp,) for each in model.continuous]
            shapes += [np.shape(each.axes) == (len(each.levels), model.ncp) for each in model.categorical]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{label}: is not a projection model ({type(error).__name__}); {fix}") from None
        if not all(shapes) or not shapes:
            raise InputError(f"{label}: its axes do not fit its columns; {fix}")
        return model


def numbers(names: Sequence[str], axes: Axes) -> tuple[Number, ...]:
    """Return the model's continuous columns, which are the first of the axes' columns."""
    columns = zip(names, axes.mean.tolist(), axes.std.tolist(), axes.axes[: len(names)].tolist(), strict=True)
    return tuple(Number(name, mean, std, tuple(loadings)) for name, mean, std, loadings in columns)


def categories(
    columns: Sequence[tuple[str, str]], levels: Sequence[tuple[str | None, ...]], axes: Axes
) -> tuple[Category, ...]:
    """Return the model's categorical columns, given as name and type, with their modalities."""
    made, share, loadings = [], axes.share.tolist(), axes.axes[len(axes.mean) :].tolist()
    for (name, kind), held in zip(columns, levels, strict=True):
        size = len(held)
        made.append(Category(name, kind, held, tuple(share[:size]), tuple(map(tuple, loadings[:size]))))
        share, loadings = share[size:], loadings[size:]
    return tuple(made)


@dataclass(frozen=True)
class Parts:
    """What each column adds to the coordinates: arrays that each task builds once from a model.

    A row's coordinates are sums over the columns in their order, and every operation uses the values of one row only,
    so that the same row has the same bits in any batch; a matrix product does not guarantee that.
    """

    scale: Sequence[tuple[float, float, Floats]]  # per number: mean, std, loadings (ncp,)
    tables: Sequence[Floats]  # per categorical column: (ncp, modalities + 1), the last one for an unseen modality
    ncp: int

    @classmethod
    def of(cls, model: Model) -> "Parts":
        """Return the parts of a model's columns."""
        divisor = math.sqrt(len(model.categorical)) if model.method == "mca" else 1.0
        tables = []
        for each in model.categorical:
            table = np.zeros((model.ncp, len(each.levels) + 1))
            table[:, :-1] = np.array(each.axes).T / np.sqrt(each.proportions) / divisor
            tables.append(table)
        scale = [(each.mean, each.std, np.array(each.axes)) for each in model.continuous]
        return cls(scale, tables, model.ncp)

    def coordinates(self, values: Sequence[Floats], codes: Sequence[NDArray[np.intp]], fill: bool = False) -> Floats:
        """Return the coordinates `(ncp, n)` of n rows.

        Args:
            values: `(n,)` per number, in the model's order; nan is a missing one.
            codes: `(n,)` per categorical column: the modality's index, or the number of modalities for an unseen one.
            fill: take the originals' mean for a missing number; otherwise the coordinates of its row are nan.
        """
        n = len(values[0] if values else codes[0])
        out = np.zeros((self.ncp, n))
        for x, (mean, std, loadings) in zip(values, self.scale, strict=True):
            z = (x - mean) / std
            if fill:
                z[np.isnan(z)] = 0.0
            for k, loading in enumerate(loadings):
                out[k] += z * loading
        for code, table in zip(codes, self.tables, strict=True):
            for k, parts in enumerate(table):
                out[k] += parts[code]
        return out


def _category(document: dict[str, Any]) -> Category:
    read = {name: tuple(document[name]) for name in ("levels", "proportions")}
    return Category(**document | read | {"axes": tuple(map(tuple, document["axes"]))})
