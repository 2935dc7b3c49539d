"""The k sweep's command line in, frozen settings out; everything unknown or impossible is refused at once."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from cloaking import __version__
from cloaking.errors import SettingsError
from cloaking.options import Parser, add_running, folder, names, percentage, positive, reference, text, threshold

KS = (5, 10, 20, 40, 80)
REPEATS = 5
SEED = 0
LARGEST_SEED = 2**32 - 1  # each of seed, k and repeat is one word of what the generator starts from
_NEEDED = {"originals": "", "output": ": the folder of the page and of k_sweep.json"}

_DESCRIPTION = """\
How large must k be? Simulate avatars of the originals by the published method, at several k and several times each,
and measure Local Cloaking and hidden rate exactly, over the components that the originals come with. The metric moves
with their number (ncp). The answer holds for the k that were tried."""

_EPILOG = """\
example:
  spark-submit jobs/k_sweep.py --originals gold.patients_projected --id patient_id --ncp 5 --k 5,10,20,40 \\
      --target 6 --output /reports/patients_k

REF is catalog.schema.table or format:path, such as parquet:s3://bucket/patients, orc:/data/patients, csv:patients.csv
(UTF-8, header, comma, decimal point, double quotes).

exit codes: 0 done, the targets reached or none set; 1 a bug or lack of memory; 2 bad arguments or data, nothing
written; 3 no k tried reaches the targets in every repeat, everything written."""


@dataclass(frozen=True)
class Settings:
    """What one sweep was asked to do; the fields are the long options of the command line."""

    originals: str
    output: str
    where: str | None = None
    id: tuple[str, ...] = ("id",)
    components: tuple[str, ...] | None = None
    ncp: int | None = None
    k: tuple[int, ...] = KS
    repeats: int = REPEATS
    seed: int = SEED
    target: float | None = None
    target_hidden_rate: float | None = None
    name: str | None = None
    conf: tuple[str, ...] = ()
    debug: bool = False

    @property
    def thresholds(self) -> dict[str, float]:
        """The targets that are set, by their metrics."""
        targets = {"local_cloaking": self.target, "hidden_rate": self.target_hidden_rate}
        return {metric: threshold for metric, threshold in targets.items() if threshold is not None}


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Return the settings of a command line (default: this process's).

    Raises:
        SettingsError: an unknown option, a value of the wrong kind, options that are missing or name things twice.
        SystemExit: after --help and --version, with 0.
    """
    given = vars(_parser().parse_args(argv))
    problems = [f"--{name} is missing{fix}" for name, fix in _NEEDED.items() if name not in given]
    for option in ("id", "components", "k"):
        values = given.get(option, ())
        repeated = sorted({value for value in values if values.count(value) > 1})
        if repeated:
            problems.append(f"--{option} names {', '.join(map(str, repeated))} more than once")
    if problems:
        raise SettingsError(*problems)
    ks = tuple(sorted(given.get("k", KS)))
    return Settings(**given | {"k": ks, "conf": tuple(given.get("conf", ()))})


def _parser() -> Parser:
    parser = Parser("k_sweep", _DESCRIPTION, _EPILOG)
    tables = parser.add_argument_group("originals")
    tables.add_argument("--originals", metavar="REF", type=reference, help="table of originals in the projected space")
    tables.add_argument("--where", metavar="SQL", type=text, help="rows to keep; a sample gives too high figures")
    tables.add_argument("--id", metavar="A[,B]", type=names, help="the key, which is no component (default: id)")
    tables.add_argument(
        "--components", metavar="A,B,C", type=names, help="default: the numeric columns of the originals"
    )
    tables.add_argument("--ncp", metavar="N", type=positive, help="take the first N components")

    tried = parser.add_argument_group("what is tried")
    tried.add_argument("--k", metavar="K,K", type=_ks, help="numbers of neighbours (default: 5,10,20,40,80)")
    tried.add_argument("--repeats", metavar="N", type=positive, help="sets of avatars at each k (default: 5)")
    tried.add_argument("--seed", metavar="S", type=_seed, help="of the random numbers (default: 0)")

    target = parser.add_argument_group("targets (none unless set; reached is: in every repeat)")
    target.add_argument("--target", metavar="X", type=threshold, help="Local Cloaking of at least X; else exit 3")
    target.add_argument(
        "--target-hidden-rate", metavar="Y", type=percentage, help="hidden rate of at least Y percent; else exit 3"
    )

    results = parser.add_argument_group("results")
    results.add_argument("--output", metavar="DIR", type=folder, help="folder or address of k_sweep.html and .json")
    results.add_argument("--name", type=text, help="name of the page (default: the originals' REF)")
    add_running(parser)
    parser.add_argument("--version", action="version", version=f"k_sweep {__version__}")
    return parser


def _ks(given: str) -> tuple[int, ...]:
    try:
        return tuple(positive(k.strip()) for k in given.split(","))
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"whole numbers of at least 1 separated by commas are needed, not '{given}'"
        ) from None


def _seed(given: str) -> int:
    if not given.isdecimal() or int(given) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"a whole number from 0 to {LARGEST_SEED} is needed, not '{given}'")
    return int(given)
