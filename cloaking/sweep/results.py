"""The results of a k sweep, as frozen dataclasses."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AtK:
    """The measurements at one k: one value per repeat, in the order of the repeats; the hidden rate is in percent."""

    k: int
    seeds: tuple[tuple[int, int, int], ...]
    local_cloaking: tuple[float, ...]
    hidden_rate: tuple[float, ...]

    def values(self, metric: str) -> tuple[float, ...]:
        """Return the values of `local_cloaking` or `hidden_rate`."""
        return {"local_cloaking": self.local_cloaking, "hidden_rate": self.hidden_rate}[metric]

    def spread(self, metric: str) -> tuple[float, float, float]:
        """Return the median, the lowest and the highest of the repeats."""
        values = self.values(metric)
        return statistics.median(values), min(values), max(values)

    def reaches(self, thresholds: Mapping[str, float]) -> int:
        """Return the number of repeats in which every metric is at least its threshold."""
        flags = zip(*([v >= at_least for v in self.values(name)] for name, at_least in thresholds.items()), strict=True)
        return sum(all(repeat) for repeat in flags)


@dataclass(frozen=True)
class Sweep:
    """The measurements at all k, in rising order, and the thresholds that the answer must reach."""

    results: tuple[AtK, ...]
    thresholds: Mapping[str, float]

    @property
    def answer(self) -> int | None:
        """The smallest k tried at which every threshold is reached in every repeat, if there is one."""
        return self.smallest(self.thresholds) if self.thresholds else None

    @property
    def verdict(self) -> str:
        """`reached`, `not reached`, or `no target` where no threshold was set."""
        if not self.thresholds:
            return "no target"
        return "not reached" if self.answer is None else "reached"

    @property
    def relapses(self) -> tuple[int, ...]:
        """The k tried above the answer at which some repeat falls below a threshold again."""
        above = [at for at in self.results if self.answer is not None and at.k > self.answer]
        return tuple(at.k for at in above if at.reaches(self.thresholds) < len(at.seeds))

    def smallest(self, thresholds: Mapping[str, float]) -> int | None:
        """Return the smallest k tried at which these thresholds are reached in every repeat, if there is one."""
        return next((at.k for at in self.results if at.reaches(thresholds) == len(at.seeds)), None)


@dataclass(frozen=True)
class SweepRun:
    """One run of the sweep: its measurements, and all that is needed to repeat it."""

    run_id: str
    name: str
    run_at: str
    sweep: Sweep
    inputs: tuple[tuple[str, int], ...]
    components: tuple[str, ...]
    repeats: int
    seed: int
    method: str
    parameters: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: Mapping[str, float]

    @property
    def originals(self) -> int:
        """The number of originals, and of avatars of each repeat."""
        return self.inputs[0][1]

    @property
    def ncp(self) -> int:
        """The number of components from which distances are computed."""
        return len(self.components)
