"""Raw originals -> a projected space (PCA, MCA, FAMD); raw tables and that space -> coordinates dim_1 to dim_ncp.

`fit` reads the originals twice: what the columns hold, then the sums that the axes come from. `check` reads a table
once for what the space cannot place; `transform` is lazy. A category is compared as text, see `roles`.
"""

import logging
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking import __version__
from cloaking.errors import InputError
from cloaking.figures import Notice
from cloaking.names import column, type_of
from cloaking.options import METHODS, MISSING_CATEGORICAL, MISSING_CONTINUOUS, UNSEEN
from cloaking.projection import findings, moments, roles
from cloaking.projection.axes import solve
from cloaking.projection.model import Model, Parts, categories, numbers
from cloaking.projection.profiles import Profile, profile
from cloaking.projection.roles import Roles

log = logging.getLogger(__name__)


def fit(
    originals: DataFrame,
    ncp: int,
    *,
    method: str = "auto",
    continuous: Sequence[str] = (),
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    keys: Sequence[str] = (),
    missing_continuous: str = "error",
    missing_categorical: str = "error",
    label: str = "originals",
) -> Model:
    """Fit the projected space on the originals, exactly, by two passes over them.

    Args:
        originals: one row each, raw columns.
        ncp: number of components.
        method: pca (numbers only), mca (categories only), famd (both), or auto: whichever fits the columns.
        continuous: columns to take for numbers; those named nowhere go by their type.
        categorical: columns to take for categories.
        drop: columns to leave out.
        keys: key and group columns, left out too.
        missing_continuous: error, mean (the originals', in every table) or drop-rows.
        missing_categorical: error, or level: missing is a modality of its own.
        label: what messages call the table.

    Raises:
        InputError: everything that is wrong with the columns, one line each; ncp above the rank.
        ValueError: an option has another value than these.
    """
    _one_of(method=(method, METHODS), missing_continuous=(missing_continuous, MISSING_CONTINUOUS))
    _one_of(missing_categorical=(missing_categorical, MISSING_CATEGORICAL))
    if ncp < 1:
        raise ValueError(f"ncp is {ncp}; at least 1 is needed")
    chosen = roles.choose(originals, label, continuous=continuous, categorical=categorical, drop=drop, keys=keys)
    method = _method(method, chosen, label)
    missing = (missing_continuous, missing_categorical)
    found, notices = _profile(originals, chosen, missing, label)
    varying, constant = _varying(found, chosen)
    if constant:
        notices = (*notices, *findings.constant(constant, label))

    start = time.monotonic()
    selected = roles.select(originals, chosen, drop_rows=missing_continuous == "drop-rows")
    frame = moments.frame(found, *varying, label)
    sums = moments.sums(selected, *varying, frame, label)
    if sums.rows != found.rows:
        raise InputError(
            f"{label}: {found.rows:,} rows when checked, {sums.rows:,} when summed; project a snapshot of the table"
        )
    axes = solve(sums, ncp, len(varying[1]) if method == "mca" else None, label)
    model = Model(
        method=method,
        ncp=ncp,
        rows=sums.rows,
        rank=axes.rank,
        eigenvalues=tuple(axes.eigenvalues.tolist()),
        continuous=numbers([chosen.continuous[i] for i in varying[0]], axes),
        categorical=categories([(chosen.categorical[q], chosen.types[q]) for q in varying[1]], frame.levels, axes),
        constant=constant,
        missing_continuous=missing_continuous,
        missing_categorical=missing_categorical,
        warnings=(
            *notices,
            *findings.few_values(found, chosen.continuous, chosen.assumed, label),
            *findings.axes_not_unique(axes.unique(), ncp),
        ),
        versions=_versions(originals.sparkSession),
    )
    log.info(
        "fitted: method=%s rows=%d columns=%d rank=%d ncp=%d explained=%.4f seconds=%.1f",
        method, model.rows, len(model.eigenvalues), model.rank, ncp, math.fsum(model.explained_variance),
        time.monotonic() - start,
    )  # fmt: skip
    return model


def check(table: DataFrame, model: Model, *, unseen: str = "error", label: str = "avatars") -> tuple[Notice, ...]:
    """Look for everything in a table that the model cannot place, in one pass; return what is merely suspect.

    The originals that the model was fitted on need no check.

    Args:
        table: raw columns, those of the model by exact name; others are ignored.
        model: the projected space.
        unseen: error, or ignore: a modality that the originals lack adds nothing to the coordinates.
        label: what messages call the table.

    Raises:
        InputError: everything that is wrong, one line each.
        ValueError: `unseen` is neither.
    """
    _one_of(unseen=(unseen, UNSEEN))
    wanted = _roles(model)
    names = [*wanted.continuous, *wanted.categorical]
    fix = "the model needs it; add it, or fit the model without it"
    problems = [problem for name in names for problem in roles.missing(table, name, label, "column", fix)]
    problems += [problem for name in wanted.continuous for problem in roles.not_a_number(table, name, label)]
    problems += [problem for name in wanted.categorical for problem in roles.no_category(table, name, label)]
    if problems:
        raise InputError(*problems)
    types = [(each.type, type_of(table, each.name)) for each in model.categorical]

    def strange(found: Profile) -> tuple[list[str], tuple[Notice, ...]]:
        known = {each.name: each.levels for each in model.categorical}
        return findings.unseen(found, known, types, unseen == "error", label)

    return _profile(table, wanted, (model.missing_continuous, model.missing_categorical), label, strange)[1]


def transform(table: DataFrame, model: Model, *, keep: Sequence[str] = (), unseen: str = "error") -> DataFrame:
    """Return the kept columns and the coordinates dim_1 to dim_ncp (double) of each row; lazy.

    The same row has the same bits in any partitioning. A row that `check` would refuse stops the job.

    Args:
        table: raw columns; others than the model's and the kept are ignored.
        model: the projected space.
        keep: columns to carry over: keys and groups.
        unseen: error or ignore, as for `check`.

    Raises:
        InputError: a column to keep is not there or has the name of a coordinate.
        ValueError: `unseen` is neither.
    """
    _one_of(unseen=(unseen, UNSEEN))
    problems = [p for name in keep for p in roles.missing(table, name, "the table", "column to keep", "look at --id")]
    problems += [
        f"column '{name}' has the name of a coordinate; rename it, or leave it out of --id and --keep"
        for name in keep
        if name.casefold() in model.components
    ]
    if problems:
        raise InputError(*problems)
    selected = roles.select(table, _roles(model), keep, drop_rows=model.missing_continuous == "drop-rows")
    kept = [selected.schema[f"keep_{i}"] for i in range(len(keep))]
    schema = T.StructType([*kept, *(T.StructField(name, T.DoubleType(), False) for name in model.components)])
    projected = selected.mapInArrow(_projector(model, len(keep), unseen), schema)
    return projected.select(
        *(F.col(f"keep_{i}").alias(name) for i, name in enumerate(keep)), *(column(name) for name in model.components)
    )


def _projector(model: Model, keep: int, unseen: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that turns selected rows into kept columns and coordinates."""
    names = [*(f"keep_{i}" for i in range(keep)), *model.components]
    changed = "projection.check refuses this table: it changed since it was checked, or was not checked"

    def projected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = Parts.of(model)
        for batch in batches:
            values = [moments.numbers_of(batch, i) for i in range(len(model.continuous))]
            codes = [moments.codes(batch[f"category_{q}"], each.levels) for q, each in enumerate(model.categorical)]
            for q, (code, each) in enumerate(zip(codes, model.categorical, strict=True)):
                is_unseen = unseen == "error" and (code == len(each.levels)).any()
                if is_unseen or (model.missing_categorical == "error" and batch[f"category_{q}"].null_count):
                    raise ValueError(f"column '{each.name}' holds unseen or missing modalities; {changed}")
            coordinates = parts.coordinates(values, codes, fill=model.missing_continuous == "mean")
            if not np.isfinite(coordinates).all():
                raise ValueError(f"numbers are missing or infinite; {changed}")
            arrays = [batch[f"keep_{i}"] for i in range(keep)] + [pa.array(each) for each in coordinates]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    return projected


def _profile(
    table: DataFrame,
    chosen: Roles,
    missing: tuple[str, str],
    label: str,
    further: Callable[[Profile], tuple[list[str], tuple[Notice, ...]]] | None = None,
) -> tuple[Profile, tuple[Notice, ...]]:
    """Return what the columns hold, and notices; raise where values are wrong or, unless allowed, missing."""
    start = time.monotonic()
    on_number, on_category = missing
    selected = roles.select(table, chosen, drop_rows=on_number == "drop-rows")
    found = profile(selected, len(chosen.continuous), len(chosen.categorical))
    log.info("profiled: %s rows=%d seconds=%.1f", label, found.rows, time.monotonic() - start)
    if found.endless:
        raise InputError(*findings.endless(found, chosen.categorical, label))
    strange, notices = further(found) if further is not None else ([], ())
    problems = [
        *findings.numbers(found, chosen.continuous, on_number, label),
        *findings.missing_levels(found, chosen.categorical, on_category, label),
        *strange,
    ]
    if problems:
        raise InputError(*problems)
    dropped = findings.dropped(table.count(), found.rows, label) if on_number == "drop-rows" else ()
    return found, (
        *dropped,
        *findings.filled(found, chosen.continuous, label),
        *findings.own_level(found, chosen.categorical, label),
        *notices,
    )


def _method(method: str, chosen: Roles, label: str) -> str:
    """Return the method that fits the columns, for auto; refuse one that has no place for some of them."""
    if method == "auto":
        return "famd" if chosen.continuous and chosen.categorical else "pca" if chosen.continuous else "mca"
    wrong = {"pca": chosen.categorical, "mca": chosen.continuous}.get(method, ())
    if wrong:
        kind, other = ("numbers", "--continuous") if method == "pca" else ("categories", "--categorical")
        raise InputError(
            f"{label}: {method} takes {kind} only, and these are none: {', '.join(wrong)}; "
            f"name them in {other} or --drop, or use famd"
        )
    return method


def _varying(found: Profile, chosen: Roles) -> tuple[tuple[list[int], list[int]], tuple[str, ...]]:
    """Return the places of the numbers and of the categories that hold more than one value, and the others' names."""
    varying = (
        [i for i, each in enumerate(found.continuous) if each.low != each.high],
        [q for q, each in enumerate(found.categorical) if len(each) > 1],
    )
    constant = [name for i, name in enumerate(chosen.continuous) if i not in varying[0]]
    constant += [name for q, name in enumerate(chosen.categorical) if q not in varying[1]]
    return varying, tuple(constant)


def _roles(model: Model) -> Roles:
    return Roles(
        tuple(each.name for each in model.continuous),
        tuple(each.name for each in model.categorical),
        tuple(each.type for each in model.categorical),
    )


def _versions(spark: SparkSession) -> dict[str, str]:
    versions = {"python": platform.python_version(), "spark": spark.version, "numpy": np.__version__}
    return {"cloaking": __version__, **versions}


def _one_of(**options: tuple[str, Sequence[str]]) -> None:
    for name, (value, allowed) in options.items():
        if value not in allowed:
            raise ValueError(f"{name} is '{value}'; one of {', '.join(allowed)} is needed")
