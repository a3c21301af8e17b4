"""Predicts a server's capacity from the module's demands per class, and compares it with measurements.

One mix of four classes is watched at saturation. A class's demand is its CPU time in the module's phases, plus an equal
share per request of the CPU time outside of them: accepting, waiting, parsing heads that arrive in parts. These demands
predict the throughput of other mixes, X = U ÷ Σ pᵢDᵢ (the utilization law; Denning & Buzen 1978), which is then
measured. U is the server's share of its CPU: 1 if no other program runs there.

The demands come from all runs of the watched mix together, because the module samples the CPU time of only about 250
requests per second. A host's speed may change by a quarter within seconds, and the cost of all requests with it. So
runs are short, and a prediction is scaled by the cost of the watched mix just before and just after it.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..command import say
from ..monitor.case import Case, Figure, Outcome
from ..monitor.clock import cpu_s
from ..monitor.stats import Estimate
from .bed import Bed
from .memory import Counted
from .servers import Server

# The request classes. All requests of a class are for one file of this size, in bytes.
CLASSES = {"tiny": 500, "small": 12_000, "medium": 100_000, "large": 600_000}
WATCHED = (0.4, 0.3, 0.2, 0.1)
PREDICTED = ((0.7, 0.2, 0.08, 0.02), (0.1, 0.6, 0.25, 0.05), (0.25, 0.25, 0.25, 0.25), (0.9, 0.1, 0.0, 0.0))
SECONDS = 1
REPETITIONS, QUICK_REPETITIONS = 30, 1
CLIENTS = 32


def case(kind: str) -> Case:
    figures = (Figure("off", "median error of predicted throughput", "%", required=5, aim=2),)
    title = f"Demands per class against saturation throughput, {kind}"
    return Case(f"demands-{kind}", title, figures, lambda bed: measure(bed, kind))


def measure(bed: Bed, kind: str) -> Outcome:
    files = {f"{name}/file": size for name, size in CLASSES.items()}
    classes = [f"{name}=url /{name}/*" for name in CLASSES]
    workload = bed.directory / "demands.toml"
    workload.write_text("".join(f'[[class]]\nname = "{name}"\npath = "/{name}/file"\n\n' for name in CLASSES))
    repetitions = QUICK_REPETITIONS if bed.quick else REPETITIONS
    watched, others = [], []
    with bed.aside(), bed.server(kind, files, classes=classes) as server:
        for repetition in range(repetitions):
            say(f"demands-{kind}: repetition {repetition + 1} of {repetitions}")
            for mix in random.sample(PREDICTED, len(PREDICTED)):
                watched.append(saturate(bed, server, workload, WATCHED))
                others.append((mix, saturate(bed, server, workload, mix)))
        watched.append(saturate(bed, server, workload, WATCHED))
    demands = demands_us(watched)
    relative_costs = [run.cpu_us / run.predicted_cpu_us(demands) for run in watched]
    rows = [
        row(mix, {name: us * (before + after) / 2 for name, us in demands.items()}, run)
        for (mix, run), before, after in zip(others, relative_costs[:-1], relative_costs[1:], strict=True)
    ]
    outcome = Outcome()
    outcome.measured["off"] = Estimate.exact(statistics.median(abs(entry["off"]) for entry in rows))
    outcome.table(
        f"{kind}, {repetitions} repetitions; medians",
        ["mix", "server's CPU, %", "predicted/s", "measured/s", "error, %"],
        [table_row(mix, [entry for entry in rows if entry["mix"] == mix]) for mix in PREDICTED],
    )
    outcome.table("Demands at the watched mix, µs", list(demands), [[f"{us:.1f}" for us in demands.values()]])
    outcome.raw = {"rows": rows}
    return outcome


@dataclass(frozen=True)
class Run:
    """One run: the module's counts, its duration, and the server's CPU time."""

    counted: Counted
    seconds: float
    cpu_s: float

    @property
    def cpu_us(self) -> float:
        return 1e6 * self.cpu_s

    def predicted_cpu_us(self, demands: dict[str, float]) -> float:
        """The CPU time that these demands predict for the run's requests."""
        return sum(sums.requests * demands[name] for name, sums in self.counted.classes.items() if sums.requests)


def saturate(bed: Bed, server: Server, workload: object, mix: Sequence[float]) -> Run:
    shares = ",".join(f"{name}={share}" for name, share in zip(CLASSES, mix, strict=True))
    flags = ["--workload", workload, "--mix", shares, "--clients", CLIENTS, "--duration", f"{SECONDS}s"]
    pids = server.pids
    before, cpu = server.memory.counted(), cpu_s(pids)
    with bed.load(server.url, *flags) as load:
        record = load.record()
    return Run(server.memory.counted() - before, record["duration_s"], cpu_s(pids) - cpu)


def demands_us(runs: Sequence[Run]) -> dict[str, float]:
    """CPU time per request of each class, from the module's counts and the server's total CPU time."""
    total_us = sum(run.cpu_us for run in runs)
    classes = {name: [run.counted.classes[name] for run in runs] for name in CLASSES}
    requests = {name: sum(sums.requests for sums in by_run) for name, by_run in classes.items()}
    inside = {
        name: sum(sums.cpu_ns for sums in by_run) / 1000 / max(sum(sums.cpu_count for sums in by_run), 1)
        for name, by_run in classes.items()
    }
    outside = (total_us - sum(inside[name] * requests[name] for name in CLASSES)) / sum(requests.values())
    return {name: inside[name] + outside for name in CLASSES}


def row(mix: Sequence[float], demands: dict[str, float], run: Run) -> dict:
    utilization = run.cpu_s / run.seconds
    measured = run.counted.requests / run.seconds
    predicted = 1e6 * utilization * run.counted.requests / run.predicted_cpu_us(demands)
    error = 100 * (predicted / measured - 1)
    return {"mix": mix, "utilization": utilization, "predicted": predicted, "measured": measured, "off": error}


def table_row(mix: Sequence[float], rows: list[dict]) -> list[str]:
    keys = ("utilization", "predicted", "measured", "off")
    middle = {key: statistics.median(entry[key] for entry in rows) for key in keys}
    name = " : ".join(f"{100 * share:.0f}" for share in mix)
    rates = [f"{middle[key]:,.0f}" for key in ("predicted", "measured")]
    return [name, f"{100 * middle['utilization']:.1f}", *rates, f"{middle['off']:+.2f}"]


NGINX = case("nginx")
APACHE = case("apache")
