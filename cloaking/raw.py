"""References to raw tables -> the tables, read and checked, and the space that they are projected into."""

import logging
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from cloaking import files, projection, tables
from cloaking.addresses import published
from cloaking.figures import Notice
from cloaking.linking import AVATAR_ID
from cloaking.project_config import Settings
from cloaking.projection.model import Model

log = logging.getLogger(__name__)


def spaces(spark: SparkSession, settings: Settings) -> tuple[DataFrame | None, DataFrame | None, Model]:
    """Return the tables, read and checked, and the model, loaded or fitted on the originals.

    Of CSV files keys, categories and columns that are not used stay text.
    """
    model = (
        None
        if settings.model is None
        else Model.from_json(files.read(settings.model, "--model"), f"--model {published(settings.model)}")
    )
    where = (settings.where, settings.where_avatars or settings.where)
    keys = (settings.id, settings.made_from or settings.id)

    def read(role: str, ref: str, where: str | None, text: Sequence[str]) -> DataFrame:
        by_position, connections = settings.by_position, settings.jdbc
        return tables.read(spark, ref, role, where=where, text=text, by_position=by_position, connections=connections)

    originals: DataFrame | None = None
    avatars: DataFrame | None = None
    if settings.originals is not None:
        used = (*settings.categorical, *settings.drop) if model is None else _as_text(model)
        originals = read("originals", settings.originals, where[0], (*keys[0], *settings.keep, *used))
        label = f"originals '{published(settings.originals)}'"
        if model is None:
            assert settings.ncp is not None
            model = projection.fit(
                originals,
                settings.ncp,
                method=settings.method,
                continuous=settings.continuous,
                categorical=settings.categorical,
                drop=settings.drop,
                keys=(*settings.id, *settings.keep),
                missing_continuous=settings.missing_continuous,
                missing_categorical=settings.missing_categorical,
                label=label,
            )
            _warn(model.warnings)
        else:
            _warn(projection.check(originals, model, unseen=settings.unseen, label=label))
    assert model is not None
    if settings.avatars is not None:
        avatars = read("avatars", settings.avatars, where[1], (*keys[1], AVATAR_ID, *settings.drop, *_as_text(model)))
        _warn(
            projection.check(avatars, model, unseen=settings.unseen, label=f"avatars '{published(settings.avatars)}'")
        )
    if originals is not None and avatars is not None and not settings.by_position:
        csv = [tables.is_csv(str(ref)) for ref in (settings.originals, settings.avatars)]
        originals, avatars = tables.match_key_types(originals, keys[0], csv[0], avatars, keys[1], csv[1])
    return originals, avatars, model


def _as_text(model: Model) -> tuple[str, ...]:
    """Return the columns that stay text in CSV files: categories, and those that the model does not use."""
    return (*(each.name for each in model.categorical), *model.constant)


def _warn(notices: tuple[Notice, ...]) -> None:
    for notice in notices:
        log.warning("%s: %s", notice.code, notice.message)
