"""Predictions of response times, compared with a repetition of the measurement.

The **floor** of a level is |ln(R₂ / R₁)|: R₁ is the mean response time that the survey measured, and R₂ is that of the
same load, minutes later. The error of a prediction P is |ln(P / R₁)|. Assume that R₁ and R₂ vary independently about a
value that a perfect predictor knows. Its error is then about 1/√2 = 0.7 times the floor, because only one of the two
measurements adds to the error.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

# Share of the measurements that should be within their intervals.
COVERAGE = 0.9
# Minimum number of other pairs. The interval of a repetition is computed from the differences within the other pairs.
MIN_OTHERS = 3


@dataclass(frozen=True)
class Pair:
    """A level that was predicted and measured twice: mean response times in seconds."""

    workload: str
    fraction: float
    predicted: float
    measured: float
    repeated: float
    interval: tuple[float, float] | None

    def log_error(self) -> float:
        return abs(math.log(self.predicted / self.measured))

    def floor(self) -> float:
        return abs(math.log(self.repeated / self.measured))


@dataclass(frozen=True)
class Scores:
    """Mean interval scores on the same pairs, and the number of intervals that contain the measurement."""

    pairs: int
    survey: float
    repetition: float
    survey_holds: int
    repetition_holds: int


def pairs(rows: Iterable[dict]) -> list[Pair]:
    """The levels of which neither measurement is in doubt."""
    return [pair for row in rows for level in row.get("levels", []) if (pair := pair_of(level))]


def pair_of(level: dict) -> Pair | None:
    times = [level.get(key) for key in ("predicted", "measured", "repeated")]
    if not level["valid"] or level.get("repeat_doubts") or not all(times):
        return None
    interval = level.get("interval90")
    return Pair(level["workload"], level["fraction"], *times, tuple(interval) if interval and interval[0] > 0 else None)


def by_level(found: Iterable[Pair]) -> dict[tuple[str, float], list[Pair]]:
    """The pairs of each workload and load, in increasing order of the load."""
    groups: dict[tuple[str, float], list[Pair]] = {}
    for pair in found:
        groups.setdefault((pair.workload, round(pair.fraction, 2)), []).append(pair)
    return dict(sorted(groups.items(), key=lambda item: (item[0][0] != "mix", item[0])))


def over_floor(found: Sequence[Pair]) -> float | None:
    """The median error of the predictions over the median floor; None if there is no floor."""
    floor = median(pair.floor() for pair in found) if found else 0
    return median(pair.log_error() for pair in found) / floor if floor else None


def interval_score(low: float, high: float, measured: float, alpha: float = 1 - COVERAGE) -> float:
    """The interval score of Gneiting & Raftery (2007), equation 43; lower is better:

        S = (u − l) + 2/α · (l − x) · 1{x < l} + 2/α · (x − u) · 1{x > u}

    It is the width of the interval, and a penalty if the measurement x is outside. It is proper: a predictor has the
    best expected score if l and u are the α/2 and 1 − α/2 quantiles of its true belief.

    T. Gneiting & A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", Journal of the American
    Statistical Association 102 (2007), 359–378.
    """
    return (high - low) + 2 / alpha * (max(low - measured, 0) + max(measured - high, 0))


def repetition_half_width(others: Sequence[float]) -> float:
    """The half-width, in log units, of a 90 % interval around a repetition: from the floors of other pairs, the one of
    rank ⌈0.9 (n + 1)⌉. This is split conformal prediction (Lei et al. 2018): among n + 1 exchangeable floors, the next
    one is below it with a probability of at least 90 %. The greatest is used if there are fewer than nine others."""
    ordered = sorted(others)
    rank = math.ceil(COVERAGE * (len(ordered) + 1) - 1e-9)
    return ordered[min(rank, len(ordered)) - 1]


def scores(found: Sequence[Pair]) -> Scores | None:
    """The mean interval scores of the survey and of "repeat the measurement", in log units, over pairs of one level.

    Both predict ln R₁. The survey's interval is its 90 % interval. The other interval has its centre at ln R₂, and its
    half-width is from the floors of all other pairs (leave-one-out), so that no interval knows its own measurement.
    None if too few pairs exist.
    """
    if len(found) <= MIN_OTHERS:
        return None
    both = []
    for i, pair in enumerate(found):
        if pair.interval is None:
            continue
        half_width = repetition_half_width([other.floor() for j, other in enumerate(found) if j != i])
        of_survey = (math.log(pair.interval[0]), math.log(pair.interval[1]))
        centre = math.log(pair.repeated)
        both.append((of_survey, (centre - half_width, centre + half_width), math.log(pair.measured)))
    if not both:
        return None
    return Scores(
        len(both),
        fmean(interval_score(*survey, measured) for survey, _, measured in both),
        fmean(interval_score(*repetition, measured) for _, repetition, measured in both),
        sum(contains(survey, measured) for survey, _, measured in both),
        sum(contains(repetition, measured) for _, repetition, measured in both),
    )


def contains(interval: tuple[float, float], measured: float) -> bool:
    return interval[0] <= measured <= interval[1]
