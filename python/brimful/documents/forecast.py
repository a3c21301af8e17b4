"""Written by document_types.py from schema/forecast.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part


@dataclass(kw_only=True)
class Backtest(Part):
    """Forecasts from earlier origins, compared with what came."""
    #: Share of the values that fell into the 80 % interval, before any widening.
    coverage80: float
    #: Share of the values that fell into the 95 % interval, before any widening.
    coverage95: float
    #: FitSettings far each looked ahead, in steps.
    horizon_steps: int
    #: Mean absolute error over that of repeating the last season, one season ahead; absent if that makes none.
    mase: float | None = None
    #: The same of repeating the last season (or value, without a season) as far as the others looked ahead.
    naive_mase: float | None = None
    #: FitSettings many.
    origins: int
    #: All that were compared; the trend that fits best, on each scale, is that of the whole history.
    tried: list[Tried]


@dataclass(kw_only=True)
class CostRow(Part):
    """One configuration."""
    #: The rate per second up to which it meets the objective; absent if it does at no rate.
    capacity: float | None = None
    #: Price of a million requests when peaks reach the capacity.
    cost_per_million_at_capacity: float | None = None
    #: Price of a million requests at the present mean rate, whether it can take it or not; absent if nothing
    #: arrives.
    cost_per_million_now: float | None = None
    #: When arrivals reach the capacity.
    crossing: Crossing | None = None
    #: Capacity over the present peak, less 1: 0.5 is half as much again; negative if it is too small already. Absent
    #: if nothing arrives, or without capacity.
    headroom: float | None = None
    #: It is likely to last as long as asked.
    lasts: bool
    #: It lasts as long as asked even at the upper end of the 95 % interval.
    lasts_safely: bool
    #: Months from the end of the history to the likely date; 0 if it is too small already, absent if the date lies
    #: beyond the horizon or there is no capacity.
    months_of_headroom: float | None = None
    #: Its name.
    name: str
    #: Its price per month.
    price_per_month: float
    #: What it changes of the model, as `--set` takes it: `cpu.servers=4`.
    set: list[str] | None = None


@dataclass(kw_only=True)
class CostTable(Part):
    """Configurations compared, the cheapest first."""
    #: The cheapest that is likely to last; absent if none is.
    cheapest: str | None = None
    #: The cheapest that lasts even at the upper end of the 95 % interval; absent if none does.
    cheapest_safe: str | None = None
    #: Months that the forecast looks ahead: more of headroom cannot be seen.
    horizon_months: float
    #: Months from the end of the history that a configuration should last.
    months: float
    #: The highest rate of the last week.
    present_peak_rate: float
    #: Mean arrivals per second over the last week.
    present_rate: float
    #: By price; of equal price, the largest first.
    rows: list[CostRow]


@dataclass(kw_only=True)
class Crossing(Part):
    """When arrivals reach a rate. A date is absent if it lies beyond the horizon."""
    #: It was reached within the last week of the history already; the dates are then when.
    already: bool
    #: When the upper end of the 95 % interval reaches it: hardly before.
    earliest: Timestamp | None = None
    #: When the lower end of the 95 % interval reaches it: hardly after.
    latest: Timestamp | None = None
    #: When the likely rate reaches it.
    likely: Timestamp | None = None
    #: The rate, per second.
    limit_rate: float


@dataclass(kw_only=True)
class ForecastPoint(Part):
    """Arrivals per second within one step to come."""
    #: As likely to be exceeded as not.
    likely: float
    #: Lower end of the 80 % interval.
    lower80: float
    #: Lower end of the 95 % interval.
    lower95: float
    #: When the step begins.
    time: Timestamp
    #: Upper end of the 80 % interval.
    upper80: float
    #: Upper end of the 95 % interval.
    upper95: float


@dataclass(kw_only=True)
class Gap(Part):
    """A run of missing steps."""
    #: When the first of them begins.
    from_: Timestamp = field(metadata={"key": "from"})
    #: FitSettings many there are.
    steps: int


@dataclass(kw_only=True)
class InSample(Part):
    """Errors one step ahead."""
    #: Mean of |error|/rate; absent if a rate is 0.
    mape: float | None = None
    #: Mean absolute error over that of repeating the last season; absent if that makes none.
    mase: float | None = None


@dataclass(kw_only=True)
class Limit(Part):
    """A rate that arrivals must not reach."""
    #: Arrivals per second.
    rate: float
    #: What happens at this rate.
    reason: str


@dataclass(kw_only=True)
class Peak(Part):
    """From the mean of a step to its peak."""
    #: Where it comes from.
    basis: PeakBasis
    #: The highest rate within a step over the step's mean.
    factor: float


@dataclass(kw_only=True)
class Series(Part):
    """Arrivals at a regular step."""
    #: Steps that were missing and are interpolated.
    bridged: list[Gap]
    #: Times were written with more than one offset from UTC, and no zone was named.
    mixed_offsets: bool
    #: Values that came before an earlier one and were sorted.
    out_of_order: int
    #: Mean arrivals per second within each step.
    rates: list[float]
    #: When the first step begins.
    start: Timestamp
    #: The length of a step in seconds; a day is as long as the clocks make it.
    step_s: int
    #: Whose clocks days and seasons follow.
    zone: Zone


@dataclass(kw_only=True)
class Tried(Part):
    """A way to forecast that was compared with others."""
    #: As `Backtest::mase`.
    mase: float | None = None
    #: The scale on which trend and seasons add up.
    scale: Scale
    #: The form of the trend.
    trend: TrendKind


@dataclass(kw_only=True)
class Forecast(Document):
    """A forecast of arrivals."""
    #: FitSettings good such forecasts were before; absent if the history is too short to try.
    backtest: Backtest | None = None
    #: The comparison of configurations, if some were given.
    cost: CostTable | None = None
    #: When arrivals reach the limit.
    crossing: Crossing | None = None
    #: Relative growth of the trend in a month, on average over the horizon; 0.05 is 5 %. Absent if nothing arrives
    #: now, if the last season is repeated, or if the history lasts less than two months.
    growth_per_month: float | None = None
    #: The recommended configuration, if some were compared, and when arrivals exceed the limit.
    headline: str
    #: What it is made from: the history given, or its days.
    history: Series
    #: FitSettings well one step ahead was predicted within the history.
    in_sample: InSample
    #: The rate that arrivals must not reach, if one was given.
    limit: Limit | None = None
    #: What a reader should know, in sentences.
    notes: list[str]
    #: From the mean of a step to its peak.
    peak: Peak
    #: The forecast, by step.
    points: list[ForecastPoint]
    #: The highest rate of the last week: that of its highest step times `peak.factor`.
    present_peak_rate: float
    #: Mean arrivals per second over the last week.
    present_rate: float
    #: The scale on which trend and seasons add up.
    scale: Scale
    #: `SCHEMA`.
    schema: str
    #: Lengths of the seasons found or given, in steps.
    seasons: list[int]
    #: The form of the trend.
    trend: TrendKind
    #: By how much the intervals were widened for the back-test's sake; 1 if they were not.
    widening: float


#: Where a ratio of peak to mean comes from.
PeakBasis: TypeAlias = Literal["given", "learnt", "unknown"]


#: The scale on which trend and seasons add up.
Scale: TypeAlias = Literal["linear", "log"]


#: A point in time, to the second, and what clocks somewhere show then. In documents RFC 3339:
#: `2026-03-01T00:00:00+01:00`.
Timestamp: TypeAlias = str


#: The form of a trend.
TrendKind: TypeAlias = Literal[
    "constant",
    "line",
    "autoregressive",
    "level",
    "drift",
    "local",
    "damped",
    "moving_average",
    "seasonal_naive",
]


#: A time zone: of the IANA database, or a fixed offset from UTC. In documents `UTC`, `Europe/Berlin` or `+01:00`.
Zone: TypeAlias = str
