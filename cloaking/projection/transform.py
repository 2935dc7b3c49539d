"""Check raw tables against a projected space, and compute the coordinates of their rows in it."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking.columns import column, type_of
from cloaking.errors import InputError
from cloaking.options import UNSEEN
from cloaking.projection import findings, moments, roles
from cloaking.projection.findings import profiled
from cloaking.projection.model import Model, Parts
from cloaking.projection.profiles import Profile
from cloaking.projection.roles import Roles
from cloaking.results import Notice


def check(table: DataFrame, model: Model, *, unseen: str = "error", label: str = "avatars") -> tuple[Notice, ...]:
    """Find everything in a table that the model cannot project, in one pass; return notices of what is only suspicious.

    The originals that the model was fitted on need no check.

    Args:
        table: raw columns; the model's are found by exact name, others are ignored.
        model: the projected space.
        unseen: error, or ignore: a modality that the originals lack adds nothing to the coordinates.
        label: the name of the table in messages.

    Raises:
        InputError: everything that is wrong, one line each.
        ValueError: `unseen` is neither error nor ignore.
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

    return profiled(table, wanted, (model.missing_continuous, model.missing_categorical), label, strange)[1]


def transform(table: DataFrame, model: Model, *, keep: Sequence[str] = (), unseen: str = "error") -> DataFrame:
    """Return a lazy table of the kept columns and the coordinates dim_1 to dim_ncp (double) of each row.

    The same row has the same bits in any partitioning. A row that `check` would refuse stops the job.

    Args:
        table: raw columns; those that are neither the model's nor kept are ignored.
        model: the projected space.
        keep: columns to carry over, such as keys and groups.
        unseen: error or ignore, as for `check`.

    Raises:
        InputError: a column to keep is missing or has the name of a coordinate.
        ValueError: `unseen` is neither error nor ignore.
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


def _roles(model: Model) -> Roles:
    return Roles(
        tuple(each.name for each in model.continuous),
        tuple(each.name for each in model.categorical),
        tuple(each.type for each in model.categorical),
    )


def _one_of(**options: tuple[str, Sequence[str]]) -> None:
    for name, (value, allowed) in options.items():
        if value not in allowed:
            raise ValueError(f"{name} is '{value}'; one of {', '.join(allowed)} is needed")
