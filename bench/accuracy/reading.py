"""What one survey's document says of its own predictions.

Errors are predicted ÷ measured − 1. Left out are the levels that the model was fitted to, and those that the survey
itself holds in doubt, which are counted. A key that the document does not have is an absent figure.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..side_by_side.tools import Failed

SCHEMA = "brimful.survey/1"
# The levels whose response times are shown, as fractions of the saturation rate predicted.
FRACTIONS = (0.5, 0.7, 0.8, 0.9)
# The one at which the response time given the host's speed is.
GIVEN_HOST = 0.8
PERCENTILES = ("p50", "p95", "p99")
# What a survey may say against itself and have measured well: then the model is refuted.
REFUTED = "model_refuted"
# What it says when the client was the limit.
CLIENT = ("beyond_client_max", "generator_late", "generator_cpu", "generator_stalled", "descriptors", "ports", "memory")


@dataclass(frozen=True)
class Predicted:
    """A figure that has an interval: what kind it is, where, and how the measurement stands to the interval."""

    kind: str
    where: str
    low: float
    predicted: float
    high: float
    measured: float
    # What would have been predicted of the host as it was when this was measured, as far as the survey could tell.
    given_host: float

    def holds(self) -> bool:
        return self.low <= self.measured <= self.high

    def holds_twice(self) -> bool:
        """Whether an interval twice as wide, to either side, would hold: it, or the same about what the host then was."""
        return any(self._within_twice(centre) for centre in (self.predicted, self.given_host))

    def _within_twice(self, centre: float) -> bool:
        side = self.high - self.predicted if self.measured > centre else self.predicted - self.low
        return abs(self.measured - centre) <= 2 * side


def figures(survey: dict) -> dict:
    """All that the tables need."""
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
        "client_limited": any(code in CLIENT for code in codes),
        "levels_in_doubt": len(doubted),
        "valid_beyond_twice": [[figure.kind, figure.where] for figure in beyond] if verdict["valid"] else [],
        "host_speed": [level["host_speed"] for level in unfitted(survey) if level.get("host_speed") is not None],
        "measured_rate": (survey.get("saturation_rate") or {}).get("measured"),
        "client_max_rate": survey.get("client_max_rate"),
        "stopped": (survey.get("stopped") or {}).get("reason"),
    }
    # By its own account a survey is without the reading of its options; else the time until its end counts.
    return found | ({"seconds": survey["elapsed_s"]} if survey.get("elapsed_s") else {})


def errors(survey: dict) -> dict[str, float | None]:
    """By column; None where there is none."""
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
    """The levels that the model has never seen."""
    return [level for level in survey.get("levels", []) if level["role"] != "calibration"]


def held_out(survey: dict) -> list[dict]:
    """Those below saturation, measured well."""
    levels = unfitted(survey)
    return [level for level in levels if level["role"] == "held_out" and level["verdict"]["valid"]]


def at(levels: list[dict], fraction: float) -> dict:
    """Of the mix that the model was fitted to, coming at random."""
    return next((level for level in levels if level["workload"] == "mix" and abs(level["fraction"] - fraction) < 0.005), {})


def error(comparison: dict | None) -> float | None:
    return (comparison or {}).get("error")


def error_of_model(comparison: dict | None) -> float | None:
    """What is left of the error without the host's part; None where the survey could not tell that."""
    whole, drift = ((comparison or {}).get(key) for key in ("error", "error_drift"))
    return None if whole is None or drift is None else whole - drift


def off(comparison: dict | None) -> float | None:
    """predicted − measured."""
    predicted, measured = ((comparison or {}).get(key) for key in ("predicted", "measured"))
    return None if predicted is None or measured is None else predicted - measured


def with_interval(survey: dict) -> Iterator[Predicted]:
    """Every figure that was predicted with an interval and then measured, each once."""
    yield from one("saturation", "", survey.get("saturation_rate"))
    for level in unfitted(survey):
        if not level["verdict"]["valid"]:
            continue
        # The closed level is the one that the saturation rate was measured at.
        closed = level.get("clients") is not None
        where = "saturated" if closed else f"{level['workload']} at {level['fraction'] * 100:.0f} %"
        if not closed:
            yield from one("throughput", where, level.get("throughput"))
        yield from one("response", where, level.get("response_time_s"))
        yield from one("utilization", where, level.get("utilization"))
        for name in PERCENTILES:
            yield from one("percentile", f"{name}, {where}", (level.get("response_percentiles_s") or {}).get(name))


def one(kind: str, where: str, comparison: dict | None) -> Iterator[Predicted]:
    found = comparison or {}
    interval, predicted, measured = (found.get(key) for key in ("interval90", "predicted", "measured"))
    if interval and predicted is not None and measured is not None:
        of_model = error_of_model(found)
        given_host = predicted if of_model is None else measured * (1 + of_model)
        yield Predicted(kind, where, interval[0], predicted, interval[1], measured, given_host)


def held(intervals: list[Predicted]) -> dict[str, list[int]]:
    """How many intervals of each kind held, of how many."""
    found: dict[str, list[int]] = {}
    for figure in intervals:
        counts = found.setdefault(figure.kind, [0, 0])
        counts[0] += figure.holds()
        counts[1] += 1
    return found
