"""Parse and check the command line and the TOML file of a measurement."""

import argparse
import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cloaking.addresses import published
from cloaking.command.config_file import File
from cloaking.command.parser import TABLES, Parser, folder, made, percentage, reference, setting, threshold
from cloaking.errors import SettingsError
from cloaking.options import (
    LINK,
    METHODS,
    RAW,
    RESULTS,
    RUNNING,
    SPACE,
    Options,
    Space,
    number,
    option,
    text,
)
from cloaking.results import Rule, quantile_share
from cloaking.tables.reference import FOLDER_SIGN, Connection, Ref

LONGEST_NAME = 250  # bytes; most file systems allow 255 for the folder `name=...`
GATE = "gate (none unless set; --config may hold rules on quantiles and groups)"

_DESCRIPTION = """\
Measure Local Cloaking: how many avatars are at least as close to each original as the avatar made from it. The
reported figure is the median over the originals; the higher, the harder it is to link an avatar back to its original.
Both tables hold the coordinates of the anonymization's projected space. A higher k (the number of neighbours that
avatars are made from) raises it."""

_EPILOG = """\
example:
  local-cloaking --originals gold.patients_projected --avatars gold.patients_avatars --id patient_id --ncp 5 \\
      --min-local-cloaking 6 --output /reports/patients

REF is catalog.schema.table or format:path, such as parquet:s3://bucket/patients, orc:/data/patients, csv:patients.csv
(UTF-8, header, comma, decimal point, double quotes); jdbc:NAME is the table of the block [jdbc.NAME] of --config.

exit codes: 0 done, the gate met or none set; 1 a bug or lack of memory; 2 bad arguments, configuration or data,
nothing written; 3 the gate is not met, everything written."""


def _share(given: str) -> float:
    found = number(given, 1, "a share from 0 to below 1")
    if found == 1:  # no figure can fall by more than 100%
        raise argparse.ArgumentTypeError(f"a share from 0 to below 1 is needed, not '{given}'")
    return found


def _date(given: str) -> str:
    try:
        return datetime.date.fromisoformat(given).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"a date YYYY-MM-DD is needed, not '{given}'") from None


@dataclass(frozen=True)
class Settings:
    """The settings of one run."""

    originals: Ref = option(group=TABLES, read=reference, metavar="REF", help="table of originals, one row each")
    avatars: Ref = option(group=TABLES, read=reference, metavar="REF", help="table of avatars, one row each")
    where: str | None = option(None, group=TABLES, read=text, metavar="SQL", help="rows to keep, of both tables")
    where_avatars: str | None = option(
        None, group=TABLES, read=text, metavar="SQL", help="rows to keep of the avatars, if others"
    )
    options: Options = field(default_factory=Options)
    link: Ref | None = option(
        None,
        group=LINK,
        read=reference,
        metavar="REF",
        help="link table, one to one: original_id, avatar_id (their own)",
    )
    by_position: bool = option(False, group=LINK, read=bool, help="row i belongs to row i, of two single files")
    project: str | None = option(
        None, group=RAW, read=text, choices=METHODS, help="fit this on the originals and measure in its space"
    )
    space: Space = field(default_factory=Space)
    output: str | None = option(
        None, group=RESULTS, read=folder, metavar="DIR", help="folder or address of report.json"
    )
    counts: Ref | None = option(
        None,
        group=RESULTS,
        read=reference,
        metavar="REF",
        help="write the counts of each original too: SENSITIVE",
    )
    overwrite: bool = option(False, group=RESULTS, read=bool, help="replace an existing --counts table")
    name: str | None = option(None, group=RESULTS, read=text, help="name of the report (default: the originals' REF)")
    history: Ref | None = option(
        None, group=RESULTS, read=reference, metavar="REF", help="table that keeps a row of each run"
    )
    compare_last: float | None = option(
        None,
        group=RESULTS,
        read=_share,
        metavar="SHARE",
        help="warn where a figure fell by more than this share (0 to 1)",
    )
    run_date: str | None = option(
        None, group=RESULTS, read=_date, metavar="DATE", help="YYYY-MM-DD (default: today, UTC)"
    )
    min_local_cloaking: float | None = option(
        None, group=GATE, read=threshold, metavar="X", help="fail (exit 3) below X"
    )
    min_hidden_rate: float | None = option(
        None, group=GATE, read=percentage, metavar="Y", help="fail (exit 3) below Y percent"
    )
    dry_run: bool = option(
        False, group=RUNNING, read=bool, help="read and check the tables, print the plan, measure nothing"
    )
    conf: tuple[str, ...] = option((), group=RUNNING, read=setting, metavar="K=V", help="Spark setting, repeatable")
    debug: bool = option(False, group=RUNNING, read=bool, help="show the traceback of every error")
    gates: tuple[Rule, ...] = ()
    jdbc: Mapping[str, Connection] = field(default_factory=dict)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules that the run must meet."""
        least = {"local_cloaking": self.min_local_cloaking, "hidden_rate": self.min_hidden_rate}
        return (*(Rule(metric, value) for metric, value in least.items() if value is not None), *self.gates)

    @property
    def measured(self) -> Options:
        """The options of the measurement, with the quantiles and counts that the rules need."""
        shares = (quantile_share(rule.metric) for rule in self.gates)
        medians = (rule.threshold for rule in self.rules if rule.metric == "local_cloaking")
        return replace(
            self.options,
            quantiles=tuple(share for share in shares if share is not None),
            at_least=tuple(math.ceil(threshold) for threshold in medians if threshold > 0),
        )


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Return the settings of a command line (default: this process's).

    Raises:
        SettingsError: an option or key is unknown or of the wrong type, or options contradict each other.
        SystemExit: with code 0, after --help and --version.
    """
    reader = parser()
    given = vars(reader.parse_args(argv))
    path, report = given.pop("config", None), given.pop("report", None)
    if path is None and report is not None:
        raise SettingsError("--report chooses one of the reports of a --config file, which is not given")
    file = None if path is None else File(path, report)
    values = {} if file is None else file.values(reader.readable(), given)
    conf = (*values.get("conf", ()), *given.get("conf", ()))  # of equal keys the last one is used
    values |= given | {"conf": conf}
    problems = _contradictions(values)
    tables: list[Ref] = [values[name] for name in ("originals", "avatars", "link") if name in values]
    wanted = [str(table.path) for table in tables if table.kind == "jdbc"]
    if wanted and file is None:
        problems.append("jdbc:NAME is the block [jdbc.NAME] of a --config file, which is not given")
    elif file is not None:
        try:
            values["jdbc"] = file.connections(sorted(set(wanted)))
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(*problems)
    space = made(Space, values, method=values.get("project", "auto"))
    return made(Settings, values, options=made(Options, values), space=space)


def parser() -> Parser:
    """Return the parser; its result holds only the options that are given, so that the TOML file fills in the rest."""
    found = Parser("local-cloaking", _DESCRIPTION, _EPILOG, (TABLES, LINK, SPACE, RAW, RESULTS, GATE, RUNNING))
    found.add_options(Options)
    found.add_options(Settings)
    found.add_options(Space, without=("method", "ncp"))
    running = found.group(RUNNING)
    running.add_argument("--config", metavar="FILE", help="TOML: long options with underscores; the command line wins")
    running.add_argument("--report", metavar="NAME", type=text, help="which [reports.NAME] of the file to run")
    return found


def _contradictions(values: Mapping[str, Any]) -> list[str]:
    """Return the problems of missing and of contradicting settings; `values` holds those that were given."""
    problems = [f"--{name} is missing" for name in ("originals", "avatars") if name not in values]
    if "output" not in values and not values.get("dry_run"):
        problems.append("--output is missing: the folder of the report (or give --dry-run)")
    return [
        *problems,
        *_link_problems(values),
        *_space_problems(values),
        *_result_problems(values),
        *_gate_problems(values),
    ]


def _link_problems(values: Mapping[str, Any]) -> list[str]:
    """Return the problems of the key and of the options for the link that exclude each other."""
    problems = []
    ways = [name for name in ("made_from", "link", "by_position") if values.get(name)]
    if len(ways) > 1:
        problems.append(f"only one of {', '.join('--' + way.replace('_', '-') for way in ways)} can define the link")
    key, made_from = values.get("id", ("id",)), values.get("made_from")
    if made_from is not None and len(made_from) != len(key):
        problems.append(f"--made-from names {len(made_from)} column(s), --id {len(key)}: they must match one by one")
    if "link" in values and len(key) != 1:
        problems.append("--link works with a key of one column; put a single key into both tables")
    if "by_position" in values and "id" in values and values["by_position"]:
        problems.append("--by-position numbers the rows itself; leave --id out")
    for listed in ("id", "made_from", "components"):
        repeated = {name for name in values.get(listed) or () if values[listed].count(name) > 1}
        if repeated:
            problems.append(f"--{listed.replace('_', '-')} names {', '.join(sorted(repeated))} more than once")
    keys = {name.casefold() for name in key}
    chosen = [name for name in values.get("components") or () if name.casefold() in keys]
    if chosen:
        problems.append(f"--components names '{', '.join(chosen)}', which is the key; leave it out")
    return problems


def _space_problems(values: Mapping[str, Any]) -> list[str]:
    """Return the problems of projection options without --project, and of --project without what it needs."""
    if "project" not in values:
        fitting = ("continuous", "categorical", "drop", "missing_continuous", "missing_categorical", "unseen")
        return [f"--{name.replace('_', '-')} needs --project" for name in fitting if name in values]
    problems = ["--project needs --ncp, the number of components to keep"] if "ncp" not in values else []
    return problems + (["--components is for projected tables; leave it out"] if "components" in values else [])


def _result_problems(values: Mapping[str, Any]) -> list[str]:
    """Return the problems of options for results that are not requested, and of names that a history cannot keep."""
    problems = []
    if values.get("overwrite") and "counts" not in values:
        problems.append("--overwrite needs --counts, which is not given")
    if "compare_last" in values and "history" not in values:
        problems.append("--compare-last needs --history, which holds the last run")
    originals = values.get("originals", "")
    if "history" in values and not values.get("name") and published(originals) != originals:
        problems.append("--history needs --name: parts of the address of --originals are not published")
    folder = FOLDER_SIGN.sub("%00", values.get("name") or published(originals))
    if "history" in values and len(folder.encode()) > LONGEST_NAME:
        problems.append(f"--name is too long for a history, in which it names a folder: at most {LONGEST_NAME} bytes")
    return problems


def _gate_problems(values: Mapping[str, Any]) -> list[str]:
    """Return the problems of several rules on one figure, and of rules on groups without --group-by."""
    rules: Sequence[Rule] = values.get("gates", ())
    asked: list[tuple[str, str | None]] = [
        (metric, None) for metric in ("local_cloaking", "hidden_rate") if f"min_{metric}" in values
    ]
    asked += [(rule.metric, rule.group) for rule in rules]
    problems = [
        f"gates: there are several rules on {metric}{f' of the group {group}' if group else ''}; keep one"
        for metric, group in dict.fromkeys(asked)
        if asked.count((metric, group)) > 1
    ]
    if any(rule.group is not None for rule in rules) and "group_by" not in values:
        problems.append("gates: a rule on a group needs --group-by")
    return problems
