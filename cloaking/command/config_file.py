"""Read the settings of one report from a TOML file, with the same rules as on the command line."""

import argparse
import datetime
import difflib
import math
import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from cloaking.addresses import is_refused, published
from cloaking.command.parser import address, folder, reference, setting
from cloaking.errors import SettingsError
from cloaking.options import names, text
from cloaking.results import RATES, Rule, quantile_metric
from cloaking.tables.reference import Connection

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_QUANTILE = re.compile(r"quantile_(0?\.\d+)")
METRICS = ("local_cloaking", *RATES)

Options = Mapping[str, argparse.Action]


class File:
    """A TOML file with one report at its top level, or several in tables [reports.NAME] that share the top level.

    Args:
        path: the file.
        report: the report to read; required if the file has [reports.NAME].

    Raises:
        SettingsError: the file cannot be read, is not valid TOML or does not contain the report.
    """

    def __init__(self, path: str, report: str | None) -> None:
        self.path = path
        self._shared = self._load()
        reports = self._table("reports")
        self._jdbc = self._table("jdbc")
        self._own: dict[str, Any] = {}
        if report is None and reports:
            raise self._error(f"holds the reports {', '.join(reports)}: choose one with --report")
        if report is not None:
            if report not in reports:
                meant = [key for key, value in self._shared.items() if isinstance(value, dict) and report in value]
                hint = f"; did you mean [reports.{report}] by [{meant[0]}.{report}]?" if meant else ""
                raise self._error(f"there is no [reports.{report}]{hint or _nearest(report, reports)}")
            if not isinstance(reports[report], dict):
                raise self._error(f"reports.{report}: a table is needed")
            self._own = {"name": report} | reports[report]

    def values(self, options: Options, given: Collection[str] = ()) -> dict[str, Any]:
        """Return the report's settings by the options' names, `gates` as rules; they override the shared settings.

        Options `given` on the command line are skipped, except Spark settings, which are combined with the file's.

        Raises:
            SettingsError: keys are unknown or values are wrong; the message has a line for each.
        """
        values: dict[str, Any] = {}
        problems: list[str] = []
        for table in (self._shared, self._own):
            for key, value in table.items():
                overruled = key in given or (table is self._shared and key in self._own)
                if overruled and key != "conf":
                    continue
                try:
                    tables = ("reports", "jdbc") if table is self._shared else ()
                    found = _value(key, _with_variables(value), options, tables)
                except (argparse.ArgumentTypeError, ValueError) as error:
                    problems.append(f"--config {published(self.path)}: {error}")
                    continue
                # A report's Spark settings follow the shared ones and override them one by one
                values[key] = values.get(key, ()) + found if key == "conf" else found
        if problems:
            raise SettingsError(*problems)
        return values

    def connections(self, wanted: Collection[str]) -> dict[str, Connection]:
        """Return the connections of the blocks [jdbc.NAME] with these names.

        Raises:
            SettingsError: blocks are missing, or have unknown keys or wrong values; the message has a line for each.
        """
        found: dict[str, Connection] = {}
        problems: list[str] = []
        for name in wanted:
            if name not in self._jdbc:
                block = published(f"jdbc:{name}").replace(":", ".", 1)
                problems.append(f"--config {published(self.path)}: there is no [{block}]{_nearest(name, self._jdbc)}")
                continue
            try:
                found[name] = _connection(_with_variables(self._jdbc[name]))
            except (argparse.ArgumentTypeError, ValueError) as error:
                problems += [f"--config {published(self.path)}: jdbc.{name}: {line}" for line in str(error).split("\n")]
        if problems:
            raise SettingsError(*problems)
        return found

    def _load(self) -> dict[str, Any]:
        try:
            return tomllib.loads(Path(self.path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = "nested too deep" if isinstance(error, RecursionError) else error
            raise self._error(f"not valid TOML: {reason}") from None

    def _table(self, key: str) -> dict[str, Any]:
        found = self._shared.pop(key, {})
        if not isinstance(found, dict):
            raise self._error(f"{key}: a table is needed")
        return found

    def _error(self, message: str) -> SettingsError:
        return SettingsError(f"--config {published(self.path)}: {message}")


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there is {', '.join(known)}" if known else ""


def _with_variables(value: Any) -> Any:
    """Replace each ${NAME} in strings by that environment variable."""
    if isinstance(value, dict):
        return {key: _with_variables(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_variables(one) for one in value]
    if not isinstance(value, str):
        return value
    for name in _VARIABLE.findall(value):
        if name not in os.environ:
            raise ValueError(f"the environment variable {name}, which the file names, is not set")
    return _VARIABLE.sub(lambda match: os.environ[match[1]], value)


def _value(key: str, value: Any, options: Options, tables: Collection[str]) -> Any:
    """Convert a value as its option does; lists contain names, and dates may be TOML dates."""
    if key == "gates":
        return _rules(value)
    if key not in options:
        near = difflib.get_close_matches(key, [*options, "gates", *tables], n=1)
        hint = f"did you mean {near[0]}?" if near else "keys are the long options with underscores"
        raise ValueError(f"unknown key '{key}'; {hint}")
    try:
        return _read(options[key], value)
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise ValueError(f"{key}: {error}") from None


def _read(option: argparse.Action, value: Any) -> Any:
    read: Callable[[str], Any] | None = option.type  # type: ignore[assignment]
    if read is None:  # a switch
        if not isinstance(value, bool):
            raise ValueError("true or false is needed")
        return value
    if option.dest == "conf":
        if not isinstance(value, dict):
            raise ValueError("a table of Spark settings is needed")
        return tuple(_spark_setting(key, flat) for key, flat in _flat(value).items())
    if read is names:
        found = value if isinstance(value, list) else names(value) if isinstance(value, str) else None
        if not found or not all(isinstance(name, str) and name for name in found):
            raise ValueError("a list of names is needed")
        return tuple(found)
    is_text, is_date = read in (text, address, folder, reference), option.dest == "run_date"
    if isinstance(value, bool) or not isinstance(value, str | int | float | datetime.date):
        raise ValueError(f"a {'text' if is_text else 'single value'} is needed")
    if is_text and not isinstance(value, str):
        raise ValueError("a text in quotes is needed")
    if not is_text and not is_date and isinstance(value, str):
        raise ValueError("a number without quotes is needed")
    if option.choices is not None and value not in option.choices:
        raise ValueError(f"one of {', '.join(option.choices)} is needed")
    return read(str(value))


def _spark_setting(key: str, value: str) -> str:
    try:
        return setting(f"{key}={value}")
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"{error}; keys of the report belong above the first [table]") from None


def _flat(table: dict[str, Any], above: str = "") -> dict[str, str]:
    """Return Spark settings with dotted keys; TOML reads an unquoted dotted key as nested tables."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{above}{key}.")
        elif not isinstance(value, str | int | float):
            raise ValueError(f"{above}{key}: a text, a number, true or false is needed")
        else:
            flat[above + key] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def _rules(value: Any) -> tuple[Rule, ...]:
    """Read `gates`: tables with `metric`, `at_least` and, for one group of --group-by, `group`."""
    if not isinstance(value, list):
        raise ValueError("gates: a list of tables is needed, such as [{ metric = 'hidden_rate', at_least = 90 }]")
    return tuple(_rule(one, f"gates, no. {number}") for number, one in enumerate(value, start=1))


def _rule(value: Any, where: str) -> Rule:
    if not isinstance(value, dict) or set(value) - {"metric", "at_least", "group"}:
        raise ValueError(f"{where}: a table of metric, at_least and, if wanted, group is needed")
    metric: Any = value.get("metric")
    threshold: Any = value.get("at_least")
    group: Any = value.get("group")
    quantile = _QUANTILE.fullmatch(metric) if isinstance(metric, str) else None
    share = float(quantile[1]) if quantile else 0.0
    if metric not in METRICS and not 0 < share < 1:
        known = ", ".join((*METRICS, "quantile_0.05 (or any other share)"))
        raise ValueError(f"{where}: metric must be one of {known}")
    largest = 100 if metric in RATES else math.inf
    number = not isinstance(threshold, bool) and isinstance(threshold, int | float)
    if not number or not (math.isfinite(threshold) and 0 <= threshold <= largest):
        kind = "a percentage from 0 to 100" if metric in RATES else "a number of at least 0"
        raise ValueError(f"{where}: at_least must be {kind}")
    if group is not None and not isinstance(group, str):
        raise ValueError(f"{where}: group must be the label of a group, a text in quotes")
    return Rule(quantile_metric(share) if quantile else metric, float(threshold), group)


def _connection(value: Any) -> Connection:
    """Convert a block of a database, and report all its problems together."""
    if not isinstance(value, dict):
        raise ValueError("a table is needed")
    known = {one.name: one for one in fields(Connection)}
    problems = [f"unknown key '{key}'{_nearest(key, known)}" for key in value if key not in known]
    problems += [f"{name} is missing" for name, one in known.items() if one.default is MISSING and name not in value]
    for key, one in value.items():
        whole = key in ("partitions", "fetch_size")
        if key in ("lower_bound", "upper_bound") and isinstance(one, int | float | datetime.date):
            value[key] = str(one)
        elif key in known and (isinstance(one, bool) or not isinstance(one, int if whole else str) or not one):
            problems.append(f"{key}: a {'whole number of at least 1' if whole else 'text in quotes'} is needed")
    url = value.get("url")
    if isinstance(url, str):
        if not url.startswith("jdbc:"):
            problems.append("url: an address jdbc:... is needed")
        if is_refused(url):
            problems.append("url: holds a password; name it with password_env or password_file")
    if "password_env" in value and "password_file" in value:
        problems.append("give password_env or password_file, not both")
    cut = ("partition_column", "lower_bound", "upper_bound", "partitions")
    if 0 < sum(key in value for key in cut) < len(cut):
        problems.append(f"to read in parts, {', '.join(cut)} belong together")
    if problems:
        raise ValueError("\n".join(problems))
    return Connection(**value)
