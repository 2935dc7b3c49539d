"""What options may be: their choices and limits, and how the command lines read their texts."""

import argparse
import difflib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cloaking.addresses import is_refused, published
from cloaking.errors import SettingsError

STRATEGIES = ("auto", "broadcast", "partition")
BROADCAST_LIMIT = 512  # MiB of avatars' coordinates; the driver needs some four times as much to build the index
CELL_ROWS = 500_000  # avatars that a task of `partition` holds: with 20 components some 300 MiB, index included
TIE_TOLERANCE = 1e-12
LARGEST_TIE_TOLERANCE = 1e-6
LARGEST_NUMBER = 2**31 - 1

METHODS = ("auto", "famd", "pca", "mca")
MISSING_CONTINUOUS = ("error", "mean", "drop-rows")
MISSING_CATEGORICAL = ("error", "level")
UNSEEN = ("error", "ignore")

_FORMATS = ("parquet", "orc", "csv", "json", "jdbc", "text", "avro", "xml", "delta", "iceberg", "hudi")
_NO_FORMATS = dict.fromkeys(("xlsx", "xls", "ods"), "export the sheet as CSV") | dict.fromkeys(
    ("tsv", "txt", "dat", "zip", "gz", "feather", "arrow", "pickle", "pkl", "rds", "sas7bdat", "sav", "dta"),
    "write the table as parquet:, orc: or csv:",
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)")


class Parser(argparse.ArgumentParser):
    """A parser whose absent options stay absent and whose refusals are `SettingsError`."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            usage="%(prog)s [options]",
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse all words, and refuse those that are no option's, without their values: one may be a password."""
        found, more = self.parse_known_args(args, namespace)
        if more:
            options = [word.partition("=")[0] for word in more if word.startswith("--")]
            count = len(more) - len(options)
            words = f"{count} word{'s' if count > 1 else ''}"
            if not options:
                self.error(f"unrecognized arguments: {words} without an option")
            known = [option for action in self._actions for option in action.option_strings]
            near = difflib.get_close_matches(options[0], known, n=1, cutoff=0.75)
            said = f"unrecognized arguments: {' '.join(options)}{f' and {words} more' if count else ''}"
            raise SettingsError(f"{said}; {f'did you mean {near[0]}?' if near else 'see --help'}")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise what the command reports in one line."""
        raise SettingsError(f"{re.sub('ignored explicit argument .*', 'takes no value', message)}; see --help")


def text(given: str) -> str:
    """Read a text that is not blank."""
    if not given.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return given


def address(given: str) -> str:
    """Read a table or folder, which must not hold a password: Spark writes addresses into its own logs."""
    if is_refused(given):
        raise argparse.ArgumentTypeError(
            "the address holds a password or a key; leave it out and let Spark find it: in conf/spark-defaults.conf, a "
            "--properties-file, the environment or by a credentials provider"
        )
    return text(given)


def reference(given: str) -> str:
    """Read a table's reference, of which what is surely wrong is refused before Spark starts."""
    address(given)
    kind, colon, path = given.partition(":")
    suffix = Path(given).suffix[1:]
    if colon and path.startswith("//"):
        meant = published(f"parquet:{given}")
        raise argparse.ArgumentTypeError(f"an address needs the format of its files; did you mean {meant}?")
    if colon and re.fullmatch("[a-z][a-z0-9_]*", kind) and kind not in _FORMATS:
        near = difflib.get_close_matches(kind, _FORMATS, n=1, cutoff=0.75)
        hint = _NO_FORMATS.get(kind) or (f"did you mean {near[0]}:?" if near else None)
        if hint:
            raise argparse.ArgumentTypeError(f"Spark has no format '{kind}'; {hint}")
    if not colon and "`" not in given and ("/" in given or (suffix in _FORMATS and Path(given).exists())):
        meant = published(f"{suffix if suffix in _FORMATS else 'parquet'}:{given}")
        raise argparse.ArgumentTypeError(f"a path needs the format of its files; did you mean {meant}?")
    return given


def folder(given: str) -> str:
    """Read a local folder or file, or an address scheme://; a scheme alone would make a folder of that name."""
    if given.startswith("file:/") and not given.startswith("file://"):
        given = given.removeprefix("file:")
    scheme = _SCHEME.match(given)
    if scheme:
        raise argparse.ArgumentTypeError(
            f"{scheme[0]} is no folder; write an address as {scheme[1]}://, on Databricks as /Volumes/ or /dbfs/"
        )
    return address(given)


def names(given: str) -> tuple[str, ...]:
    """Read names separated by commas."""
    found = tuple(name.strip() for name in given.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError("names separated by commas are needed")
    return found


def positive(given: str) -> int:
    """Read a whole number from 1 to what Spark can count partitions with."""
    if not given.isdecimal() or not 1 <= int(given) <= LARGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {LARGEST_NUMBER} is needed, not '{given}'")
    return int(given)


def number(given: str, largest: float, what: str) -> float:
    """Read a finite number from 0 to `largest`, which messages call `what`."""
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and 0 <= found <= largest):
        raise argparse.ArgumentTypeError(f"{what} is needed, not '{given}'")
    return found


def threshold(given: str) -> float:
    """Read the least value of a count."""
    return number(given, math.inf, "a number of at least 0")


def percentage(given: str) -> float:
    """Read the least value of a rate."""
    return number(given, 100, "a percentage from 0 to 100")


def setting(given: str) -> str:
    """Read one of Spark's settings, KEY=VALUE."""
    key, equals, _ = given.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError("KEY=VALUE is needed")
    if "." not in key:
        raise argparse.ArgumentTypeError("a setting of Spark's has dots in its name")
    return given


def add_running(group: argparse._ActionsContainer) -> None:
    """Add the options that say how a command runs, the same in all of them."""
    group.add_argument("--conf", metavar="K=V", action="append", type=setting, help="Spark setting, repeatable")
    group.add_argument("--debug", action="store_true", help="show the traceback of every error")


def add_projection(group: argparse._ArgumentGroup) -> None:
    """Add the options of a projection to be fitted, the same in both commands."""
    group.add_argument("--continuous", metavar="A,B", type=names, help="columns to take for numbers")
    group.add_argument("--categorical", metavar="A,B", type=names, help="columns to take for categories")
    group.add_argument("--drop", metavar="A,B", type=names, help="columns to leave out")
    group.add_argument(
        "--missing-continuous", choices=MISSING_CONTINUOUS, help="default error; mean is the originals' in both tables"
    )
    group.add_argument(
        "--missing-categorical", choices=MISSING_CATEGORICAL, help="default error; level: a modality of its own"
    )
    group.add_argument(
        "--unseen", choices=UNSEEN, help="modalities that the originals lack: default error; ignore: they add nothing"
    )
