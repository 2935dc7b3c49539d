"""Compare, quote and order the names of columns and tables."""

import re
from collections.abc import Sequence

UNREAD = "cloaking_unread"  # metadata key of columns that Spark cannot read; its value is their type in the file
_UNSEEN = re.compile("[\\s\"'\ufeff\u200b-\u200f\u2060]+")  # blanks, quotes, byte order marks, zero-width characters
_PART = re.compile(r"`(?:[^`]|``)+`|[\w-]+")  # one part of a name like catalog.schema.table
_ENDS_IN_NUMBER = re.compile(r"(.*?)(\d+)", re.DOTALL)


def _bare(name: str) -> str:
    return _UNSEEN.sub("", name).casefold()


def quoted(name: str) -> str:
    """Return the name in backticks, so that SQL takes dots, spaces and quotes literally."""
    return "`" + name.replace("`", "``") + "`"


def parts(name: str) -> list[str]:
    """Return the parts of a name like catalog.schema.table, with their backticks if they have any."""
    return _PART.findall(name)


def alike(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that Spark considers equal to `name`: it ignores case."""
    return [other for other in names if other.casefold() == name.casefold()]


def written_instead(name: str, names: Sequence[str]) -> str | None:
    """Return a hint at a similar existing name for one that is missing, None if there is none."""
    same = alike(name, names)
    if same:
        return f"but there is '{same[0]}'; write it alike"
    near = [other for other in names if _bare(other) == _bare(name)]
    return f"but there is '{near[0]}', with blanks or signs that do not show; rename it" if near else None


def in_order(names: Sequence[str]) -> list[str]:
    """Sort names that share a prefix and end in a number by that number; other names keep their place.

    `dim_2` comes before `dim_10`, and `Dim. 1` before `Dim. 2`, whatever the order of the table's columns.
    """
    first_place: dict[str, int] = {}
    places = []
    for place, name in enumerate(names):
        match = _ENDS_IN_NUMBER.fullmatch(name)
        prefix, number = (match[1], int(match[2])) if match else (name, 0)
        places.append((first_place.setdefault(prefix, place), number, place))
    return [names[place] for _, _, place in sorted(places)]
