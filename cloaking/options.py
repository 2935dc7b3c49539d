"""Declare the options of a measurement and of a projection, each once: default, limits, conversion and help."""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from cloaking.errors import SettingsError

STRATEGIES = ("auto", "broadcast", "partition")
BROADCAST_LIMIT = 512  # MiB of avatars' coordinates; the driver needs about four times as much to build the index
CELL_ROWS = 500_000  # avatars that a task of `partition` holds: with 20 components about 300 MiB, index included
TIE_TOLERANCE = 1e-12
LARGEST_TIE_TOLERANCE = 1e-6
LARGEST_NUMBER = 2**31 - 1  # Spark's limit on partitions
EXACT_INTEGER = 2**53  # the largest magnitude up to which every integer is a float64

METHODS = ("auto", "famd", "pca", "mca")
MISSING_CONTINUOUS = ("error", "mean", "drop-rows")
MISSING_CATEGORICAL = ("error", "level")
UNSEEN = ("error", "ignore")

# The groups of options that a command's --help shows.
LINK = "which avatar was made from which original"
SPACE = "projected space"
RAW = "raw tables"
RESULTS = "results"
RUNNING = "running"


def option(
    default: Any = MISSING,
    *,
    help: str,
    group: str | None = None,
    read: Callable[[str], Any] = str,
    metavar: str | None = None,
    choices: Sequence[str] | None = None,
) -> Any:
    """Declare an option as a field of a frozen dataclass, from which a command adds it to its parser.

    Args:
        default: the value if the option is not given; without a default it is required.
        help: one line for --help and for the docstrings.
        group: its group in --help; without a group it is not an option of a command.
        read: converts text to the value; `bool` makes a switch.
        metavar: the name of the value in --help.
        choices: the allowed values.
    """
    metadata = {"help": help, "group": group, "read": read, "metavar": metavar, "choices": choices}
    return field(default=default, metadata=metadata)


def again(owner: type, name: str, **changes: Any) -> Any:
    """Declare an option like that of another dataclass, with some changes."""
    (known,) = (one for one in fields(owner) if one.name == name)
    declared: dict[str, Any] = {"default": known.default, **known.metadata, **changes}
    return option(**declared)


def explained(owner: type) -> str:
    """Return one line per option of a dataclass, for a docstring."""
    return "\n".join(f"{one.name}: {one.metadata['help']}" for one in fields(owner))


def text(given: str) -> str:
    """Check that a text is not blank."""
    if not given.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return given


def names(given: str) -> tuple[str, ...]:
    """Convert names separated by commas."""
    found = tuple(name.strip() for name in given.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError("names separated by commas are needed")
    return found


def positive(given: str) -> int:
    """Convert a whole number from 1 to Spark's limit on partitions."""
    if not given.isdecimal() or not 1 <= int(given) <= LARGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {LARGEST_NUMBER} is needed, not '{given}'")
    return int(given)


def number(given: str, largest: float, what: str) -> float:
    """Convert a finite number from 0 to `largest`; `what` describes it in messages."""
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and 0 <= found <= largest):
        raise argparse.ArgumentTypeError(f"{what} is needed, not '{given}'")
    return found


def tolerance(given: str) -> float:
    """Convert the relative width of a tie."""
    return number(given, LARGEST_TIE_TOLERANCE, f"a number from 0 to {LARGEST_TIE_TOLERANCE}")


@dataclass(frozen=True)
class Options:
    """The options of a measurement, without its tables.

    Raises:
        SettingsError: values are invalid; the message has a line for each.
    """

    id: tuple[str, ...] = option(
        ("id",), group=LINK, read=names, metavar="A[,B]", help="the key, in both tables (default: id)"
    )
    made_from: tuple[str, ...] | None = option(
        None, group=LINK, read=names, metavar="A[,B]", help="the avatars' columns that hold that key instead"
    )
    components: tuple[str, ...] | None = option(
        None, group=SPACE, read=names, metavar="A,B,C", help="default: the numeric columns of the originals"
    )
    ncp: int | None = option(None, group=SPACE, read=positive, metavar="N", help="take the first N components")
    tie_tolerance: float = option(
        TIE_TOLERANCE,
        group=SPACE,
        read=tolerance,
        metavar="T",
        help="relative width of a tie, 0 to 1e-6 (default: 1e-12)",
    )
    group_by: str | None = option(
        None, group=RESULTS, read=text, metavar="COLUMN", help="the figures per group of originals too"
    )
    strategy: str = option(
        "auto",
        group=RUNNING,
        read=text,
        choices=STRATEGIES,
        help="broadcast all avatars, or partition space into cells; auto (default) picks by size",
    )
    broadcast_limit: int = option(
        BROADCAST_LIMIT,
        group=RUNNING,
        read=positive,
        metavar="MIB",
        help="auto broadcasts coordinates up to this (default: 512)",
    )
    cell_rows: int = option(
        CELL_ROWS,
        group=RUNNING,
        read=positive,
        metavar="N",
        help="most avatars that a task holds (partition; default: 500000)",
    )
    tasks: int | None = option(
        None, group=RUNNING, read=positive, metavar="N", help="Spark tasks to count with (default: from the rows)"
    )
    quantiles: tuple[float, ...] = option(
        (), help="shares of quantiles of the cloaking to give besides 0.05, 0.25, 0.5, 0.75 and 0.95"
    )
    at_least: tuple[int, ...] = option(
        (), help="the k for which to count the originals that at least k other avatars hide, besides the usual ones"
    )

    def __post_init__(self) -> None:
        problems = []
        if self.made_from is not None and len(self.made_from) != len(self.id):
            problems.append(
                f"made_from names {len(self.made_from)} column(s), id {len(self.id)}; match them one by one"
            )
        for name in ("id", "made_from", "components"):
            found = getattr(self, name)
            if found is not None and not found:
                problems.append(f"{name} must name at least one column")
            repeated = sorted({column for column in found or () if found.count(column) > 1})
            problems += [f"{name} names '{column}' more than once" for column in repeated]
        if not 0 <= self.tie_tolerance <= LARGEST_TIE_TOLERANCE:
            problems.append(f"tie_tolerance must be from 0 to {LARGEST_TIE_TOLERANCE}, not {self.tie_tolerance}")
        if self.strategy not in STRATEGIES:
            problems.append(f"strategy must be one of {', '.join(STRATEGIES)}, not '{self.strategy}'")
        for name in ("broadcast_limit", "cell_rows", "tasks"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= LARGEST_NUMBER:
                problems.append(f"{name} must be from 1 to {LARGEST_NUMBER}, not {value}")
        if not all(0 < share < 1 for share in self.quantiles):
            problems.append(f"quantiles must be between 0 and 1, not {', '.join(map(str, self.quantiles))}")
        if not all(k >= 1 for k in self.at_least):
            problems.append(f"at_least must be from 1, not {', '.join(map(str, self.at_least))}")
        if problems:
            raise SettingsError(*problems)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Options":
        """Return the options from keyword arguments; a list of names may be any sequence, or one name as a string.

        Raises:
            TypeError: an option is unknown.
        """
        return cls(**{name: _as_tuple(value) if name in _LISTS else value for name, value in given.items()})


_LISTS = frozenset(one.name for one in fields(Options) if "tuple" in str(one.type))


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value if value is None else tuple(value)


@dataclass(frozen=True)
class Space:
    """The options for projecting raw tables into one space, which is fitted on the originals or loaded as a model.

    Raises:
        SettingsError: values are invalid; the message has a line for each.
    """

    method: str = option("auto", group=RAW, read=text, choices=METHODS, help="default auto: what fits the columns")
    ncp: int | None = option(None, group=RAW, read=positive, metavar="N", help="number of components")
    continuous: tuple[str, ...] = option((), group=RAW, read=names, metavar="A,B", help="columns to take for numbers")
    categorical: tuple[str, ...] = option(
        (), group=RAW, read=names, metavar="A,B", help="columns to take for categories"
    )
    drop: tuple[str, ...] = option((), group=RAW, read=names, metavar="A,B", help="columns to leave out")
    missing_continuous: str = option(
        "error",
        group=RAW,
        read=text,
        choices=MISSING_CONTINUOUS,
        help="default error; mean is the originals' in both tables",
    )
    missing_categorical: str = option(
        "error",
        group=RAW,
        read=text,
        choices=MISSING_CATEGORICAL,
        help="default error; level: a modality of its own",
    )
    unseen: str = option(
        "error",
        group=RAW,
        read=text,
        choices=UNSEEN,
        help="modalities that the originals lack: default error; ignore: they add nothing",
    )

    def __post_init__(self) -> None:
        problems = [
            f"{one.name} is '{getattr(self, one.name)}'; one of {', '.join(one.metadata['choices'])} is needed"
            for one in fields(self)
            if one.metadata["choices"] is not None and getattr(self, one.name) not in one.metadata["choices"]
        ]
        if problems:
            raise SettingsError(*problems)
