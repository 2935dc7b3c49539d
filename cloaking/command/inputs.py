"""Read the tables of a run, raw or projected, and give their keys comparable types."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from cloaking.addresses import published
from cloaking.columns import Side
from cloaking.command.settings import Settings
from cloaking.errors import InputError
from cloaking.options import Space
from cloaking.projection.fit import fit
from cloaking.projection.model import Model
from cloaking.projection.transform import check, transform
from cloaking.results import Notice
from cloaking.spark.link import AVATAR_ID, ORIGINAL_ID, own_ids
from cloaking.tables import text_files
from cloaking.tables.read import match_key_types, partition_columns, read_table
from cloaking.tables.reference import Connection, Ref

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A table to read: its reference, its key columns and the condition on its rows."""

    role: str
    ref: Ref
    key: tuple[str, ...]
    where: str | None = None
    by_position: bool = False
    connections: Mapping[str, Connection] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The table's name in messages."""
        return self.ref.label(self.role)

    def read(self, spark: SparkSession, text: Iterable[str] = ()) -> Side:
        """Read the table; in CSV files the key and the columns in `text` stay text.

        Raises:
            InputError: the table cannot be read.
        """
        table = read_table(
            spark,
            self.ref,
            self.role,
            where=self.where,
            text=(*self.key, *text),
            by_position=self.by_position,
            connections=self.connections,
        )
        return Side(table, self.label, self.key, is_csv=self.ref.is_csv and not self.by_position)


@dataclass(frozen=True)
class Inputs:
    """The tables of a run in the projected space, and the model that projected them if they were raw."""

    originals: Side
    avatars: Side
    link: Side | None
    model: Model | None
    partitions: tuple[str, ...] = ()  # columns of the originals that are components only if named

    @property
    def all(self) -> tuple[DataFrame, ...]:
        """The tables, without an absent link table."""
        return tuple(side.table for side in (self.originals, self.avatars, self.link) if side is not None)


def read(spark: SparkSession, settings: Settings) -> Inputs:
    """Read all tables of a run.

    Raises:
        InputError: tables cannot be read or projected; the message has a line for each problem.
    """
    options, connections = settings.options, settings.jdbc
    link = None
    problems: list[str] = []
    if settings.link is not None:
        try:
            link = Source("link", settings.link, (ORIGINAL_ID, AVATAR_ID), connections=connections).read(spark)
        except InputError as error:
            problems += error.problems
    where, by_position = settings.where_avatars or settings.where, settings.by_position
    originals = Source("originals", settings.originals, options.id, settings.where, by_position, connections)
    avatars = Source("avatars", settings.avatars, options.made_from or options.id, where, by_position, connections)
    model = None
    try:
        if settings.project is not None:
            left, right, model = _projected(spark, originals, avatars, settings)
        else:
            left, right = _both(spark, originals, avatars, settings)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(*problems)
    if link is None:
        left, right = match_key_types(left, right)
    else:
        left, link = _matched(left, link, ORIGINAL_ID)
        right, link = _matched(right, link, AVATAR_ID)
    chosen = options.components is not None or model is not None
    partitions = () if chosen else partition_columns(spark, settings.originals, left.table)
    return Inputs(left, right, link, model, partitions)


def spaces(
    spark: SparkSession,
    originals: Source | None,
    avatars: Source | None,
    space: Space,
    *,
    model_file: str | None = None,
    keep: Sequence[str] = (),
) -> tuple[Side | None, Side | None, Model]:
    """Read and check raw tables, and return them with the model, which is loaded or fitted on the originals.

    In CSV files keys, categories and unused columns stay text.

    Args:
        spark: the session to read with.
        originals: the originals; required without `model_file`.
        avatars: the avatars.
        space: how to project.
        model_file: a saved model to load instead of fitting one.
        keep: further columns of the originals to carry over.

    Raises:
        InputError: tables cannot be read or projected.
    """
    model = None
    if model_file is not None:
        model = Model.from_json(text_files.read(model_file, "--model"), f"--model {published(model_file)}")
    left: Side | None = None
    right: Side | None = None
    if originals is not None:
        used = (*space.categorical, *space.drop) if model is None else _as_text(model)
        left = originals.read(spark, (*keep, *used))
        if model is None:
            assert space.ncp is not None
            model = fit(left.table, space, keys=(*left.key, *keep), label=left.label)
            _warn(model.warnings)
        else:
            _warn(check(left.table, model, unseen=space.unseen, label=left.label))
    assert model is not None
    if avatars is not None:
        right = avatars.read(spark, (AVATAR_ID, *space.drop, *_as_text(model)))
        _warn(check(right.table, model, unseen=space.unseen, label=right.label))
    if left is not None and right is not None:
        left, right = match_key_types(left, right)
    return left, right, model


def _matched(side: Side, link: Side, name: str) -> tuple[Side, Side]:
    """Give a table's key and the link table's column that refers to it the same type."""
    side, found = match_key_types(side, replace(link, key=(name,)))
    return side, replace(link, table=found.table)


def _both(spark: SparkSession, originals: Source, avatars: Source, settings: Settings) -> tuple[Side, Side]:
    """Read the projected originals and avatars; one error reports the problems of both."""
    options = settings.options
    texts = {
        originals.role: (options.group_by,) if options.group_by is not None else (),
        avatars.role: (*options.id, *((AVATAR_ID,) if settings.link is not None else ())),
    }
    sides: list[Side] = []
    problems: list[str] = []
    for source in (originals, avatars):
        try:
            sides.append(source.read(spark, texts[source.role]))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return sides[0], _keyed(sides[1], settings)


def _keyed(avatars: Side, settings: Settings) -> Side:
    """If there is a link table, make the avatars' own ids, to which it refers, their key."""
    if settings.link is None:
        return avatars
    return replace(avatars, key=own_ids(avatars.table, settings.options.id))


def _projected(spark: SparkSession, originals: Source, avatars: Source, settings: Settings) -> tuple[Side, Side, Model]:
    """Read raw tables and project both into the space fitted on the originals.

    The group-by column takes part in the projection like any other, so that grouping does not change the figures.
    """
    group = () if settings.options.group_by is None else (settings.options.group_by,)
    left, right, model = spaces(spark, originals, avatars, settings.space)
    assert left is not None and right is not None
    right, unseen = _keyed(right, settings), settings.space.unseen
    coordinates = transform(left.table, model, keep=(*left.key, *group), unseen=unseen)
    others = transform(right.table, model, keep=right.key, unseen=unseen)
    return (
        Side(coordinates, left.label, left.key, left.is_csv),
        Side(others, right.label, right.key, right.is_csv),
        model,
    )


def _as_text(model: Model) -> tuple[str, ...]:
    """Return the columns that stay text in CSV files: categories and columns that the model does not use."""
    return (*(each.name for each in model.categorical), *model.constant)


def _warn(notices: tuple[Notice, ...]) -> None:
    for notice in notices:
        log.warning("%s: %s", notice.code, notice.message)
