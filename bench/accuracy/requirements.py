"""The requirements on all surveys together, each with its figure and the number of surveys behind it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from . import floor
from .floor import Pair
from .measure import LIMIT_S

# Required number of surveys with an answer, and number of all surveys: three of each of 14 servers.
ANSWERS, OF_SURVEYS = 38, 42
# The level whose prediction error is judged, as a fraction of the saturation rate. The error is compared with the floor
# (see floor.py).
JUDGED_LEVEL = 0.8
# Number of surveys of one server from which the spread of the measured rates is computed.
COMPARED_SURVEYS = 3
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Bounds:
    """Upper bounds of the median and of the worst value."""

    median: float | None = None
    worst: float | None = None

    def text(self, unit: str) -> str:
        named = (("median", self.median), ("worst", self.worst))
        return ", ".join(f"{name} ≤ {bound:g}{unit}" for name, bound in named if bound is not None) or "-"

    def met_by(self, values: Sequence[float]) -> bool:
        return all(
            bound is None or pick(values) <= bound for bound, pick in ((self.median, median), (self.worst, max))
        )


@dataclass(frozen=True)
class Requirement:
    """Bounds of a figure. `unit` includes the space before it."""

    text: str
    required: Bounds
    aim: Bounds = Bounds()
    unit: str = " %"

    def row(self, values: Sequence[float], of: str) -> list[str]:
        """The table row of these values. `of` says of what they are, with the number of values that are missing."""
        bounds = [self.required.text(self.unit), self.aim.text(self.unit)]
        if not values:
            return [self.text, *bounds, f"{NOT_MEASURED}: {of}", NOT_MEASURED]
        measured = f"median {median(values):.1f}{self.unit}, worst {max(values):.1f}{self.unit}"
        return [self.text, *bounds, f"{measured} ({of})", verdict(self.required.met_by(values))]


OBJECTIVE_ERROR = Requirement(
    "rate under the objective (10 × light load), absolute error, valid surveys", Bounds(8, 25), Bounds(4, 12)
)
HALF_WIDTH = Requirement("half-width of its 90 % interval", Bounds(median=15))
CAPACITY = Requirement("capacity, drift-corrected, absolute error", Bounds(3, 10))
UTILIZATION = Requirement("utilization, greatest miss of a survey", Bounds(worst=5), unit=" points")
LENGTH = Requirement("length of a survey that is not thorough", Bounds(worst=100), unit=" s")
SPREAD = Requirement(
    "measured rate under the objective: three surveys of one server, greatest less least", Bounds(worst=12)
)
SATURATION = Requirement("saturation, absolute error", Bounds(5, 12))
GIVEN_HOST = Requirement("mean response at 80 % given the host's speed, absolute error", Bounds(15, 40))


def rows(document: dict) -> list[list[str]]:
    """The table rows: the figure, what is required, the aim, what was measured, and whether it is met."""
    surveys = document["surveys"]
    good = [row for row in surveys if "error" not in row]
    sound = [row for row in good if row["measured_well"]]
    valid = [row for row in good if row["valid"]]
    usual = [row for row in surveys if not is_thorough(document, row)]
    return [
        of_surveys(OBJECTIVE_ERROR, valid, objective_error, surveys),
        coverage_row(sound, surveys),
        of_surveys(HALF_WIDTH, sound, half_width, surveys),
        of_surveys(CAPACITY, sound, lambda row: row["errors"]["saturation_drift_corrected"], surveys),
        floor_row(floor.pairs(sound)),
        of_surveys(UTILIZATION, sound, lambda row: row["utilization"], surveys),
        answers_row(surveys),
        LENGTH.row([seconds for row in usual if (seconds := length(row)) is not None], f"{len(usual)} such surveys"),
        spread_row(document, sound),
        of_surveys(SATURATION, sound, lambda row: row["errors"]["saturation"], surveys),
        of_surveys(GIVEN_HOST, sound, lambda row: row["errors"]["response_given_host"], surveys),
        *interval_rows(sound, valid),
        ["surveys that wrote a document", "-", "-", f"{len(good)} of {len(surveys)}", "-"],
    ]


def of_surveys(
    requirement: Requirement, rows: Sequence[dict], figure: Callable[[dict], float | None], surveys: Sequence[dict]
) -> list[str]:
    """The row of a share that some surveys have."""
    values = percents(map(figure, rows))
    return requirement.row(values, f"{len(values)} of {len(surveys)} surveys")


def is_thorough(document: dict, row: dict) -> bool:
    """Whether a survey was thorough. All were in results that do not say which ones."""
    return row.get("thorough", "thorough_every" not in document["surveys_with"])


def length(row: dict) -> float | None:
    """The wall time of a survey that wrote a document or reached the time limit."""
    if "error" in row and row["seconds"] < LIMIT_S:
        return None
    return row.get("wall_s", row["seconds"])


def objective_error(row: dict) -> float | None:
    found = row.get("objective") or {}
    predicted, measured = found.get("predicted"), found.get("measured")
    return predicted / measured - 1 if predicted is not None and measured else None


def half_width(row: dict) -> float | None:
    """Half the width of the predicted interval, over the prediction."""
    found = row.get("objective") or {}
    interval, predicted = found.get("interval90"), found.get("predicted")
    return (interval[1] - interval[0]) / 2 / predicted if interval and predicted else None


def objective_holds(row: dict) -> bool | None:
    """Whether the predicted interval contains the measured rate."""
    found = row.get("objective") or {}
    interval, measured = found.get("interval90"), found.get("measured")
    return interval[0] <= measured <= interval[1] if interval and measured is not None else None


def coverage_row(sound: Sequence[dict], surveys: Sequence[dict]) -> list[str]:
    held = [holds for row in sound if (holds := objective_holds(row)) is not None]
    name, required = "its 90 % interval contains the measured rate", "85–95 %"
    of = f"{len(held)} of {len(surveys)} surveys"
    if not held:
        return [name, required, "-", f"{NOT_MEASURED}: {of}", NOT_MEASURED]
    held_share = sum(held) / len(held)
    measured = f"{held_share * 100:.0f} % ({sum(held)} of {len(held)}; {of})"
    return [name, required, "-", measured, verdict(0.85 <= held_share <= 0.95)]


def floor_row(found: Sequence[Pair]) -> list[str]:
    """The error at JUDGED_LEVEL over the floor. If no survey repeated that level, the highest level stands in."""
    of_mix = {load: group for (name, load), group in floor.by_level(found).items() if name == "mix"}
    load = JUDGED_LEVEL if JUDGED_LEVEL in of_mix or not of_mix else max(of_mix)
    stands_in = "" if load == JUDGED_LEVEL else ", the highest repeated level"
    name = f"R at {load * 100:.0f} %{stands_in}, by itself: median log error over the median floor"
    group = of_mix.get(load, [])
    ratio = floor.over_floor(group)
    if ratio is None:
        return [name, "≤ 1.5", "-", f"{NOT_MEASURED}: {len(group)} levels measured twice without doubt", NOT_MEASURED]
    met = NOT_MEASURED if stands_in else verdict(ratio <= 1.5)
    return [name, "≤ 1.5", "-", f"{ratio:.2f} ({len(group)} levels measured twice without doubt)", met]


def answers_row(surveys: Sequence[dict]) -> list[str]:
    name = "surveys that end in an answer: valid, or the client's limit with what the server takes"
    enough = math.ceil(len(surveys) * ANSWERS / OF_SURVEYS)
    required = f"≥ {enough} of {len(surveys)}"
    if any("answers" not in row for row in surveys if "error" not in row):
        return [name, required, "-", f"{NOT_MEASURED}: the results do not say it", NOT_MEASURED]
    count = sum(row.get("answers", False) for row in surveys)
    valid = sum(row.get("valid", False) for row in surveys)
    return [name, required, "-", f"{count} of {len(surveys)} ({valid} valid)", verdict(count >= enough)]


def spread_row(document: dict, sound: Sequence[dict]) -> list[str]:
    servers = {row["server"] for row in document["surveys"]}
    spreads = [spread for server in sorted(servers) if (spread := measured_spread(sound, server)) is not None]
    return SPREAD.row(percents(spreads), f"{len(spreads)} of {len(servers)} servers have {COMPARED_SURVEYS} such rates")


def measured_spread(rows: Sequence[dict], server: str) -> float | None:
    """The greatest less the least of the first three measured rates of a server, over their mean; None if there are
    fewer."""
    own = (row.get("objective") or {} for row in rows if row["server"] == server)
    rates = [rate for found in own if (rate := found.get("measured")) is not None][:COMPARED_SURVEYS]
    return (max(rates) - min(rates)) / fmean(rates) if len(rates) == COMPARED_SURVEYS else None


def interval_rows(sound: Sequence[dict], valid: Sequence[dict]) -> list[list[str]]:
    """The rows about the intervals of all figures."""
    held, count = total(intervals(sound))
    enough = verdict(held >= 0.8 * count) if count else NOT_MEASURED
    found = [["90 % intervals of all figures that hold", "≥ 80 %", "-", share(intervals(sound)), enough]]
    for what, counts in (
        ("valid, saturation beyond twice its interval", lambda kind: kind == "saturation"),
        ("valid, any figure beyond twice its interval", lambda kind: True),
    ):
        wrong = sum(any(counts(kind) for kind, _ in row["valid_beyond_twice"]) for row in valid)
        known = count and valid
        found.append([what, "0", "-", f"{wrong} of {len(valid)}", verdict(wrong == 0) if known else NOT_MEASURED])
    return found


def intervals(rows: Iterable[dict]) -> dict[str, tuple[int, int]]:
    """For each kind, the number of intervals that contain the measurement, and the number of all."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        for kind, (held, count) in row["intervals"].items():
            held_before, count_before = found.get(kind, (0, 0))
            found[kind] = (held_before + held, count_before + count)
    return found


def total(kinds: dict[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(held for held, _ in kinds.values()), sum(count for _, count in kinds.values())


def share(kinds: dict[str, tuple[int, int]]) -> str:
    held, count = total(kinds)
    return f"{held / count * 100:.0f} % of {count}" if count else "-"


def verdict(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def percents(values: Iterable[float | None]) -> list[float]:
    """The absolute values in percent, without absent ones."""
    return [abs(value) * 100 for value in values if value is not None]
