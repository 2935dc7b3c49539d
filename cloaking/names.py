"""Column names -> columns and their order: exact names, whatever stands in them, numbered ones by their number."""

import re
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

_PART = re.compile(r"`(?:[^`]|``)+`|[\w-]+")  # of a catalog's name
_ENDS_IN_NUMBER = re.compile(r"(.*?)(\d+)", re.DOTALL)


def quoted(name: str) -> str:
    """Return the name as SQL takes it literally, with its dots, spaces and quotes."""
    return "`" + name.replace("`", "``") + "`"


def parts(name: str) -> list[str]:
    """Return the parts of a name like catalog.schema.table as they are written, with any backticks."""
    return _PART.findall(name)


def column(name: str) -> Column:
    """Return the column of exactly this name."""
    return F.col(quoted(name))


def alike(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that Spark does not tell apart from `name`: upper and lower case are alike to it."""
    return [other for other in names if other.casefold() == name.casefold()]


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
