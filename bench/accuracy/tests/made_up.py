"""Minimal survey documents for tests."""

from datetime import UTC, datetime

STARTED = datetime(2026, 11, 27, 12, tzinfo=UTC)


def comparison(
    predicted: float | None,
    measured: float | None,
    interval: tuple[float, float] | None = None,
    given_host: float | None = None,
) -> dict:
    """A prediction and its measurement. `given_host` is the prediction corrected for the host's speed."""
    error = predicted / measured - 1 if predicted is not None and measured else None
    found: dict = {"predicted": predicted, "measured": measured, "error": error, "measured_ci95_half_width": None}
    if given_host is not None and error is not None and measured:
        found["error_drift"] = error - (given_host / measured - 1)
    return found | ({"interval90": list(interval)} if interval else {})


def level(fraction: float, role: str = "held_out", valid: bool = True, **more: object) -> dict:
    """A level whose predictions are exact: 10 ms ± 1 ms response time, and a utilization equal to `fraction`."""
    return {
        "fraction": fraction,
        "role": role,
        "clients": None,
        "workload": "mix",
        "response_time_s": comparison(0.010, 0.010, (0.009, 0.011)),
        "utilization": comparison(fraction, fraction),
        "throughput": comparison(1000 * fraction, 1000 * fraction),
        "verdict": {"valid": valid, "reasons": []},
    } | more


def record(mean_us: float | None = 12_000, *reasons: str, idle: float = 0.3, error_share: float = 0.0) -> dict:
    """A Record of a server that uses 65 % of CPU 0."""
    times = None if mean_us is None else {"mean": mean_us, "p50": 10_000, "p95": 30_000, "p99": 40_000}
    cores = [{"cpu": 1, "idle": 0.9}, {"cpu": 0, "idle": idle}]
    return {
        "response_time_us": times,
        "rates": {"offered": 801.0},
        "verdict": {"reasons": [{"code": code} for code in reasons], "error_share": error_share},
        "server": {"cores": cores, "process": [{"cores": 0.6}, {"cores": 0.05}]},
    }


def repetition(fraction: float, mean: float, **more: object) -> dict:
    """A repetition of a level, two minutes after the start of the survey."""
    return {
        "workload": "mix",
        "fraction": fraction,
        "at": STARTED.timestamp() + 120,
        "offered": 1000 * fraction,
        "response_time_s": {"mean": mean, "p50": mean, "p95": mean, "p99": mean},
        "reasons": [],
    } | more


def objective(predicted: float | None, measured: float | None, interval: tuple[float, float] | None = None) -> dict:
    """The default objective."""
    outcome = "undecided" if measured is None else "met_up_to_rate"
    rate = comparison(predicted, measured, interval)
    return {"objective": "p99<10ms", "times_light_load": 10.0, "rate": rate, "outcome": outcome, "slices": []}


def survey(*levels: dict, reasons: tuple[str, ...] = (), **more: object) -> dict:
    """A survey that predicted a saturation rate of 950 to 1050/s and measured 1000/s."""
    return {
        "schema": "brimful.survey/1",
        "started_at": f"{STARTED:%Y-%m-%dT%H:%M:%S}.000Z",
        "saturation_rate": comparison(1000, 1000, (950, 1050)),
        "levels": list(levels),
        "client_max_rate": 20000,
        "verdict": {"valid": not reasons, "reasons": [{"code": code, "message": f"{code}."} for code in reasons]},
        "stopped": None,
    } | more
