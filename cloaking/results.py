"""Hold the figures that measurement, history and report share, as frozen dataclasses without any record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CLASSES: tuple[tuple[int, int | None], ...] = (
    (0, 0), (1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, None),
)  # fmt: skip
OTHER_GROUPS, SMALLEST_GROUP = "(other)", 100  # groups with fewer originals are merged into (other)
RATES = ("hidden_rate", "hidden_rate_ties_hide", "hidden_rate_ties_expose")  # in percent
_QUANTILE = "quantile_"


def quantile_metric(share: float) -> str:
    """Return the name in rules of the quantile of the cloaking at this share of the originals."""
    return f"{_QUANTILE}{share}"


def quantile_share(metric: str) -> float | None:
    """Return the share of the quantile that a metric names, or None for another metric."""
    return float(metric.removeprefix(_QUANTILE)) if metric.startswith(_QUANTILE) else None


@dataclass(frozen=True)
class CloakingClass:
    """The number of originals with a cloaking from `low` to `high`, both included; `high` None means no upper end."""

    low: int
    high: int | None
    originals: int


@dataclass(frozen=True)
class Interval:
    """A distribution-free confidence interval of the median, from order statistics.

    It treats the originals as independent draws and does not include the variation between draws of avatars.
    """

    level: float
    low: float
    high: float


@dataclass(frozen=True)
class Notice:
    """A warning with a fixed code for programs and a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True)
class Summary:
    """The figures of one set of originals against all avatars; rates are percentages.

    `hidden_rate` is the chance that an attacker who links each original to its nearest avatar, picking at random
    among ties, is wrong; for the two bounds ties always hide, or always expose, the original.
    """

    local_cloaking: float
    hidden_rate: float
    hidden_rate_ties_hide: float
    hidden_rate_ties_expose: float
    originals: int
    avatars: int
    components: tuple[str, ...]
    mean: float
    min: int
    max: int
    quantiles: Mapping[float, float]
    classes: tuple[CloakingClass, ...]
    originals_with_ties: int
    interval: Interval | None = None
    warnings: tuple[Notice, ...] = ()
    groups: Mapping[str, "Summary"] = field(default_factory=dict)
    at_least: tuple[tuple[int, int], ...] = ()  # (k, number of originals with a cloaking of at least k), ascending

    @property
    def ncp(self) -> int:
        """The number of components over which distances are computed."""
        return len(self.components)

    def value(self, metric: str) -> float:
        """Return the figure that a rule names; a quantile must be one of those requested."""
        share = quantile_share(metric)
        return float(getattr(self, metric) if share is None else self.quantiles[share])


@dataclass(frozen=True)
class Rule:
    """A requirement on a run: a metric, its least value, and the group of originals, or None for all."""

    metric: str
    threshold: float
    group: str | None = None

    def applied(self, summary: Summary) -> "Gate":
        """Return the rule with the measured value."""
        of = summary if self.group is None else summary.groups[self.group]
        return Gate(self.metric, self.threshold, of.value(self.metric), group=self.group)


@dataclass(frozen=True)
class Gate:
    """A rule with its measured value; it is met if the value is at least the threshold."""

    metric: str
    threshold: float
    value: float
    operator: str = ">="
    group: str | None = None

    @property
    def met(self) -> bool:
        """Whether the value reaches the threshold."""
        return self.value >= self.threshold


@dataclass(frozen=True)
class Run:
    """One run of the job: its summary, its verdict and all information needed to repeat it."""

    run_id: str
    name: str
    run_at: str
    run_date: str
    summary: Summary
    gates: tuple[Gate, ...]
    inputs: tuple[tuple[str, int], ...]
    link_kind: str
    link_columns: tuple[str, ...]
    parameters: Mapping[str, Any]
    versions: Mapping[str, str]
    strategy: str
    seconds: Mapping[str, float]
    explained_variance: tuple[float, ...] | None = None
    command: tuple[str, ...] = ()  # the quoted words of the command that repeats the run
    command_file: tuple[str, ...] = ()  # the lines that must be in a configuration file

    @property
    def verdict(self) -> str:
        """`pass`, `fail`, or `no gate` if no threshold was set."""
        if not self.gates:
            return "no gate"
        return "pass" if all(gate.met for gate in self.gates) else "fail"


@dataclass(frozen=True)
class PastRun:
    """The figures of one run in the history, which the report draws; `p05` and `p95` are quantiles of the cloaking."""

    run_date: str
    local_cloaking: float
    p05: float
    p95: float
    verdict: str
    hidden_rate: float | None = None
    ncp: int | None = None
