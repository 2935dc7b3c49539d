"""The projection's command line in, frozen settings out; everything unknown or impossible is refused at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cloaking import __version__
from cloaking.config_file import Connection
from cloaking.errors import SettingsError
from cloaking.options import METHODS, Parser, add_projection, add_running, folder, names, positive, reference, text

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
    """What one projection was asked to do; the fields are the long options of the command line."""

    originals: str | None = None
    avatars: str | None = None
    where: str | None = None
    where_avatars: str | None = None
    id: tuple[str, ...] = ("id",)
    made_from: tuple[str, ...] | None = None
    keep: tuple[str, ...] = ()
    by_position: bool = False
    model: str | None = None
    method: str = "auto"
    ncp: int | None = None
    continuous: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing_continuous: str = "error"
    missing_categorical: str = "error"
    unseen: str = "error"
    projected_originals: str | None = None
    projected_avatars: str | None = None
    output: str | None = None
    overwrite: bool = False
    jdbc: Mapping[str, Connection] = field(default_factory=dict)
    conf: tuple[str, ...] = ()
    debug: bool = False


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Return the settings of a command line (default: this process's).

    Raises:
        SettingsError: an unknown option, a value of the wrong kind, options that contradict each other.
        SystemExit: after --help and --version, with 0.
    """
    given = vars(_parser().parse_args(argv))
    settings = Settings(**given | {"conf": tuple(given.get("conf", ()))})
    problems = _contradictions(settings, given)
    if problems:
        raise SettingsError(*problems)
    return settings


def _parser() -> Parser:
    parser = Parser("project", _DESCRIPTION, _EPILOG)
    tables = parser.add_argument_group("tables")
    tables.add_argument(
        "--originals", metavar="REF", type=reference, help="raw originals: catalog.schema.table or format:path"
    )
    tables.add_argument("--avatars", metavar="REF", type=reference, help="raw avatars")
    tables.add_argument("--where", metavar="SQL", type=text, help="rows to keep, of both tables")
    tables.add_argument("--where-avatars", metavar="SQL", type=text, help="rows to keep of the avatars, if others")
    tables.add_argument("--id", metavar="A[,B]", type=names, help="the key, carried over from both (default: id)")
    tables.add_argument("--made-from", metavar="A[,B]", type=names, help="the avatars' columns that hold it instead")
    tables.add_argument("--keep", metavar="A[,B]", type=names, help="further columns of the originals to carry over")
    tables.add_argument("--by-position", action="store_true", help="single files without a key: number the rows from 0")

    space = parser.add_argument_group("projected space")
    space.add_argument("--model", metavar="FILE", type=folder, help="apply this model.json instead of fitting one")
    space.add_argument("--method", choices=METHODS, help="default auto: what fits the columns")
    space.add_argument("--ncp", metavar="N", type=positive, help="number of components")
    add_projection(space)

    results = parser.add_argument_group("results")
    results.add_argument(
        "--projected-originals", metavar="REF", type=reference, help="table to write, key and coordinates: SENSITIVE"
    )
    results.add_argument("--projected-avatars", metavar="REF", type=reference, help="the same for the avatars")
    results.add_argument("--output", metavar="DIR", type=folder, help="folder or address of model.json: aggregates")
    results.add_argument("--overwrite", action="store_true", help="replace existing tables")
    add_running(parser)
    parser.add_argument("--version", action="version", version=f"project {__version__}")
    return parser


def _contradictions(settings: Settings, given: dict[str, object]) -> list[str]:
    """Return what the settings lack and where they exclude each other."""
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
        problems += [f"--{name} is missing, or --model" for name in needed if getattr(settings, name) is None]
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
