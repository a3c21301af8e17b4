"""Whether demands per class from the module say how much a server can take.

One mix of four classes is watched at saturation. A class's demand is its CPU time in the module's phases and an equal
share of what the server's processes spent outside of them: accepting, waiting, parsing heads that come in parts. With
these the throughput of other mixes is predicted, X = U ÷ Σ pᵢDᵢ (the utilization law; Denning & Buzen 1978), and then
measured. U is the share of its CPU that the server had: all of it, where nothing else runs.

How classes differ is taken from all runs of the watched mix together, as CPU time is measured of some 250 requests a
second only. A host's speed may drift by a quarter within seconds, and with it what all requests cost: so runs are
short, and how dear they are at the moment is taken from what the server used just before a mix is predicted, and just
after.
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

# Class, bytes of its file.
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
    dear = [run.cpu_us / run.would_use_us(demands) for run in watched]
    rows = [
        row(mix, {name: us * (before + after) / 2 for name, us in demands.items()}, run)
        for (mix, run), before, after in zip(others, dear[:-1], dear[1:], strict=True)
    ]
    outcome = Outcome()
    outcome.measured["off"] = Estimate.exact(statistics.median(abs(one["off"]) for one in rows))
    outcome.table(
        f"{kind}, {repetitions} repetitions; medians",
        ["mix", "its CPU, %", "predicted/s", "measured/s", "off, %"],
        [table_row(mix, [one for one in rows if one["mix"] == mix]) for mix in PREDICTED],
    )
    outcome.table("Demands at the watched mix, µs", list(demands), [[f"{us:.1f}" for us in demands.values()]])
    outcome.raw = {"rows": rows}
    return outcome


@dataclass(frozen=True)
class Run:
    """What the module counted, how long it took, and how much CPU time the server had."""

    counted: Counted
    seconds: float
    cpu_s: float

    @property
    def cpu_us(self) -> float:
        return 1e6 * self.cpu_s

    def would_use_us(self, demands: dict[str, float]) -> float:
        return sum(one.requests * demands[name] for name, one in self.counted.classes.items() if one.requests)


def saturate(bed: Bed, server: Server, workload: object, mix: Sequence[float]) -> Run:
    shares = ",".join(f"{name}={share}" for name, share in zip(CLASSES, mix, strict=True))
    flags = ["--workload", workload, "--mix", shares, "--clients", CLIENTS, "--duration", f"{SECONDS}s"]
    pids = server.pids
    before, cpu = server.memory.counted(), cpu_s(pids)
    with bed.load(server.url, *flags) as load:
        record = load.record()
    return Run(server.memory.counted() - before, record["duration_s"], cpu_s(pids) - cpu)


def demands_us(runs: Sequence[Run]) -> dict[str, float]:
    """CPU time per request of each class, from what was counted and the CPU time that it took in all."""
    total_us = sum(run.cpu_us for run in runs)
    classes = {name: [run.counted.classes[name] for run in runs] for name in CLASSES}
    requests = {name: sum(one.requests for one in found) for name, found in classes.items()}
    inside = {
        name: sum(one.cpu_ns for one in found) / 1000 / max(sum(one.cpu_count for one in found), 1)
        for name, found in classes.items()
    }
    outside = (total_us - sum(inside[name] * requests[name] for name in CLASSES)) / sum(requests.values())
    return {name: inside[name] + outside for name in CLASSES}


def row(mix: Sequence[float], demands: dict[str, float], run: Run) -> dict:
    counted, seconds = run.counted, run.seconds
    utilization, measured = run.cpu_s / seconds, counted.requests / seconds
    predicted = 1e6 * utilization * counted.requests / run.would_use_us(demands)
    off = 100 * (predicted / measured - 1)
    return {"mix": mix, "utilization": utilization, "predicted": predicted, "measured": measured, "off": off}


def table_row(mix: Sequence[float], rows: list[dict]) -> list[str]:
    keys = ("utilization", "predicted", "measured", "off")
    middle = {key: statistics.median(one[key] for one in rows) for key in keys}
    name = " : ".join(f"{100 * share:.0f}" for share in mix)
    rates = [f"{middle[key]:,.0f}" for key in ("predicted", "measured")]
    return [name, f"{100 * middle['utilization']:.1f}", *rates, f"{middle['off']:+.2f}"]


NGINX = case("nginx")
APACHE = case("apache")
