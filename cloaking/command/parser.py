"""Build the commands' parsers from the declared options, and convert the values that only commands have."""

import argparse
import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from cloaking.addresses import is_refused, published
from cloaking.errors import SettingsError
from cloaking.options import number, text
from cloaking.tables.reference import Ref
from cloaking.version import __version__

TABLES = "tables"
_FORMATS = ("parquet", "orc", "csv", "json", "jdbc", "text", "avro", "xml", "delta", "iceberg", "hudi")
_NO_FORMATS = dict.fromkeys(("xlsx", "xls", "ods"), "export the sheet as CSV") | dict.fromkeys(
    ("tsv", "txt", "dat", "zip", "gz", "feather", "arrow", "pickle", "pkl", "rds", "sas7bdat", "sav", "dta"),
    "write the table as parquet:, orc: or csv:",
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)")


class Parser(argparse.ArgumentParser):
    """A parser that returns only the options that are given, and raises `SettingsError` for wrong ones."""

    def __init__(self, prog: str, description: str, epilog: str, groups: Sequence[str]) -> None:
        super().__init__(
            prog=prog,
            usage="%(prog)s [options]",
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )
        self._groups = {title: self.add_argument_group(title) for title in groups}
        self.add_argument("--version", action="version", version=f"{prog} {__version__}")

    def add_options(self, owner: type, without: Sequence[str] = ()) -> None:
        """Add the options that a dataclass declares to their groups."""
        for one in fields(owner):
            said = one.metadata
            if said.get("group") is None or one.name in without:
                continue
            more: dict[str, Any] = {"action": "store_true"}
            if said["read"] is not bool:
                more = {"type": said["read"], "metavar": said["metavar"], "choices": said["choices"]}
            if said["read"] is setting:
                more["action"] = "append"
            self._groups[said["group"]].add_argument(f"--{one.name.replace('_', '-')}", help=said["help"], **more)

    def group(self, title: str) -> argparse._ArgumentGroup:
        """Return the group of options of this title."""
        return self._groups[title]

    def readable(self) -> dict[str, argparse.Action]:
        """Return the options that a configuration file may contain, by their names with underscores."""
        only_here = ("help", "version", "config", "report")
        return {action.dest: action for action in self._actions if action.dest not in only_here}

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse all arguments; an error about unknown ones does not show their values, which may be passwords."""
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
        """Raise an error that the command reports in one line."""
        raise SettingsError(f"{re.sub('ignored explicit argument .*', 'takes no value', message)}; see --help")


def address(given: str) -> str:
    """Check the address of a table or folder: it must contain no password, since Spark logs addresses."""
    if is_refused(given):
        raise argparse.ArgumentTypeError(
            "the address holds a password or a key; leave it out and let Spark find it: in conf/spark-defaults.conf, a "
            "--properties-file, the environment or by a credentials provider"
        )
    return text(given)


def reference(given: str) -> Ref:
    """Parse a table reference; one that is certainly wrong is refused before Spark starts."""
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
    return Ref(given)


def folder(given: str) -> str:
    """Check a local path or an address scheme://; scheme:/ is refused, as it would create a folder of that name."""
    if given.startswith("file:/") and not given.startswith("file://"):
        given = given.removeprefix("file:")
    scheme = _SCHEME.match(given)
    if scheme:
        raise argparse.ArgumentTypeError(
            f"{scheme[0]} is no folder; write an address as {scheme[1]}://, on Databricks as /Volumes/ or /dbfs/"
        )
    return address(given)


def threshold(given: str) -> float:
    """Convert the least value required of a count."""
    return number(given, math.inf, "a number of at least 0")


def percentage(given: str) -> float:
    """Convert the least value required of a rate."""
    return number(given, 100, "a percentage from 0 to 100")


def setting(given: str) -> str:
    """Check a Spark setting KEY=VALUE."""
    key, equals, _ = given.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError("KEY=VALUE is needed")
    if "." not in key:
        raise argparse.ArgumentTypeError("a setting of Spark's has dots in its name")
    return given


_Made = TypeVar("_Made")


def made(owner: type[_Made], values: Mapping[str, Any], **others: Any) -> _Made:
    """Return an instance of a dataclass from those of the values that are fields of it."""
    known = {one.name for one in fields(owner)}  # type: ignore[arg-type]
    return owner(**{name: value for name, value in values.items() if name in known} | others)
