"""Figures about the predictions in one survey document.

Errors are predicted ÷ measured − 1. Levels that the model was fitted to are left out. Levels that the survey itself
calls invalid are left out and counted. A key that is missing in the document is an absent figure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..side_by_side.tools import Failed

SCHEMA = "brimful.survey/1"
# The levels whose response times the report shows, as fractions of the predicted saturation rate.
FRACTIONS = (0.5, 0.7, 0.8, 0.9)
# At this level, the report also shows the prediction that is corrected for the host's speed.
GIVEN_HOST = 0.8
PERCENTILES = ("p50", "p95", "p99")
# The default objective is p99<10x: the 99th percentile is less than 10 times that at a light load.
TIMES_LIGHT_LOAD = 10
# Begin of the headline of a survey that could not determine the capacity.
UNDETERMINED = "Not determined"
# The reason code of a survey whose model is refuted. If it is the only one, the survey's measurements are valid.
REFUTED = "model_refuted"
# Reason codes that mean that the client was the limit.
CLIENT_LIMITS = (
    "beyond_client_max",
    "generator_late",
    "generator_cpu",
    "generator_stalled",
    "descriptors",
    "ports",
    "memory",
)


@dataclass(frozen=True)
class Predicted:
    """A figure that was predicted with a 90 % interval: its kind, its level, the interval and the measurement."""

    kind: str
    where: str
    low: float
    predicted: float
    high: float
    measured: float
    # The prediction, corrected for the host's speed during the measurement; the prediction itself if that speed is
    # unknown.
    given_host: float

    def holds(self) -> bool:
        return self.low <= self.measured <= self.high

    def holds_twice(self) -> bool:
        """Whether the interval at twice its width, around either prediction, contains the measurement."""
        return any(self._within_twice(centre) for centre in (self.predicted, self.given_host))

    def _within_twice(self, centre: float) -> bool:
        side = self.high - self.predicted if self.measured > centre else self.predicted - self.low
        return abs(self.measured - centre) <= 2 * side


def figures(survey: dict, repeats: Sequence[dict] = ()) -> dict:
    """All figures that the tables need. `repeats` are the repetitions of the survey's levels."""
    if survey.get("schema") != SCHEMA:
        raise Failed(f"it is {survey.get('schema')}, not {SCHEMA}")
    verdict = survey["verdict"]
    codes = [reason["code"] for reason in verdict["reasons"]]
    misses = [off(level.get("utilization")) for level in held_out(survey)]
    doubted = [level for level in unfitted(survey) if not level["verdict"]["valid"]]
    intervals = list(with_interval(survey))
    beyond = [figure for figure in intervals if not figure.holds_twice()]
    found = {
        "errors": errors(survey),
        "utilization": max((abs(miss) for miss in misses if miss is not None), default=None),
        "intervals": held(intervals),
        "valid": verdict["valid"],
        "reasons": codes,
        "messages": [reason["message"] for reason in verdict["reasons"]],
        "measured_well": all(code == REFUTED for code in codes),
        "client_limited": any(code in CLIENT_LIMITS for code in codes),
        "levels_in_doubt": len(doubted),
        "valid_beyond_twice": [[figure.kind, figure.where] for figure in beyond] if verdict["valid"] else [],
        "host_speed": [level["host_speed"] for level in unfitted(survey) if level.get("host_speed") is not None],
        "measured_rate": (survey.get("saturation_rate") or {}).get("measured"),
        "client_max_rate": survey.get("client_max_rate"),
        "stopped": (survey.get("stopped") or {}).get("reason"),
        "answers": answers(survey),
        "objective": objective(survey),
        "levels": [with_repetition(survey, level, repeats) for level in open_levels(survey)],
    }
    # Prefer the duration in the survey's document, which excludes starting the program, to the process's wall time.
    return found | ({"seconds": survey["elapsed_s"]} if survey.get("elapsed_s") else {})


def answers(survey: dict) -> bool:
    """Whether the survey ends in an answer: it is valid, or the client was the limit and the headline still states
    what the server takes."""
    codes = [reason["code"] for reason in survey["verdict"]["reasons"]]
    if survey["verdict"]["valid"]:
        return True
    headline = survey.get("headline", "")
    states_a_rate = "/s" in headline and not headline.startswith(UNDETERMINED)
    return bool(codes) and all(code in CLIENT_LIMITS for code in codes) and states_a_rate


def objective(survey: dict) -> dict | None:
    """The predicted and the measured rate under the default objective; None if the survey does not have it."""
    for found in survey.get("objectives") or []:
        if found.get("times_light_load") == TIMES_LIGHT_LOAD:
            rate = found.get("rate") or {}
            return {key: rate.get(key) for key in ("predicted", "measured", "interval90")} | {
                "outcome": found.get("outcome", "undecided")
            }
    return None


def with_repetition(survey: dict, level: dict, repeats: Sequence[dict]) -> dict:
    """The mean response time of a level as predicted, as measured and as measured again, in seconds."""
    response = level.get("response_time_s") or {}
    found = {
        "workload": level["workload"],
        "fraction": level["fraction"],
        "valid": level["verdict"]["valid"],
        **{key: response.get(key) for key in ("predicted", "interval90", "measured")},
    }
    again = next((other for other in repeats if is_same_level(level, other)), None)
    if again is None or "error" in again:
        return found | {"repeated": None, "repeat_error": again["error"] if again else None}
    since = again["at"] - datetime.fromisoformat(survey["started_at"]).timestamp()
    return found | {
        "repeated": again["response_time_s"]["mean"],
        "repeat_percentiles": {name: again["response_time_s"].get(name) for name in PERCENTILES},
        "repeat_doubts": again["reasons"],
        "minutes_after_start": since / 60,
    }


def is_same_level(level: dict, other: dict) -> bool:
    return level["workload"] == other["workload"] and abs(level["fraction"] - other["fraction"]) < 0.005


def errors(survey: dict) -> dict[str, float | None]:
    """The error of each column; None where the survey has none."""
    found = {
        "saturation": error(survey.get("saturation_rate")),
        "saturation_drift_corrected": error_of_model(survey.get("saturation_rate")),
    }
    levels = held_out(survey)
    for fraction in FRACTIONS:
        found[response_key(fraction)] = error(at(levels, fraction).get("response_time_s"))
    found["response_given_host"] = error_of_model(at(levels, GIVEN_HOST).get("response_time_s"))
    return found


def response_key(fraction: float) -> str:
    return f"response_{fraction * 100:.0f}"


def unfitted(survey: dict) -> list[dict]:
    """The levels that were not used for the fit."""
    return [level for level in survey.get("levels", []) if level["role"] != "calibration"]


def open_levels(survey: dict) -> list[dict]:
    """The held-out levels of open load, valid or not, in increasing order of their load."""
    levels = [level for level in unfitted(survey) if level["role"] == "held_out" and level.get("clients") is None]
    return sorted(levels, key=lambda level: level["fraction"])


def held_out(survey: dict) -> list[dict]:
    """The valid held-out levels, which are below saturation."""
    levels = unfitted(survey)
    return [level for level in levels if level["role"] == "held_out" and level["verdict"]["valid"]]


def at(levels: list[dict], fraction: float) -> dict:
    """The level at this fraction, of the mix that the model was fitted to, with random arrivals; {} if there is
    none."""
    of_mix = (level for level in levels if level["workload"] == "mix")
    return next((level for level in of_mix if abs(level["fraction"] - fraction) < 0.005), {})


def error(comparison: dict | None) -> float | None:
    return (comparison or {}).get("error")


def error_of_model(comparison: dict | None) -> float | None:
    """The error without the part that the host's speed caused; None if the survey does not know this part."""
    whole, drift = ((comparison or {}).get(key) for key in ("error", "error_drift"))
    return None if whole is None or drift is None else whole - drift


def off(comparison: dict | None) -> float | None:
    """The difference predicted − measured."""
    predicted, measured = ((comparison or {}).get(key) for key in ("predicted", "measured"))
    return None if predicted is None or measured is None else predicted - measured


def with_interval(survey: dict) -> Iterator[Predicted]:
    """Every figure that was predicted with an interval and then measured, each once."""
    yield from figure_of("saturation", "", survey.get("saturation_rate"))
    for level in unfitted(survey):
        if not level["verdict"]["valid"]:
            continue
        # Skip closed levels: their throughput is the measured saturation rate, which was already added as `saturation`.
        closed = level.get("clients") is not None
        where = "saturated" if closed else f"{level['workload']} at {level['fraction'] * 100:.0f} %"
        if not closed:
            yield from figure_of("throughput", where, level.get("throughput"))
        yield from figure_of("response", where, level.get("response_time_s"))
        yield from figure_of("utilization", where, level.get("utilization"))
        for name in PERCENTILES:
            percentiles = level.get("response_percentiles_s") or {}
            yield from figure_of("percentile", f"{name}, {where}", percentiles.get(name))


def figure_of(kind: str, where: str, comparison: dict | None) -> Iterator[Predicted]:
    """The figure of one comparison, or nothing if it has no interval or was not measured."""
    found = comparison or {}
    interval, predicted, measured = (found.get(key) for key in ("interval90", "predicted", "measured"))
    if interval and predicted is not None and measured is not None:
        of_model = error_of_model(found)
        given_host = predicted if of_model is None else measured * (1 + of_model)
        yield Predicted(kind, where, interval[0], predicted, interval[1], measured, given_host)


def held(intervals: list[Predicted]) -> dict[str, list[int]]:
    """For each kind, the number of intervals that contain the measurement, and the number of all intervals."""
    found: dict[str, list[int]] = {}
    for figure in intervals:
        counts = found.setdefault(figure.kind, [0, 0])
        counts[0] += figure.holds()
        counts[1] += 1
    return found
