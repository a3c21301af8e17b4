"""Repeats the held-out levels of a survey with `brimful load`, minutes later, on the same running server.

A repetition has the arrival process, the planned rate, the length and the connection pool of its level, but another
seed: a predictor does not know the schedule of the level that it predicts. As in the survey, a short closed load comes
before each level, and a disturbed measurement is made once more.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from ..side_by_side.tools import Failed
from . import client
from .reading import open_levels

# The arrival process of each workload, by the workload's name in the survey's document. The process of "bursts" is the
# constant ON_OFF in crates/survey/src/predictions.rs.
ARRIVALS = {"mix": "poisson", "bursts": "mmpp:1.6,50%,200ms"}
# The closed load that warms the server up before each level: its length in seconds, and its number of clients (if the
# survey's document does not contain a number of connections).
BUSY_S, BUSY_CLIENTS = 1.0, 32
# Maximum number of attempts to measure a level. If an attempt was disturbed, the level is measured again. As in a
# survey, the last attempt counts.
ATTEMPTS = 2
# Length of the monitor's intervals, the same as in a survey.
INTERVAL = "31.25ms"
# Limits of a level, the same as in a survey: it is disturbed if the CPU share of other programs is greater than the
# first, or if the share of failed calls is at least the second (MAX_OTHER_WORK in crates/core/src/server/kernel.rs,
# FAILED_SHARE in crates/survey/src/trial.rs).
MAX_OTHER_WORK, MAX_ERROR_SHARE = 0.15, 0.01
# The first seed of repetitions. It is greater than any seed of a survey, so that the repetitions' random numbers
# differ.
FIRST_SEED = 1_000_000


def repeat(command: Sequence[str], survey: dict, server_cpu: int, seed: int, scratch: Path) -> list[dict]:
    """Repeats every held-out level of a survey that has known arrivals.

    `command` is the command line of `brimful load` with the URL, the headers and the watched processes.
    """
    found = []
    for level in open_levels(survey):
        about = {"workload": level["workload"], "fraction": level["fraction"]}
        load = level_flags(survey, level)
        if load is None:
            found.append(about | {"error": "its arrivals or its rate are unknown"})
            continue
        own_seed = seed + len(found)
        try:
            found.append(about | measured(command, survey, load, level["window_s"], server_cpu, own_seed, scratch))
        except Failed as failure:
            found.append(about | {"error": str(failure)})
        except (OSError, ValueError, KeyError) as error:
            found.append(about | {"error": f"its Record cannot be read: {error!r}"})
    return found


def measured(
    command: Sequence[str], survey: dict, load: list[str], window_s: float, server_cpu: int, seed: int, scratch: Path
) -> dict:
    """The figures of one repeated level."""
    for attempt in range(ATTEMPTS):
        client.load([*command, *busy_flags(survey)], "load before a repetition", BUSY_S)
        began = time.time()
        record = scratch / "repeat.json"
        flags = ["--seed", str(seed + FIRST_SEED * attempt), "--interval", INTERVAL, "--out", str(record)]
        client.load([*command, *load, *flags], "repetition", window_s)
        found = figures(json.loads(record.read_text()), server_cpu) | {"at": began}
        if not found["reasons"]:
            break
    return found


def level_flags(survey: dict, level: dict) -> list[str] | None:
    """The flags of `brimful load` that make the load of a level again; None if the load is unknown."""
    arrivals, rate = ARRIVALS.get(level["workload"]), planned_rate(survey, level)
    if arrivals is None or rate is None:
        return None
    pool = (survey.get("connections") or {}).get("most")
    return [
        "--rate", f"{rate:.3f}", "--arrivals", arrivals, "--duration", f"{level['window_s']:.6g}s",
        *(["--max-connections", str(pool)] if pool else []),
    ]  # fmt: skip


def planned_rate(survey: dict, level: dict) -> float | None:
    """The rate that the survey planned: below saturation it is the predicted throughput. `offered` is what the random
    arrivals came to."""
    if rate := (level.get("throughput") or {}).get("predicted"):
        return rate
    saturation = (survey.get("saturation_rate") or {}).get("predicted")
    return level["fraction"] * saturation if saturation else None


def busy_flags(survey: dict) -> list[str]:
    clients = (survey.get("connections") or {}).get("most") or BUSY_CLIENTS
    return ["--clients", str(clients), "--duration", f"{BUSY_S:g}s"]


def figures(record: dict, server_cpu: int) -> dict:
    """The response times of a Record, in seconds, and the reasons to doubt them: those of a survey's level."""
    times = record.get("response_time_us") or {}
    verdict = record["verdict"]
    reasons = [reason["code"] for reason in verdict["reasons"]]
    if (other := other_work(record, server_cpu)) is not None and other > MAX_OTHER_WORK:
        reasons.append("other_work")
    if (verdict.get("error_share") or 0) >= MAX_ERROR_SHARE:
        reasons.append("server_errors")
    seconds = {name: times[name] / 1e6 if name in times else None for name in ("mean", "p50", "p95", "p99")}
    return {"offered": record["rates"]["offered"], "response_time_s": seconds, "reasons": reasons}


def other_work(record: dict, server_cpu: int) -> float | None:
    """The share of the server's CPU that programs other than the server used; None if it was not watched."""
    server = record.get("server") or {}
    idle = next((core["idle"] for core in server.get("cores") or [] if core["cpu"] == server_cpu), None)
    if idle is None or not server.get("process"):
        return None
    return 1 - idle - sum(process["cores"] for process in server["process"])

