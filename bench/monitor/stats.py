"""The effect of toggling: quartets A B B A, their trimmed mean, and its confidence interval.

A quartet is four consecutive slices: without, with, with, without (A B B A). A steady drift of the host's speed affects
both kinds equally. The effect is the mean logarithm of the two slices *with*, less the mean logarithm of the two slices
*without*. The mean over all quartets leaves out the lowest and the highest tenth of them, because other events disturb
some slices. The interval is Tukey and McLaughlin's for a trimmed mean (1963). With few quartets nothing is trimmed and
it is Student's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from ..side_by_side.report import figure

TRIMMED = 0.1
# Quantiles of Student's t distribution for two-sided 95 % intervals, for 1, 2, 3 and more degrees of freedom.
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
Z_95 = 1.959964


@dataclass(frozen=True)
class Estimate:
    """A value with a range: its 95 % interval, or the least and the greatest value. `of` is the number of values."""

    value: float
    low: float
    high: float
    of: int
    interval: bool = False

    @staticmethod
    def spread(values: Sequence[float]) -> "Estimate":
        """Median, least and greatest."""
        return Estimate(median(values), min(values), max(values), len(values))

    @staticmethod
    def mean(values: Sequence[float]) -> "Estimate":
        """Mean, least and greatest: for costs whose sum matters."""
        return Estimate(fmean(values), min(values), max(values), len(values))

    @staticmethod
    def exact(value: float) -> "Estimate":
        return Estimate(value, value, value, 1)

    def negated(self) -> "Estimate":
        """The estimate with the opposite sign: a gain as a loss."""
        return Estimate(-self.value, -self.high, -self.low, self.of, self.interval)

    def signed(self) -> str:
        """The value and its range with signs."""
        return f"{self.value:+.2f} ({self.low:+.2f} to {self.high:+.2f})"

    def __str__(self) -> str:
        if self.low == self.high:
            return figure(self.value)
        return f"{figure(self.value)} ({figure(self.low)}–{figure(self.high)})"


def effect(quartet: Sequence[float]) -> float:
    """The logarithm of the ratio B to A in a quartet A B B A."""
    before, first, second, after = map(math.log, quartet)
    return (first + second - before - after) / 2


def change_percent(quartets: Sequence[Sequence[float]]) -> Estimate:
    """The change from A to B in percent, with its 95 % interval."""
    return percent(trimmed_mean([effect(quartet) for quartet in quartets]))


def change_percent_of_runs(runs: Sequence[Sequence[Sequence[float]]]) -> Estimate:
    """The change from A to B in percent over several runs. Each run counts as one value, because runs may differ by
    more than the quartets within a run do."""
    return percent(trimmed_mean([trimmed_mean([effect(quartet) for quartet in quartets]).value for quartets in runs]))


def percent(found: Estimate) -> Estimate:
    """Converts an estimate from logarithms to percent."""
    value, low, high = (100 * math.expm1(log) for log in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.of, interval=True)


def trimmed_mean(values: Sequence[float]) -> Estimate:
    """The mean without the lowest and the highest tenth, and its 95 % interval (Tukey & McLaughlin 1963)."""
    number = len(values)
    if number < 2:
        raise ValueError(f"{number} values have no interval: measure longer")
    ordered = sorted(values)
    cut = int(TRIMMED * number)
    kept = ordered[cut : number - cut]
    winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
    middle = fmean(winsorized)
    variance = sum((value - middle) ** 2 for value in winsorized) / (number - 1)
    error = math.sqrt(variance / number) / (1 - 2 * cut / number)
    mean, half_width = fmean(kept), t_95(len(kept) - 1) * error
    return Estimate(mean, mean - half_width, mean + half_width, number, interval=True)


def t_95(freedom: int) -> float:
    """Student's t for 95 %, two-sided. Beyond the table: Cornish and Fisher's series, with errors below 0.001."""
    if freedom <= len(T_95):
        return T_95[freedom - 1]
    z = Z_95
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2) + third / freedom**3
