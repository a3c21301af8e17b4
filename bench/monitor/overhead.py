"""The effect of watching on a saturated nginx: throughput, and CPU time per request.

The monitor costs most on the CPU that nginx would otherwise use all the time, so it shares this CPU. It is stopped and
continued (SIGSTOP, SIGCONT) in slices of one run. The control toggles nothing and shows the error of the method. Other
monitors alternate with brimful, quartet by quartet.
"""

import contextlib
import itertools
import time
from collections.abc import Iterator

from ..side_by_side.report import figure
from . import brimful, peers, toggle
from .bed import Bed, Running, Server, note
from .case import Case, Figure, Outcome
from .clock import cpu_s
from .toggle import Slice
from .tools import missing

# Length of a slice, in seconds. It equals the sampling interval at 1 Hz, so that each slice contains one sample.
SLICE_S = 1.0
# Time after each switch of the monitor that is not measured: the monitor takes a sample that was due, and the queues of
# requests become normal again.
SETTLE_S = 0.15
CONTROL, WATCH, WATCH_10, SYSSTAT = "control", "brimful watch, 1 Hz", "brimful watch, 10 Hz", "sar and pidstat, 1 Hz"
# The monitor that is switched on and off in the slices of each quartet: brimful at 1 Hz in half of the quartets, and no
# monitor (control) in a quarter.
TURNS = (WATCH, CONTROL, WATCH, WATCH_10, WATCH, CONTROL, WATCH, SYSSTAT)
# nginx is saturated if it uses at least this share of its CPU.
SATURATED = 0.95


def measure(bed: Bed) -> Outcome:
    per_quartet = len(toggle.PATTERN) * (SLICE_S + SETTLE_S)
    number = max(round(bed.overhead_seconds / per_quartet), 2 * len(TURNS))
    lasting = 1.2 * number * per_quartet + 60
    outcome = Outcome()
    with bed.aside(), bed.server() as server, bed.saturate(server, lasting) as load, contextlib.ExitStack() as stack:
        running: dict[str, list[Running]] = {CONTROL: []}
        for name, commands in monitors(bed, server, lasting):
            running[name] = [stack.enter_context(Running(command, bed.server_cpu)) for command in commands]
        # Wait until all monitors have started and have taken their first samples.
        time.sleep(2)
        switches = {name: Switch(programs) for name, programs in running.items()}
        found: dict[str, list[list[Slice]]] = {name: [] for name in switches}
        turns = itertools.cycle([turn for turn in TURNS if turn in switches])
        for done, turn in enumerate(itertools.islice(turns, number)):
            if done % 20 == 0:
                note(f"overhead: quartet {done + 1} of {number}")
            found[turn].append(toggle.quartet(server, load, switches[turn], SLICE_S, SETTLE_S))
        for switch in switches.values():
            switch.check()
    judge(outcome, found, {name: switch.cpu_s / max(switch.on_s, 1e-9) for name, switch in switches.items()})
    outcome.notes += [missing(name) for name in ("sar", "pidstat") if not bed.programs.path(name)]
    return outcome


def monitors(bed: Bed, server: Server, lasting: float) -> Iterator[tuple[str, list[list[str]]]]:
    """Every installed monitor, with the command lines of its programs."""
    for name, interval in ((WATCH, "1s"), (WATCH_10, "100ms")):
        flags = ["--port", server.port, "--interval", interval, "--duration", f"{lasting:.0f}s"]
        yield name, [brimful.watch(bed, *flags, "--log", bed.scratch(f"log-{interval}"))]
    if bed.programs.path("sar") and bed.programs.path("pidstat"):
        samples = round(lasting)
        which = ["-p", ",".join(map(str, server.pids))]
        yield SYSSTAT, [peers.sar(bed, samples), peers.pidstat(bed, samples, *which)]


class Switch:
    """Stops and continues a monitor's programs, and measures their CPU time while they run."""

    def __init__(self, running: list[Running]) -> None:
        self._running = running
        self._on = False
        self._since = (0.0, 0.0)
        self.cpu_s = self.on_s = 0.0
        self.check()
        for program in running:
            program.pause()

    def __call__(self, on: bool) -> None:
        if on == self._on:
            return
        for running in self._running:
            running.resume() if on else running.pause()
        now = (time.monotonic(), self._cpu())
        if not on:
            self.on_s += now[0] - self._since[0]
            self.cpu_s += now[1] - self._since[1]
        self._on, self._since = on, now

    def check(self) -> None:
        for running in self._running:
            running.check()

    def _cpu(self) -> float:
        return sum(cpu_s(running.pids) for running in self._running)


def judge(outcome: Outcome, found: dict[str, list[list[Slice]]], own: dict[str, float]) -> None:
    rows = []
    for name, quartets in found.items():
        throughput = toggle.change(quartets, "requests_per_s").negated()
        cost = toggle.change(quartets, "cpu_us_per_request")
        if name == WATCH:
            outcome.measured |= {"throughput": throughput, "cpu": cost}
        rows.append(
            [name, str(len(quartets)), throughput.signed(), cost.signed()]
            + ["-" if name == CONTROL else f"{100 * own[name]:.3f}"]
        )
    outcome.table(
        f"Saturated nginx on one CPU, slices of {SLICE_S:g} s; value and 95 % interval",
        ["toggled", "quartets", "loss of throughput, %", "more CPU per request, %", "its own CPU, % of one"],
        rows,
    )
    slices = list(itertools.chain.from_iterable(itertools.chain.from_iterable(found.values())))
    without = [part for part in slices if not part.on]
    busy = sum(part.server_cpu_s for part in without) / sum(part.seconds for part in without)
    off = list(itertools.chain.from_iterable(found.values()))
    outcome.notes.append(
        f"without a monitor: {figure(toggle.mean(off, 'requests_per_s'))} requests/s, "
        f"{figure(toggle.mean(off, 'cpu_us_per_request'))} µs of CPU each; nginx used {100 * busy:.1f} % of its CPU"
    )
    if busy < SATURATED:
        outcome.notes.append("nginx was NOT saturated: the generator or other work was the limit")
    outcome.raw = {name: toggle.raw(quartets) for name, quartets in found.items()} | {"own_cpu_share": own}


CASE = Case(
    "overhead",
    "Effect of watching on a saturated nginx, all groups at 1 Hz",
    (
        Figure("throughput", "loss of throughput", "%", required=1, aim=0.5),
        Figure("cpu", "more CPU per request", "%", required=1, aim=0.5),
    ),
    measure,
)
