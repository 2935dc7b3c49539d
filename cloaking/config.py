"""Command line in, frozen settings out, a TOML file behind it; what is unknown or impossible is refused at once."""

import argparse
import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from cloaking import __version__
from cloaking.config_file import Connection, File
from cloaking.contradictions import contradictions
from cloaking.errors import SettingsError
from cloaking.figures import Rule, quantile_share
from cloaking.options import (
    BROADCAST_LIMIT,
    CELL_ROWS,
    LARGEST_TIE_TOLERANCE,
    METHODS,
    STRATEGIES,
    TIE_TOLERANCE,
    Parser,
    add_projection,
    add_running,
    folder,
    names,
    number,
    percentage,
    positive,
    reference,
    text,
    threshold,
)

_DESCRIPTION = """\
Measure Local Cloaking: how many avatars stand at least as close to each original as the avatar made from it. The
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


@dataclass(frozen=True)
class Settings:
    """What one run was asked to do; the fields are the long options of the command line."""

    originals: str
    avatars: str
    where: str | None = None
    where_avatars: str | None = None
    id: tuple[str, ...] = ("id",)
    made_from: tuple[str, ...] | None = None
    link: str | None = None
    by_position: bool = False
    project: str | None = None
    continuous: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing_continuous: str = "error"
    missing_categorical: str = "error"
    unseen: str = "error"
    components: tuple[str, ...] | None = None
    ncp: int | None = None
    output: str | None = None
    counts: str | None = None
    overwrite: bool = False
    name: str | None = None
    history: str | None = None
    run_date: str | None = None
    group_by: str | None = None
    min_local_cloaking: float | None = None
    min_hidden_rate: float | None = None
    strategy: str = "auto"
    broadcast_limit: int = BROADCAST_LIMIT
    cell_rows: int = CELL_ROWS
    tasks: int | None = None
    tie_tolerance: float = TIE_TOLERANCE
    dry_run: bool = False
    compare_last: float | None = None
    gates: tuple[Rule, ...] = ()
    jdbc: Mapping[str, Connection] = field(default_factory=dict)
    conf: tuple[str, ...] = ()
    debug: bool = False

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All that the run must reach."""
        least = {"local_cloaking": self.min_local_cloaking, "hidden_rate": self.min_hidden_rate}
        return (*(Rule(metric, value) for metric, value in least.items() if value is not None), *self.gates)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles of the cloaking that the rules are about."""
        shares = (quantile_share(rule.metric) for rule in self.gates)
        return tuple(share for share in shares if share is not None)

    @property
    def at_least(self) -> tuple[int, ...]:
        """The counts, from 1, that the rules want the median of the cloaking to reach."""
        return tuple(
            math.ceil(rule.threshold) for rule in self.rules if rule.metric == "local_cloaking" and rule.threshold > 0
        )


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Return the settings of a command line (default: this process's).

    Raises:
        SettingsError: an unknown option or key, a value of the wrong type, options that contradict each other.
        SystemExit: after --help and --version, with 0.
    """
    parser = _parser()
    given = vars(parser.parse_args(argv))
    path, report = given.pop("config", None), given.pop("report", None)
    if path is None and report is not None:
        raise SettingsError("--report chooses one of the reports of a --config file, which is not given")
    file = None if path is None else File(path, report)
    values = {} if file is None else file.values(_options(parser), given)
    conf = (*values.get("conf", ()), *given.get("conf", ()))  # the last one of a setting wins
    values |= given | {"conf": conf}
    problems = contradictions(values)
    tables = [values[name] for name in ("originals", "avatars", "link") if name in values]
    wanted = [table.removeprefix("jdbc:") for table in tables if table.startswith("jdbc:")]
    if wanted and file is None:
        problems.append("jdbc:NAME is the block [jdbc.NAME] of a --config file, which is not given")
    elif file is not None:
        try:
            values["jdbc"] = file.connections(sorted(set(wanted)))
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(*problems)
    return Settings(**values)


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options that a file may hold, by their names with underscores."""
    settings = {one.name for one in fields(Settings)}
    return {action.dest: action for action in parser._actions if action.dest in settings}


def _parser() -> Parser:
    """Return the parser; absent options stay absent, so that a TOML key can stand behind each."""
    parser = Parser("local-cloaking", _DESCRIPTION, _EPILOG)
    tables = parser.add_argument_group("tables")
    tables.add_argument("--originals", metavar="REF", type=reference, help="table of originals, one row each")
    tables.add_argument("--avatars", metavar="REF", type=reference, help="table of avatars, one row each")
    tables.add_argument("--where", metavar="SQL", type=text, help="rows to keep, of both tables")
    tables.add_argument("--where-avatars", metavar="SQL", type=text, help="rows to keep of the avatars, if others")

    link = parser.add_argument_group("which avatar was made from which original")
    link.add_argument("--id", metavar="A[,B]", type=names, help="the key, in both tables (default: id)")
    link.add_argument(
        "--made-from", metavar="A[,B]", type=names, help="the avatars' columns that hold that key instead"
    )
    link.add_argument(
        "--link",
        metavar="REF",
        type=reference,
        help="link table, one to one: original_id, avatar_id (their own)",
    )
    link.add_argument("--by-position", action="store_true", help="row i belongs to row i, of two single files")

    space = parser.add_argument_group("projected space")
    space.add_argument(
        "--components", metavar="A,B,C", type=names, help="default: the numeric columns of the originals"
    )
    space.add_argument("--ncp", metavar="N", type=positive, help="take the first N components")
    space.add_argument(
        "--tie-tolerance", metavar="T", type=_tolerance, help="relative width of a tie, 0 to 1e-6 (default: 1e-12)"
    )

    raw = parser.add_argument_group("raw tables (see also jobs/project.py, which writes the projected tables)")
    raw.add_argument("--project", choices=METHODS, type=text, help="fit this on the originals and measure in its space")
    add_projection(raw)

    results = parser.add_argument_group("results")
    results.add_argument("--output", metavar="DIR", type=folder, help="folder or address of report.json")
    results.add_argument(
        "--counts", metavar="REF", type=reference, help="write the counts of each original too: SENSITIVE"
    )
    results.add_argument("--overwrite", action="store_true", help="replace an existing --counts table")
    results.add_argument("--name", type=text, help="name of the report (default: the originals' REF)")
    results.add_argument("--history", metavar="REF", type=reference, help="table that keeps a row of each run")
    results.add_argument(
        "--compare-last", metavar="SHARE", type=_share, help="warn where a figure fell by more than this share (0 to 1)"
    )
    results.add_argument("--run-date", metavar="DATE", type=_date, help="YYYY-MM-DD (default: today, UTC)")
    results.add_argument("--group-by", metavar="COLUMN", type=text, help="the figures per group of originals too")

    gate = parser.add_argument_group("gate (none unless set; --config may hold rules on quantiles and groups)")
    gate.add_argument("--min-local-cloaking", metavar="X", type=threshold, help="fail (exit 3) below X")
    gate.add_argument("--min-hidden-rate", metavar="Y", type=percentage, help="fail (exit 3) below Y percent")

    running = parser.add_argument_group("running")
    running.add_argument(
        "--strategy",
        choices=STRATEGIES,
        type=text,
        help="broadcast all avatars, or partition space into cells; auto (default) picks by size",
    )
    running.add_argument(
        "--broadcast-limit", metavar="MIB", type=positive, help="auto broadcasts coordinates up to this (default: 512)"
    )
    running.add_argument(
        "--cell-rows", metavar="N", type=positive, help="most avatars that a task holds (partition; default: 500000)"
    )
    running.add_argument(
        "--tasks", metavar="N", type=positive, help="Spark tasks to count with (default: from the rows)"
    )
    running.add_argument(
        "--dry-run", action="store_true", help="read and check the tables, print the plan, measure nothing"
    )
    add_running(running)
    running.add_argument("--config", metavar="FILE", help="TOML: long options with underscores; the command line wins")
    running.add_argument("--report", metavar="NAME", type=text, help="which [reports.NAME] of the file to run")
    running.add_argument("--version", action="version", version=f"local-cloaking {__version__}")
    return parser


def _share(given: str) -> float:
    found = number(given, 1, "a share from 0 to below 1")
    if found == 1:  # no figure falls by more than all
        raise argparse.ArgumentTypeError(f"a share from 0 to below 1 is needed, not '{given}'")
    return found


def _tolerance(given: str) -> float:
    return number(given, LARGEST_TIE_TOLERANCE, f"a number from 0 to {LARGEST_TIE_TOLERANCE}")


def _date(given: str) -> str:
    try:
        return datetime.date.fromisoformat(given).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"a date YYYY-MM-DD is needed, not '{given}'") from None
