"""Parse and check the command line of a projection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cloaking.command import settings as measuring
from cloaking.command.parser import TABLES, Parser, folder, made, reference
from cloaking.errors import SettingsError
from cloaking.options import RAW, RESULTS, RUNNING, Options, Space, again, names, option
from cloaking.tables.reference import Connection, Ref

_DESCRIPTION = """\
Project raw tables: fit PCA, MCA or FAMD on the originals, exactly, and give originals and avatars their coordinates
dim_1 to dim_N, over which Local Cloaking is then measured. The metric moves with the number of components."""

_EPILOG = """\
example:
  spark-submit jobs/project.py --originals gold.patients --avatars gold.patients_avatars --id patient_id --ncp 5 \\
      --categorical arm,center --projected-originals silver.patients_dims --projected-avatars silver.avatars_dims \\
      --output /models/patients
  spark-submit jobs/project.py --model /models/patients/model.json --avatars parquet:new_avatars --id patient_id \\
      --projected-avatars parquet:new_dims

Numbers are continuous, text and booleans categorical, unless named. Categories are compared as text: 2 and 2.0 differ.
model.json holds aggregates of the originals, among them the name and share of each modality.

exit codes: 0 done; 1 a bug or lack of memory; 2 bad arguments or data, nothing written."""


@dataclass(frozen=True)
class Settings:
    """The settings of one projection."""

    originals: Ref | None = again(measuring.Settings, "originals", default=None)
    avatars: Ref | None = again(measuring.Settings, "avatars", default=None)
    where: str | None = again(measuring.Settings, "where")
    where_avatars: str | None = again(measuring.Settings, "where_avatars")
    id: tuple[str, ...] = again(Options, "id", group=TABLES)
    made_from: tuple[str, ...] | None = again(Options, "made_from", group=TABLES)
    keep: tuple[str, ...] = option(
        (), group=TABLES, read=names, metavar="A[,B]", help="further columns of the originals to carry over"
    )
    by_position: bool = option(
        False, group=TABLES, read=bool, help="single files without a key: number the rows from 0"
    )
    model: str | None = option(
        None, group=RAW, read=folder, metavar="FILE", help="apply this model.json instead of fitting one"
    )
    space: Space = field(default_factory=Space)
    projected_originals: Ref | None = option(
        None, group=RESULTS, read=reference, metavar="REF", help="table to write, key and coordinates: SENSITIVE"
    )
    projected_avatars: Ref | None = option(
        None, group=RESULTS, read=reference, metavar="REF", help="the same for the avatars"
    )
    output: str | None = option(
        None, group=RESULTS, read=folder, metavar="DIR", help="folder or address of model.json: aggregates"
    )
    overwrite: bool = option(False, group=RESULTS, read=bool, help="replace existing tables")
    conf: tuple[str, ...] = again(measuring.Settings, "conf")
    debug: bool = again(measuring.Settings, "debug")
    jdbc: Mapping[str, Connection] = field(default_factory=dict)


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Return the settings of a command line (default: this process's).

    Raises:
        SettingsError: an option is unknown or of the wrong kind, or options contradict each other.
        SystemExit: with code 0, after --help and --version.
    """
    given = vars(parser().parse_args(argv))
    settings = made(Settings, given | {"conf": tuple(given.get("conf", ()))}, space=made(Space, given))
    problems = _contradictions(settings, given)
    if problems:
        raise SettingsError(*problems)
    return settings


def parser() -> Parser:
    """Return the parser; its result holds only the options that are given."""
    found = Parser("project", _DESCRIPTION, _EPILOG, (TABLES, RAW, RESULTS, RUNNING))
    found.add_options(Settings)
    found.add_options(Space)
    return found


def _contradictions(settings: Settings, given: dict[str, object]) -> list[str]:
    """Return the problems of missing and of contradicting settings."""
    problems = []
    fitting = ("method", "ncp", "continuous", "categorical", "drop", "missing_continuous", "missing_categorical")
    if settings.model is not None:
        fixed = [f"--{name.replace('_', '-')}" for name in (*fitting, "output") if name in given]
        if fixed:
            problems.append(f"--model fixes the projected space; leave out {', '.join(fixed)}")
        if settings.originals is None and settings.avatars is None:
            problems.append("--model needs a table to project: --originals, --avatars or both")
    else:
        needed = ("originals", "ncp", "output")
        problems += [f"--{name} is missing, or --model" for name in needed if name not in given]
    for name in ("originals", "avatars"):
        table, result = getattr(settings, name), getattr(settings, f"projected_{name}")
        if table is None and result is not None:
            problems.append(f"--projected-{name} needs --{name}")
        wanted = name == "avatars" or settings.model is not None
        if wanted and table is not None and result is None:
            problems.append(f"--projected-{name} is missing: where to write the projected {name}")
    if settings.made_from is not None and len(settings.made_from) != len(settings.id):
        problems.append(
            f"--made-from names {len(settings.made_from)} column(s), --id {len(settings.id)}: "
            "they must match one by one"
        )
    if settings.by_position and ("id" in given or settings.made_from is not None):
        problems.append("--by-position numbers the rows itself; leave --id and --made-from out")
    if settings.projected_originals is not None and settings.projected_originals == settings.projected_avatars:
        problems.append("--projected-originals and --projected-avatars are the same table")
    return problems
