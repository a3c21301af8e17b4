"""Whether demands per class from the module say how much a server can take.

One mix of four classes is watched at saturation. A class's demand is its CPU time in the module's phases and an equal
share of what the server's processes spent outside of them: accepting, waiting, parsing heads that come in parts. With
these the throughput of other mixes is predicted, X = U ÷ Σ pᵢDᵢ (the utilization law; Denning & Buzen 1978), and then
measured. U is the share of its CPU that the server had: all of it, where nothing else runs.

A host's speed may drift by a quarter within seconds, and with it what a request costs. So runs are short, and each mix
is predicted from what was watched just before it and just after.
"""

import random
import statistics
from collections.abc import Sequence

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
SECONDS, QUICK_SECONDS = 3, 2
REPETITIONS, QUICK_REPETITIONS = 10, 1
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
    rows = []
    with bed.aside(), bed.server(kind, files, classes=classes) as server:
        for repetition in range(repetitions):
            say(f"demands-{kind}: repetition {repetition + 1} of {repetitions}")
            before = demands_us(*saturate(bed, server, workload, WATCHED))
            for mix in random.sample(PREDICTED, len(PREDICTED)):
                run = saturate(bed, server, workload, mix)
                after = demands_us(*saturate(bed, server, workload, WATCHED))
                demands = {name: (before[name] + after[name]) / 2 for name in CLASSES}
                rows.append(row(mix, demands, *run))
                before = after
    outcome = Outcome()
    outcome.measured["off"] = Estimate.exact(statistics.median(abs(one["off"]) for one in rows))
    outcome.table(
        f"{kind}, {repetitions} repetitions; medians",
        ["mix", "its CPU, %", "predicted/s", "measured/s", "off, %"],
        [table_row(mix, [one for one in rows if one["mix"] == mix]) for mix in PREDICTED],
    )
    outcome.table("Demands of the last repetition, µs", list(demands), [[f"{us:.1f}" for us in demands.values()]])
    outcome.raw = {"rows": rows}
    return outcome


def saturate(bed: Bed, server: Server, workload: object, mix: Sequence[float]) -> tuple[Counted, float, float]:
    """What the module counted, how long it took, and how much CPU time the server had."""
    seconds = QUICK_SECONDS if bed.quick else SECONDS
    shares = ",".join(f"{name}={share}" for name, share in zip(CLASSES, mix, strict=True))
    flags = ["--workload", workload, "--mix", shares, "--clients", CLIENTS, "--duration", f"{seconds}s"]
    pids = server.pids
    before, cpu = server.memory.counted(), cpu_s(pids)
    with bed.load(server.url, *flags) as load:
        record = load.record()
    return server.memory.counted() - before, record["duration_s"], cpu_s(pids) - cpu


def demands_us(counted: Counted, _seconds: float, used_s: float) -> dict[str, float]:
    """CPU time per request of each class."""
    inside = {name: one.cpu_us for name, one in counted.classes.items() if one.cpu_count}
    spent = sum(inside[name] * counted.classes[name].requests for name in inside)
    outside = (1e6 * used_s - spent) / counted.requests
    return {name: inside.get(name, 0.0) + outside for name in CLASSES}


def row(mix: Sequence[float], demands: dict[str, float], counted: Counted, seconds: float, busy_s: float) -> dict:
    shares = {name: counted.classes[name].requests / counted.requests for name in CLASSES}
    utilization, measured = busy_s / seconds, counted.requests / seconds
    predicted = 1e6 * utilization / sum(share * demands[name] for name, share in shares.items())
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
