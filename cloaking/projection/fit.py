"""Fit a projected space (PCA, MCA or FAMD) on the raw originals, exactly."""

import logging
import math
import platform
import time
from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from cloaking.errors import InputError
from cloaking.options import Space
from cloaking.projection import findings, moments, roles
from cloaking.projection.axes import solve
from cloaking.projection.findings import profiled
from cloaking.projection.model import Model, categories, numbers
from cloaking.projection.profiles import Profile
from cloaking.projection.roles import Roles
from cloaking.version import __version__

log = logging.getLogger(__name__)


def fit(
    originals: DataFrame,
    space: Space,
    *,
    keys: Sequence[str] = (),
    label: str = "originals",
) -> Model:
    """Fit the projected space on the originals, exactly, by two passes over them.

    Args:
        originals: one row per original, raw columns.
        space: the method, the number of components `ncp`, the roles of columns, and the treatment of missing values;
            the type decides the role of a column that is not named.
        keys: key and group columns, which are left out too.
        label: the name of the table in messages.

    Raises:
        InputError: everything that is wrong with the columns, one line each; or ncp is above the rank.
        ValueError: ncp is below 1.
    """
    if space.ncp is None or space.ncp < 1:
        raise ValueError(f"ncp is {space.ncp}; at least 1 is needed")
    chosen = roles.choose(originals, label, space, keys)
    method, ncp = _method(space.method, chosen, label), space.ncp
    found, notices = profiled(originals, chosen, (space.missing_continuous, space.missing_categorical), label)
    varying, constant = _varying(found, chosen)
    if constant:
        notices = (*notices, *findings.constant(constant, label))

    start = time.monotonic()
    selected = roles.select(originals, chosen, drop_rows=space.missing_continuous == "drop-rows")
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
        missing_continuous=space.missing_continuous,
        missing_categorical=space.missing_categorical,
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


def _method(method: str, chosen: Roles, label: str) -> str:
    """Return the method, for auto the one that fits the columns; refuse a method that cannot use some of them."""
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
    """Return the positions of numbers and categories with more than one value, and the names of the other columns."""
    varying = (
        [i for i, each in enumerate(found.continuous) if each.low != each.high],
        [q for q, each in enumerate(found.categorical) if len(each) > 1],
    )
    constant = [name for i, name in enumerate(chosen.continuous) if i not in varying[0]]
    constant += [name for q, name in enumerate(chosen.categorical) if q not in varying[1]]
    return varying, tuple(constant)


def _versions(spark: SparkSession) -> dict[str, str]:
    versions = {"python": platform.python_version(), "spark": spark.version, "numpy": np.__version__}
    return {"cloaking": __version__, **versions}
