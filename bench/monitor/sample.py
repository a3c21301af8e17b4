"""The CPU time of one sample: of brimful by its sampling thread's CPU clock, and of all monitors per process."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator

from ..side_by_side.report import figure
from ..side_by_side.servers import free_port
from ..side_by_side.tools import Failed
from . import brimful, peers
from .bed import Bed, Running, helper, note
from .case import Case, Figure, Outcome
from .clock import cpu_s
from .crowd import NAME
from .stats import Estimate
from .tools import missing

TASKS = 300
SHAPES = {"threads": f"1 process of {TASKS} threads", "processes": f"{TASKS} processes of 1 thread"}
# Time after which the monitors have started and are not taking a sample, in seconds.
START_S = 2.5


def measure(bed: Bed) -> Outcome:
    outcome = Outcome()
    samples = 5 if bed.quick else 20
    costs: dict[str, dict[str, float | str]] = {}
    inside: dict[str, dict] = {}
    for shape, words in SHAPES.items():
        with crowd(shape) as port:
            note(f"sample: {words}, from inside")
            inside[shape] = probe(bed, port, samples)
            note(f"sample: {words}, from outside")
            for tool, cost_us in outside(bed, shape, port, samples).items():
                costs.setdefault(tool, {})[shape] = cost_us
    outcome.raw = {"inside": inside, "outside_us": costs, "samples": samples}
    for shape in SHAPES:
        outcome.measured[shape] = Estimate.mean(inside[shape]["ebpf"]["full_us"])
        watched = inside[shape]["ebpf"]["threads"]
        if watched != TASKS:
            outcome.notes.append(f"{SHAPES[shape]}: the monitor reports {watched} threads of {TASKS}")
    outcome.table(
        "CPU µs per sample, from inside: the thread's clock, mean (least–greatest)",
        ["", *SHAPES.values()],
        [
            [f"{part}, {kind}", *(spread(inside[shape][key], part) for shape in SHAPES)]
            for key, kind in (("ebpf", "eBPF"), ("plain", "without eBPF"))
            for part in ("full", "one after the other", *inside["threads"][key]["groups_us"])
        ],
    )
    outcome.table(
        "CPU µs per sample, from outside: the whole program without its start",
        ["", *SHAPES.values()],
        [[tool, *(cell(by_shape[shape]) for shape in SHAPES)] for tool, by_shape in costs.items()],
    )
    outcome.notes += [missing(tool) for tool in ("sar", "pidstat", "vmstat", "node_exporter") if tool not in costs]
    return outcome


@contextlib.contextmanager
def crowd(shape: str) -> Iterator[int]:
    """Runs the watched server, and yields its port."""
    command = helper("crowd.py", shape, TASKS)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def probe(bed: Bed, port: int, samples: int) -> dict:
    flags = ["--process", NAME, "--port", str(port), "--samples", str(samples), "--interval-ms", "500"]
    with Running([bed.program("probe"), "sample", *flags]) as running:
        return json.loads(running.finish(60 + 2 * samples))


def outside(bed: Bed, shape: str, port: int, samples: int) -> dict[str, float | str]:
    """CPU microseconds per sample of each program, or its error message.

    All programs run at the same time, with a sample each second; CPU time is counted per process. The clocks are read
    between two samples, first after the start, so that the cost of starting is not included.
    """
    lasting = START_S + samples + 3
    # brimful reads the values of every thread; pidstat does this only with -t.
    threads = ["-t"] if shape == "threads" else []
    flags = ["--process", NAME, "--port", port, "--interval", "1s", "--duration", f"{lasting:g}s"]
    commands = {
        "brimful watch": lambda: brimful.watch(bed, *flags),
        "brimful watch --no-ebpf": lambda: brimful.watch(bed, *flags, "--no-ebpf"),
        "sar": lambda: peers.sar(bed, round(lasting)),
        "pidstat": lambda: peers.pidstat(bed, round(lasting), *threads, "-C", NAME),
        "vmstat": lambda: peers.vmstat(bed, round(lasting)),
    }
    installed = [tool for tool in commands if bed.programs.path(tool.partition(" ")[0])]
    with contextlib.ExitStack() as stack:
        running: dict[str, Running] = {}
        if bed.programs.path("node_exporter"):
            exporter = stack.enter_context(peers.NodeExporter(bed, free_port()))
            warm(exporter)
        begun = time.monotonic()
        running |= {tool: stack.enter_context(Running(commands[tool]())) for tool in installed}
        if bed.programs.path("node_exporter"):
            running["node_exporter"] = exporter
        time.sleep(max(0, begun + START_S - time.monotonic()))
        before = {tool: spent_s(program) for tool, program in running.items()}
        for sample in range(1, samples + 1):
            if "node_exporter" in running:
                exporter.scrape()
            time.sleep(max(0, begun + START_S + sample - time.monotonic()))
        return {tool: cost(program, before[tool], samples) for tool, program in running.items()}


def spent_s(program: Running) -> float:
    return 0.0 if program.ended() else cpu_s(program.pids)


def cost(program: Running, before_s: float, samples: int) -> float | str:
    """CPU microseconds per sample, or the error message of a program that has ended."""
    return program.complaint() if program.ended() else 1e6 * (spent_s(program) - before_s) / samples


def warm(exporter: peers.NodeExporter, timeout_s: float = 10) -> None:
    """Waits until node_exporter answers, and scrapes it three times."""
    deadline = time.monotonic() + timeout_s
    answered = 0
    while answered < 3:
        try:
            exporter.scrape()
            answered += 1
        except OSError:
            if time.monotonic() > deadline:
                raise Failed(f"node_exporter does not answer: {exporter.complaint()}") from None
            time.sleep(0.05)


def spread(sampled: dict, part: str) -> str:
    parts = {"full": sampled["full_us"], "one after the other": sampled["warm_us"]} | sampled["groups_us"]
    return str(Estimate.mean(parts[part]))


def cell(cost_us: float | str) -> str:
    return cost_us if isinstance(cost_us, str) else figure(cost_us)


CASE = Case(
    "sample",
    "One full sample, all groups",
    tuple(Figure(shape, words, "µs", required=300, aim=200) for shape, words in SHAPES.items()),
    measure,
)
