"""Order statistics, and a regression line with the interval of its slope."""

import math
from collections.abc import Sequence
from statistics import fmean, median

# Number of blocks of a run, and the quantile of Student's t distribution for a two-sided 95 % interval with BLOCKS - 2
# degrees of freedom.
BLOCKS = 12
T_95 = 2.228


def percentile(ordered: Sequence[float], p: float) -> float:
    """Percentile by nearest rank: the smallest value that at least p percent of the values do not exceed."""
    rank = math.ceil(p / 100 * len(ordered))
    return ordered[max(rank, 1) - 1]


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, minimum and maximum."""
    return median(values), min(values), max(values)


def slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The slope of a least-squares line, and the half-width of its 95 % interval.

    The line is fitted to the means of BLOCKS blocks. Consecutive readings of a process's memory are strongly
    correlated; block means are nearly independent, as the interval assumes.
    """
    if len(points) < 2 * BLOCKS:
        raise ValueError(f"{len(points)} readings are too few for a slope")
    size = len(points) // BLOCKS
    blocks = [points[i * size : (i + 1) * size] for i in range(BLOCKS)]
    xs, ys = ([fmean(point[axis] for point in block) for block in blocks] for axis in (0, 1))
    x_mean, y_mean = fmean(xs), fmean(ys)
    sxx = sum((x - x_mean) ** 2 for x in xs)
    b = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / sxx
    residual = sum((y - y_mean - b * (x - x_mean)) ** 2 for x, y in zip(xs, ys, strict=True))
    return b, T_95 * math.sqrt(residual / (BLOCKS - 2) / sxx)
