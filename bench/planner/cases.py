"""The cases: the models and solvers, the required figures, and the comparison of the answers.

Times are CPU seconds of one core, by each solver's own CPU clock, without its start. A repetition has one run of every
solver, so that a host that is slow for a minute slows all of them. A solver that exceeds the time limit is not run
again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..monitor.case import Case, Figure, Outcome
from ..monitor.stats import Estimate
from ..side_by_side.tools import Failed
from . import networks
from .peers import Peer
from .program import Program

OURS = "brimful"
CURVE_POINTS = 1000
NETWORKS = 200
# Number of large random networks on which the solver called linearizer is timed.
SIMILAR_NETWORKS = 12


@dataclass
class Bed:
    """Shared by all cases: the solvers and the size of the measurement."""

    program: Program
    peers: list[Peer]
    repetitions: int
    limit_s: float
    quick: bool


@dataclass
class Runs:
    """The repetitions of one task: seconds and last answer of each solver, and the error of each solver that failed."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, list[float]] = field(default_factory=dict)
    memory_mb: list[float] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def raw(self) -> dict:
        return {"seconds": self.seconds, "memory_mb": self.memory_mb, "failures": self.failures}

    def rows(self) -> Iterator[list[str]]:
        for name, seconds in self.seconds.items():
            apart = "-" if name == OURS else f"{apart_by(self.answers[OURS], self.answers[name]):.1e}"
            times = Estimate.spread([s / o for s, o in zip(seconds, self.seconds[OURS], strict=True)])
            yield [name, milliseconds(seconds), "1" if name == OURS else str(times), apart]
        for name, error in self.failures.items():
            yield [name, error.removeprefix(f"{name}: "), "-", "-"]


HEAD = ["", "ms", "times ours", "largest difference"]


def repeated(bed: Bed, ours: dict, theirs: dict, answer: str) -> Runs:
    """Runs a task with brimful and with every other solver that can do it."""
    runs = Runs()
    for _ in range(bed.repetitions):
        found, memory = bed.program.ask(ours)
        runs.seconds.setdefault(OURS, []).append(min(found["cpu_s"]))
        runs.memory_mb.append(memory)
        runs.answers[OURS] = last(found, answer)
        for peer in bed.peers:
            if peer.name in runs.failures:
                continue
            try:
                reply = peer.ask(theirs, bed.limit_s)
                runs.seconds.setdefault(peer.name, []).append(reply["cpu_s"])
                runs.answers[peer.name] = reply[answer]
            except Failed as failure:
                runs.failures[peer.name] = str(failure)
                runs.seconds.pop(peer.name, None)
    return runs


def last(found: dict, answer: str) -> list[float]:
    return (found["solution"] if "solution" in found else found["points"][-1]["steady"])[answer]


def apart_by(ours: list[float], theirs: list[float]) -> float:
    """The largest relative difference between two answers."""
    return max(abs(b / a - 1) for a, b in zip(ours, theirs, strict=True))


def milliseconds(seconds: list[float]) -> str:
    return str(Estimate.spread([1e3 * s for s in seconds]))


def solved(bed: Bed, outcome: Outcome, method: str, size: tuple[int, int, int]) -> Runs:
    classes, stations, population = size
    model = networks.closed(*size)
    ours = {"solve": {"model": model, "method": method, "repetitions": 1}}
    runs = repeated(bed, ours, {"task": method, "model": model}, "throughput")
    title = f"{classes} classes × {stations} stations × population {population} each"
    outcome.table(title, HEAD, list(runs.rows()))
    outcome.raw[title] = runs.raw()
    return runs


def exact(bed: Bed) -> Outcome:
    outcome = Outcome()
    solved(bed, outcome, "exact", (3, 6, 8))
    runs = solved(bed, outcome, "exact", (4, 10, 30))
    outcome.measured["seconds"] = Estimate.spread(runs.seconds[OURS])
    outcome.measured["memory"] = Estimate.spread(runs.memory_mb)
    return outcome


def linearizer(bed: Bed) -> Outcome:
    outcome = Outcome()
    solved(bed, outcome, "linearizer", (3, 10, 100))
    size = (20, 100, 1000)
    runs = solved(bed, outcome, "linearizer", size)
    outcome.measured["seconds"] = Estimate.spread([1e3 * s for s in runs.seconds[OURS]])
    # The time of the linearizer differs between networks: it converges more slowly if several stations are about
    # equally busy.
    times: dict[int, list[float]] = {number: [] for number in range(SIMILAR_NETWORKS)}
    for _ in range(bed.repetitions):
        for number in times:
            request = {"solve": {"model": networks.closed(*size, number), "method": "linearizer", "repetitions": 1}}
            times[number].append(1e3 * bed.program.ask(request)[0]["cpu_s"][0])
    slowest = max(times.values(), key=lambda ms: Estimate.spread(ms).value)
    outcome.measured["slowest"] = Estimate.spread(slowest)
    outcome.raw["ms by network"] = list(times.values())
    return outcome


def curve(bed: Bed) -> Outcome:
    """The paper's server at 1 % to 102 % of its present rates, just below saturation."""
    outcome = Outcome()
    first, end = 0.01, 1.02
    factors = [first + (end - first) * i / (CURVE_POINTS - 1) for i in range(CURVE_POINTS)]
    model = networks.web_server()
    ours = {"curve": {"model": model, "change": f"rate={first}x..{end}x:{CURVE_POINTS}", "repetitions": 5}}
    runs = repeated(bed, ours, {"task": "curve", "model": model, "factors": factors}, "response_time")
    outcome.table(f"{CURVE_POINTS} points of the server of 1999", HEAD, list(runs.rows()))
    outcome.raw["curve"] = runs.raw()
    outcome.measured["seconds"] = Estimate.spread([1e3 * s for s in runs.seconds[OURS]])
    return outcome


def simulator(bed: Bed) -> Outcome:
    outcome = Outcome()
    events = 500_000 if bed.quick else 5_000_000
    models = {"one": networks.one_queue(), "server": networks.busy_server()}
    rates: dict[str, list[float]] = {name: [] for name in models}
    for seed in range(bed.repetitions):
        for name, model in models.items():
            found, _ = bed.program.ask({"simulate": {"model": model, "events": events, "seed": seed}})
            rates[name].append(found["events"] / found["cpu_s"][0] / 1e6)
    outcome.measured = {name: Estimate.spread(values) for name, values in rates.items()}
    outcome.raw["million_events_per_s"] = rates
    return outcome


def agreement(bed: Bed) -> Outcome:
    outcome = Outcome()
    count, events = (20, 100_000) if bed.quick else (NETWORKS, 1_000_000)
    found, _ = bed.program.ask({"agreement": {"networks": count, "events": events}})
    outcome.measured["covered"] = Estimate.exact(100 * found["covered"] / found["figures"])
    outcome.measured["farthest"] = Estimate.exact(found["farthest_errors"])
    outcome.raw["simulator"] = found
    outcome.notes.append(
        f"{found['figures']} figures of {count} random networks; "
        f"the largest error is in network {found['farthest_network']}."
    )
    for peer in bed.peers:
        if peer.name == "LINE":
            compare(bed, outcome, peer, count)
    return outcome


def compare(bed: Bed, outcome: Outcome, peer: Peer, count: int) -> None:
    """Compares another solver's exact solutions of the same networks with brimful's."""
    solutions, _ = bed.program.ask({"networks": {"networks": count}})
    worst, compared, failures = 0.0, 0, []
    for number, pair in enumerate(solutions):
        try:
            reply = peer.ask({"task": "network", "model": pair["model"]}, bed.limit_s)
        except Failed as failure:
            failures.append(f"{number}: {failure}")
            continue
        compared += 1
        worst = max(worst, apart(pair["solution"], reply))
    outcome.raw[peer.name] = {"compared": compared, "largest_difference": worst, "failures": failures}
    outcome.notes.append(
        f"{peer.name} solves {compared} of them; "
        f"throughputs and queue lengths differ from brimful's by at most {worst:.1e}, relative."
    )
    if failures:
        outcome.notes.append(f"{peer.name} cannot solve {len(failures)}: {failures[0].partition(': ')[2]}.")


def apart(ours: dict, theirs: dict) -> float:
    """The largest relative difference of throughputs and queue lengths."""
    pairs = list(zip(ours["throughput"], theirs["throughput"], strict=True))
    for queue, row in zip(theirs["queues"], theirs["queue_length"], strict=True):
        pairs += zip(ours["queue_length"][queue], row, strict=True)
    return max(abs(b / a - 1) for a, b in pairs if a > 0)


CASES = [
    Case(
        "exact",
        "Exact solution of closed classes",
        (
            Figure("seconds", "4 classes × 10 stations × population 30 each", "s", required=1),
            Figure("memory", "its peak resident memory", "MB", required=300),
        ),
        exact,
    ),
    Case(
        "linearizer",
        "Linearizer",
        (
            Figure("seconds", "20 classes × 100 stations × 1000 each", "ms", required=200),
            Figure("slowest", f"the slowest of {SIMILAR_NETWORKS} networks of that size", "ms", required=200),
        ),
        linearizer,
    ),
    Case(
        "curve",
        "What-if analysis along a range",
        (Figure("seconds", "1000 points, 4 open classes", "ms", required=5),),
        curve,
    ),
    Case(
        "simulator",
        "Simulation",
        (
            Figure("one", "M/M/1", "million events/s", required=3, at_least=True),
            Figure("server", "4 classes × 6 stations", "million events/s", required=3, at_least=True),
        ),
        simulator,
    ),
    Case(
        "agreement",
        "Exact solutions, simulations and others' solutions",
        (
            Figure("covered", "95 % intervals that contain the exact figure", "%", required=93, at_least=True),
            Figure("farthest", "the largest error, in standard errors", "", required=6),
        ),
        agreement,
    ),
]
