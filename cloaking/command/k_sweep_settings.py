"""Parse and check the command line of a k sweep."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from cloaking.command import settings as measuring
from cloaking.command.parser import TABLES, Parser, folder, percentage, threshold
from cloaking.errors import SettingsError
from cloaking.options import RESULTS, RUNNING, Options, again, option, positive
from cloaking.tables.reference import Ref

KS = (5, 10, 20, 40, 80)
REPEATS = 5
SEED = 0
LARGEST_SEED = 2**32 - 1  # each of seed, k and repeat is one word of what the generator starts from
TRIED = "what is tried"
TARGETS = "targets (none unless set; reached is: in every repeat)"
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


@dataclass(frozen=True)
class Settings:
    """The settings of one sweep."""

    originals: Ref = again(
        measuring.Settings, "originals", help="table of originals in the projected space, one row each"
    )
    output: str = option(
        group=RESULTS, read=folder, metavar="DIR", help="folder or address of k_sweep.html and k_sweep.json"
    )
    where: str | None = again(measuring.Settings, "where", help="rows to keep; a sample gives too high figures")
    id: tuple[str, ...] = again(Options, "id", group=TABLES, help="the key, which is no component (default: id)")
    components: tuple[str, ...] | None = again(Options, "components", group=TABLES)
    ncp: int | None = again(Options, "ncp", group=TABLES)
    k: tuple[int, ...] = option(
        KS, group=TRIED, read=_ks, metavar="K,K", help="numbers of neighbours (default: 5,10,20,40,80)"
    )
    repeats: int = option(
        REPEATS, group=TRIED, read=positive, metavar="N", help="sets of avatars at each k (default: 5)"
    )
    seed: int = option(SEED, group=TRIED, read=_seed, metavar="S", help="of the random numbers (default: 0)")
    target: float | None = option(
        None, group=TARGETS, read=threshold, metavar="X", help="Local Cloaking of at least X; else exit 3"
    )
    target_hidden_rate: float | None = option(
        None, group=TARGETS, read=percentage, metavar="Y", help="hidden rate of at least Y percent; else exit 3"
    )
    name: str | None = again(measuring.Settings, "name")
    conf: tuple[str, ...] = again(measuring.Settings, "conf")
    debug: bool = again(measuring.Settings, "debug")

    @property
    def thresholds(self) -> dict[str, float]:
        """The targets that are set, by their metrics."""
        targets = {"local_cloaking": self.target, "hidden_rate": self.target_hidden_rate}
        return {metric: threshold for metric, threshold in targets.items() if threshold is not None}


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Return the settings of a command line (default: this process's).

    Raises:
        SettingsError: an option is unknown, missing, of the wrong kind, or names something twice.
        SystemExit: with code 0, after --help and --version.
    """
    given = vars(parser().parse_args(argv))
    problems = [f"--{name} is missing{fix}" for name, fix in _NEEDED.items() if name not in given]
    for name in ("id", "components", "k"):
        values = given.get(name, ())
        repeated = sorted({value for value in values if values.count(value) > 1})
        if repeated:
            problems.append(f"--{name} names {', '.join(map(str, repeated))} more than once")
    if problems:
        raise SettingsError(*problems)
    ks = tuple(sorted(given.get("k", KS)))
    return Settings(**given | {"k": ks, "conf": tuple(given.get("conf", ()))})


def parser() -> Parser:
    """Return the parser; its result holds only the options that are given."""
    found = Parser("k_sweep", _DESCRIPTION, _EPILOG, (TABLES, TRIED, TARGETS, RESULTS, RUNNING))
    found.add_options(Settings)
    return found
