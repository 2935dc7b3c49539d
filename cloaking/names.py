"""Compare, quote and order the names of columns and tables."""

import re
from collections.abc import Sequence

UNREAD = "cloaking_unread"  # metadata of a column whose values Spark cannot read: the type that they have in the file
_UNSEEN = re.compile("[\\s\"'\ufeff\u200b-\u200f\u2060]+")  # blanks, quotes, byte order marks, signs without width
_PART = re.compile(r"`(?:[^`]|``)+`|[\w-]+")  # of a catalog's name
_ENDS_IN_NUMBER = re.compile(r"(.*?)(\d+)", re.DOTALL)


def _bare(name: str) -> str:
    return _UNSEEN.sub("", name).casefold()


def quoted(name: str) -> str:
    """Return the name as SQL takes it literally, with its dots, spaces and quotes."""
    return "`" + name.replace("`", "``") + "`"


def parts(name: str) -> list[str]:
    """Return the parts of a name like catalog.schema.table as they are written, with any backticks."""
    return _PART.findall(name)


def alike(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that Spark does not tell apart from `name`: upper and lower case are alike to it."""
    return [other for other in names if other.casefold() == name.casefold()]


def written_instead(name: str, names: Sequence[str]) -> str | None:
    """Return how a name that is not there as it is given is written instead, None where nothing is like it."""
    same = alike(name, names)
    if same:
        return f"but there is '{same[0]}'; write it alike"
    near = [other for other in names if _bare(other) == _bare(name)]
    return f"but there is '{near[0]}', with blanks or signs that do not show; rename it" if near else None


def in_order(names: Sequence[str]) -> list[str]:
    """Sort names that share a prefix and end in a number by that number; all else keeps its place.

    `dim_2` comes before `dim_10`, and `Dim. 1` before `Dim. 2`, whatever the order of the table's columns.
    """
    first_place: dict[str, int] = {}
    places = []
    for place, name in enumerate(names):
        match = _ENDS_IN_NUMBER.fullmatch(name)
        prefix, number = (match[1], int(match[2])) if match else (name, 0)
        places.append((first_place.setdefault(prefix, place), number, place))
    return [names[place] for _, _, place in sorted(places)]
