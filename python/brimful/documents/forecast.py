"""Written by document_types.py from schema/forecast.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .._documents import Document, Part


@dataclass(kw_only=True)
class Backtest(Part):
    """Results of forecasts from earlier origins, compared with the actual values."""
    #: Share of the actual values inside the 80 % interval, before the intervals were widened.
    coverage80: float
    #: Share of the actual values inside the 95 % interval, before the intervals were widened.
    coverage95: float
    #: Number of steps that each forecast looked ahead.
    horizon_steps: int
    #: Mean absolute error divided by that of repeating the last season, one season ahead; absent if repeating it
    #: makes no error.
    mase: float | None = None
    #: Like `mase`, for the seasonal naive method: it repeats the last season (or value, if there is no season) over
    #: the same horizon.
    naive_mase: float | None = None
    #: Number of origins from which forecasts were made.
    origins: int
    #: All forecasting methods that were compared. On each scale, these include the trend that fits the whole history
    #: best.
    tried: list[Tried]


@dataclass(kw_only=True)
class CostRow(Part):
    """The results for one configuration."""
    #: The highest rate, per second, at which the configuration meets the objective; absent if it meets it at no
    #: rate.
    capacity: float | None = None
    #: Price of a million requests when peaks reach the capacity.
    cost_per_million_at_capacity: float | None = None
    #: Price of a million requests at the present mean rate, even if the capacity is too small for it; absent if
    #: nothing arrives.
    cost_per_million_now: float | None = None
    #: The date when arrivals reach the capacity.
    crossing: Crossing | None = None
    #: Capacity divided by the present peak, minus 1: 0.5 means 50 % more than needed; negative means that the
    #: capacity is already too small. Absent if nothing arrives, or if there is no capacity.
    headroom: float | None = None
    #: Whether the capacity is likely to suffice for the requested months.
    lasts: bool
    #: Whether the capacity suffices for the requested months even at the upper end of the 95 % interval.
    lasts_safely: bool
    #: Months from the end of the history to the likely date when arrivals reach the capacity. 0 if the capacity is
    #: already too small; absent if the date is beyond the horizon or there is no capacity.
    months_of_headroom: float | None = None
    #: Name of the configuration.
    name: str
    #: Price of the configuration per month.
    price_per_month: float
    #: Changes of the model, in the notation of `--set`: `cpu.servers=4`.
    set: list[str] | None = None


@dataclass(kw_only=True)
class CostTable(Part):
    """A comparison of configurations, the cheapest first."""
    #: The cheapest configuration that is likely to suffice for `months`; absent if there is none.
    cheapest: str | None = None
    #: The cheapest configuration that suffices for `months` even at the upper end of the 95 % interval; absent if
    #: there is none.
    cheapest_safe: str | None = None
    #: Length of the forecast in months. A longer headroom cannot be determined.
    horizon_months: float
    #: The time for which the configuration should suffice, in months from the end of the history.
    months: float
    #: The highest rate of the last week, per second.
    present_peak_rate: float
    #: Mean arrivals per second over the last week.
    present_rate: float
    #: The configurations in increasing order of price; of those with equal price, the largest capacity is first.
    rows: list[CostRow]


@dataclass(kw_only=True)
class Crossing(Part):
    """The dates when arrivals reach a rate. A date that is beyond the horizon is absent."""
    #: Whether the rate was already reached within the last week of the history. All three dates are then the date
    #: when it was first reached in that week.
    already: bool
    #: Date when the upper end of the 95 % interval reaches the rate. An earlier crossing is unlikely.
    earliest: Timestamp | None = None
    #: Date when the lower end of the 95 % interval reaches the rate. A later crossing is unlikely.
    latest: Timestamp | None = None
    #: Date when the likely arrivals reach the rate.
    likely: Timestamp | None = None
    #: The rate, per second.
    limit_rate: float


@dataclass(kw_only=True)
class ForecastPoint(Part):
    """Predicted arrivals per second within one future step."""
    #: The median: the actual rate is as likely to be higher as to be lower.
    likely: float
    #: Lower end of the 80 % interval.
    lower80: float
    #: Lower end of the 95 % interval.
    lower95: float
    #: Start of the step.
    time: Timestamp
    #: Upper end of the 80 % interval.
    upper80: float
    #: Upper end of the 95 % interval.
    upper95: float


@dataclass(kw_only=True)
class Gap(Part):
    """A run of missing steps."""
    #: Start of the first missing step.
    from_: Timestamp = field(metadata={"key": "from"})
    #: Number of missing steps.
    steps: int


@dataclass(kw_only=True)
class InSample(Part):
    """Errors of predictions one step ahead within the history."""
    #: Mean absolute error relative to the rate; absent if a rate is 0.
    mape: float | None = None
    #: Mean absolute error divided by that of repeating the last season; absent if repeating it makes no error.
    mase: float | None = None


@dataclass(kw_only=True)
class Limit(Part):
    """A rate that arrivals must not reach."""
    #: Arrivals per second.
    rate: float
    #: Explanation of what happens at this rate, for people.
    reason: str


@dataclass(kw_only=True)
class Peak(Part):
    """The ratio of the peak rate within a step to the step's mean rate."""
    #: Origin of the ratio.
    basis: PeakBasis
    #: The highest rate within a step, divided by the step's mean rate.
    factor: float


@dataclass(kw_only=True)
class Series(Part):
    """A history of arrivals at a regular step."""
    #: Steps that were missing and are interpolated.
    bridged: list[Gap]
    #: Whether times have several offsets from UTC and the user named no time zone.
    mixed_offsets: bool
    #: Number of values that came after a later one and were moved into order.
    out_of_order: int
    #: Mean arrivals per second within each step.
    rates: list[float]
    #: Start of the first step.
    start: Timestamp
    #: Length of a step in seconds. If the step is a day, its actual length depends on changes of the clocks.
    step_s: int
    #: The time zone whose clocks days and seasons follow.
    zone: Zone


@dataclass(kw_only=True)
class Tried(Part):
    """A forecasting method that was compared with others."""
    #: Relative error of this method, as in `Backtest::mase`.
    mase: float | None = None
    #: The scale on which trend and seasons are added.
    scale: Scale
    #: The form of the trend.
    trend: TrendKind


@dataclass(kw_only=True)
class Forecast(Document):
    """A forecast of arrivals."""
    #: Errors of forecasts from earlier origins; absent if the history is too short for a back-test.
    backtest: Backtest | None = None
    #: The comparison of configurations, if some were given.
    cost: CostTable | None = None
    #: The date when arrivals reach the limit.
    crossing: Crossing | None = None
    #: Relative growth of the trend per month, on average over the horizon; 0.05 is 5 %. Absent if nothing arrives
    #: now, if the forecast repeats the last season, or if the history is shorter than two months.
    growth_per_month: float | None = None
    #: A sentence with the date when arrivals exceed the limit and, if configurations were compared, the recommended
    #: one.
    headline: str
    #: The history that the forecast is based on: the given history, or its days.
    history: Series
    #: Errors of predictions one step ahead within the history.
    in_sample: InSample
    #: The rate that arrivals must not reach, if one was given.
    limit: Limit | None = None
    #: Notes for the reader, one sentence each.
    notes: list[str]
    #: The ratio of the peak rate within a step to the step's mean rate.
    peak: Peak
    #: The forecast of each step.
    points: list[ForecastPoint]
    #: The highest rate of the last week: its highest step multiplied by `peak.factor`.
    present_peak_rate: float
    #: Mean arrivals per second over the last week.
    present_rate: float
    #: The scale on which trend and seasons are added.
    scale: Scale
    #: Identifier of the document's schema: always `SCHEMA`.
    schema: str
    #: Lengths of the detected or specified seasons, in steps.
    seasons: list[int]
    #: The form of the trend.
    trend: TrendKind
    #: The factor by which the intervals were widened because of the back-test; 1 if they were not widened.
    widening: float


#: Origin of a ratio of peak to mean.
PeakBasis: TypeAlias = Literal["given", "learnt", "unknown"]


#: The scale on which trend and seasons are added.
Scale: TypeAlias = Literal["linear", "log"]


#: A point in time, to the second, with the local offset from UTC. In documents, it is RFC 3339:
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


#: A time zone: one of the IANA database, or a fixed offset from UTC. In documents, it is written `UTC`,
#: `Europe/Berlin` or `+01:00`.
Zone: TypeAlias = str
