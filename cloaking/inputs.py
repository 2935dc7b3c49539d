"""Settings of a run -> the tables to measure: read, projected where that is asked, with keys that can be compared."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cloaking import project_config, projection, raw, tables
from cloaking.config import Settings
from cloaking.errors import InputError
from cloaking.linking import AVATAR_ID, ORIGINAL_ID, own_ids
from cloaking.projection.model import Model


@dataclass(frozen=True)
class Inputs:
    """The tables of a run, and the space that they were projected into, if they were raw."""

    originals: DataFrame
    avatars: DataFrame
    link: DataFrame | None
    model: Model | None
    partitions: tuple[str, ...] = ()  # columns of the originals that are components only where they are named

    @property
    def all(self) -> tuple[DataFrame, ...]:
        """The tables that there are."""
        return tuple(table for table in (self.originals, self.avatars, self.link) if table is not None)


def read(spark: SparkSession, settings: Settings) -> Inputs:
    """Read all tables of a run.

    Raises:
        InputError: tables that cannot be read, or not be projected; one line each.
    """
    problems: list[str] = []
    link = None
    if settings.link is not None:
        try:
            texts = (ORIGINAL_ID, AVATAR_ID)
            link = tables.read(spark, settings.link, "link", text=texts, connections=settings.jdbc)
        except InputError as error:
            problems += error.problems
    try:
        originals, avatars, model = _projected(spark, settings) if settings.project else (*_both(spark, settings), None)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(*problems)

    key, made_from = settings.id, settings.made_from or settings.id
    csv = [tables.is_csv(ref) and not settings.by_position for ref in (settings.originals, settings.avatars)]
    if link is None:
        originals, avatars = tables.match_key_types(originals, key, csv[0], avatars, made_from, csv[1])
    else:
        link_csv = tables.is_csv(str(settings.link))
        originals, link = tables.match_key_types(originals, key, csv[0], link, (ORIGINAL_ID,), link_csv)
        avatars, link = tables.match_key_types(avatars, own_ids(avatars, key), csv[1], link, (AVATAR_ID,), link_csv)
    chosen = settings.components is not None or model is not None
    partitions = () if chosen else tables.partition_columns(spark, settings.originals, originals)
    return Inputs(originals, avatars, link, model, partitions)


def _both(spark: SparkSession, settings: Settings) -> tuple[DataFrame, DataFrame]:
    """Read the projected originals and avatars; what is wrong with both is told together."""
    sides = (
        ("originals", settings.originals, settings.where, (*settings.id, settings.group_by or "")),
        (
            "avatars",
            settings.avatars,
            settings.where_avatars or settings.where,
            (*settings.id, *(settings.made_from or ()), *((AVATAR_ID,) if settings.link else ())),
        ),
    )
    frames: list[DataFrame] = []
    problems: list[str] = []
    for role, ref, where, text in sides:
        try:
            by_position, connections = settings.by_position, settings.jdbc
            table = tables.read(
                spark, ref, role, where=where, text=text, by_position=by_position, connections=connections
            )
            frames.append(table)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return frames[0], frames[1]


def _projected(spark: SparkSession, settings: Settings) -> tuple[DataFrame, DataFrame, Model]:
    """Read raw tables and project both into the space of the originals.

    A column to group by is projected like any other, so that grouping does not change the figures.
    """
    group = () if settings.group_by is None else (settings.group_by,)
    asked = project_config.Settings(
        originals=settings.originals,
        avatars=settings.avatars,
        where=settings.where,
        where_avatars=settings.where_avatars,
        id=settings.id,
        made_from=settings.made_from,
        by_position=settings.by_position,
        method=settings.project or "auto",
        ncp=settings.ncp,
        continuous=settings.continuous,
        categorical=settings.categorical,
        drop=settings.drop,
        missing_continuous=settings.missing_continuous,
        missing_categorical=settings.missing_categorical,
        unseen=settings.unseen,
        jdbc=settings.jdbc,
    )
    originals, avatars, model = raw.spaces(spark, asked)
    assert originals is not None and avatars is not None
    avatars_key = settings.made_from or (own_ids(avatars, settings.id) if settings.link else settings.id)
    return (
        projection.transform(originals, model, keep=(*settings.id, *group), unseen=settings.unseen),
        projection.transform(avatars, model, keep=avatars_key, unseen=settings.unseen),
        model,
    )
