"""Link originals and avatars: one row per original with its own avatar's coordinates, under names that cannot clash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from cloaking.columns import column
from cloaking.names import alike, in_order
from cloaking.results import OTHER_GROUPS, SMALLEST_GROUP

ORIGINAL_ID, AVATAR_ID = "original_id", "avatar_id"  # the columns of a link table
NO_GROUP = "(none)"
PANDAS_INDEX = "__index_level_"
_LINKS, _LINKED = "_cloaking_links_", "_cloaking_linked_"  # column names in the join that no table has


@dataclass(frozen=True)
class Columns:
    """The columns of both tables that a run uses, by their names in the tables."""

    id: tuple[str, ...]
    made_from: tuple[str, ...]
    components: tuple[str, ...]
    group: str | None = None

    @property
    def keys(self) -> list[str]:
        """The internal names of the key columns."""
        return [f"key_{i}" for i in range(1, len(self.id) + 1)]

    @property
    def originals(self) -> list[str]:
        """The internal names of an original's coordinates."""
        return [f"original_{k}" for k in range(1, len(self.components) + 1)]

    @property
    def avatars(self) -> list[str]:
        """The internal names of an avatar's coordinates."""
        return [f"avatar_{k}" for k in range(1, len(self.components) + 1)]


def choose_components(
    originals: DataFrame,
    excluded: Sequence[str],
    components: Sequence[str] | None,
    ncp: int | None,
    label: str = "originals",
) -> tuple[tuple[str, ...], list[str]]:
    """Return the components to measure over, and the problems of this choice.

    Unless named they are the numeric columns of the originals, except the `excluded` ones (keys, group, partitions) and
    the row index that pandas leaves in its files; numbered names are sorted by number. Only the first `ncp` are used.
    """
    if components is None:
        numeric = [field.name for field in originals.schema if isinstance(field.dataType, NumericType)]
        components = in_order([n for n in numeric if not alike(n, excluded) and not n.startswith(PANDAS_INDEX)])
        if not components:
            return (), [f"{label}: no numeric column is left as a component; name them with --components"]
    if ncp is not None and not 1 <= ncp <= len(components):
        return tuple(components), [f"--ncp {ncp} is out of range: there are {len(components)} component(s)"]
    return tuple(components[:ncp]), []


def own_ids(avatars: DataFrame, key: Sequence[str]) -> tuple[str, ...]:
    """Return the column of the avatars' own ids, to which a link table refers: the key's name, else `avatar_id`."""
    if all(alike(name, avatars.columns) for name in key):
        return tuple(key)
    return tuple(alike(AVATAR_ID, avatars.columns)[:1]) or tuple(key)


def by_link_table(avatars: DataFrame, avatar_id: str, link: DataFrame) -> DataFrame:
    """Add the column `original_id` of a link table to the avatars; it is null for avatars without a link."""
    pairs = link.select(column(ORIGINAL_ID), column(AVATAR_ID).alias(_LINKED))
    rest = [column(name) for name in avatars.columns if not alike(name, [ORIGINAL_ID])]
    keyed = avatars.select(*rest, column(avatar_id).alias(_LINKS))
    return keyed.join(pairs, F.col(_LINKS) == F.col(_LINKED), how="left").drop(_LINKS, _LINKED)


def originals(table: DataFrame, columns: Columns, groups: Mapping[str, int] | None = None) -> DataFrame:
    """Select keys, group number and coordinates of the originals; coordinates become double."""
    group = _group_number(columns.group, groups) if columns.group and groups else F.lit(0)
    return table.select(
        *(column(name).alias(key) for name, key in zip(columns.id, columns.keys, strict=True)),
        group.cast("int").alias("group"),
        *_coordinates(columns.components, columns.originals),
    )


def avatars(table: DataFrame, columns: Columns) -> DataFrame:
    """Select the keys of the originals that the avatars were made from, and the avatars' coordinates."""
    return table.select(
        *(column(name).alias(key) for name, key in zip(columns.made_from, columns.keys, strict=True)),
        *_coordinates(columns.components, columns.avatars),
    )


def link(originals: DataFrame, avatars: DataFrame, columns: Columns, tasks: int) -> DataFrame:
    """Join both selections on the key, in `tasks` partitions: one row per original with its own avatar.

    Spark keeps an explicit number of partitions; otherwise adaptive execution would merge them by their bytes, which do
    not indicate the work of counting. A join has at least spark.sql.shuffle.partitions (default 200) partitions; these
    are coalesced again, since small tasks count slowly.
    """
    left, right = (side.repartition(tasks, *columns.keys) for side in (originals, avatars))
    linked = left.join(right, on=columns.keys, how="inner").coalesce(tasks)
    return linked.select(*columns.keys, "group", *columns.originals, *columns.avatars)


def group_label(group: str) -> Column:
    """Return the group's label as text; the label of null is (none)."""
    return F.coalesce(column(group).cast("string"), F.lit(NO_GROUP))


def merge_small_groups(sizes: Mapping[str, int]) -> tuple[list[str], bool]:
    """Return the labels of the groups that are not merged, largest first, and whether others are merged into (other).

    Groups under 100 originals are merged; if (other) is then still under 100, the next smallest group is added to it.
    """
    large = (label for label, size in sizes.items() if size >= SMALLEST_GROUP and label != OTHER_GROUPS)
    kept = sorted(large, key=lambda label: (-sizes[label], label))
    rest = sum(sizes.values()) - sum(sizes[label] for label in kept)
    merged = rest > 0
    while merged and rest < SMALLEST_GROUP and kept:
        rest += sizes[kept.pop()]
    return kept, merged


def _group_number(group: str, numbers: Mapping[str, int]) -> Column:
    """Return the number of the row's group; labels without their own number get that of (other)."""
    known = F.create_map(*(F.lit(item) for pair in numbers.items() for item in pair))
    return F.coalesce(F.try_element_at(known, group_label(group)), F.lit(numbers.get(OTHER_GROUPS, 0)))


def _coordinates(names: Sequence[str], aliases: Sequence[str]) -> list[Column]:
    return [column(name).cast("double").alias(alias) for name, alias in zip(names, aliases, strict=True)]
