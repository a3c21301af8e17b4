"""What seeing requests at sockets takes from a saturated nginx: one `brimful watch --requests`, as it is by default.

It attaches its programs for a slice of every second, at a random instant. This program looks every few milliseconds
whether they are attached and what has gone over the loopback device. What a slice takes is what was done in it, with
the moments in which its programs come and go, beside what was done as long before and as long after it; what the watch
takes is that times the share of the time. The watch is on the server's CPU, where it costs most.

The control is the same between slices, with nothing attached.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..command import say
from ..monitor.case import Case, Figure, Outcome
from ..monitor.clock import cpu_s
from ..monitor.stats import Estimate, change_percent
from ..side_by_side.tools import Failed
from . import toggle
from .bed import Bed, Traffic

CLIENTS = 64
LOOK_S = 0.004
# Loading takes the kernel and libbpf some tenths of a second; the first slices find cold caches.
LOADING_S = 3.0
# The kernel attaches programs before they are visible, and detaches them after they have disappeared.
COMING_AND_GOING_S = 0.03
DEFAULT, CONTROL = "attached", "nothing attached"


@dataclass(frozen=True)
class Look:
    """What was seen at an instant, and what had been done by then."""

    at: float
    attached: bool
    bytes: int


@dataclass(frozen=True)
class Span:
    """From when to when, in seconds."""

    begins: float
    ends: float

    @property
    def seconds(self) -> float:
        return self.ends - self.begins


def measure(bed: Bed) -> Outcome:
    seconds = max(bed.seconds, 10)
    with (
        bed.aside(),
        bed.server("nginx") as server,
        bed.load(server.url, "--clients", CLIENTS, "--duration", f"{1.3 * seconds + 60:.0f}s") as load,
        watch(bed, server.port) as process,
        toggle.punctual(),
    ):
        server.memory.switch(False)
        time.sleep(LOADING_S)
        pids, begun = server.pids, time.monotonic()
        cpu = cpu_s(pids)
        looks = []
        for _ in range(round(seconds)):
            looks += look(process.pid, 1.0)
            load.check()
        elapsed = time.monotonic() - begun
        busy = (cpu_s(pids) - cpu) / elapsed
        say(f"overhead-sockets: {elapsed:.0f} s seen")
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
        seen = json.loads(printed)
    if "requests" not in seen:
        raise Failed(f"brimful watch sees no requests: {seen['sources'].get('requests')}")
    outcome = Outcome()
    judge(outcome, looks, seen["requests"]["duty"], busy)
    return outcome


@contextlib.contextmanager
def watch(bed: Bed, port: int) -> Iterator[subprocess.Popen]:
    command = ["taskset", "-c", str(bed.server_cpu), bed.program("brimful"), "watch", "--port", str(port)]
    command += ["--groups", "requests", "--requests", "--json"]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def look(pid: int, seconds: float) -> list[Look]:
    """Looks at a watch and at the traffic every few milliseconds, for this time."""
    looks, ends = [], time.monotonic() + seconds
    while (now := time.monotonic()) < ends:
        looks.append(Look(now, is_attached(pid), Traffic.now().bytes))
        time.sleep(LOOK_S)
    return looks


def is_attached(pid: int) -> bool:
    """Whether a process holds a link of an eBPF program, or a tracepoint."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        # It may have been closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            held = os.readlink(f"/proc/{pid}/fd/{name}")
            if held.startswith(("anon_inode:bpf_link", "anon_inode:bpf-perf", "anon_inode:[perf_event]")):
                return True
    return False


def slices(looks: Sequence[Look]) -> list[Span]:
    """Those of which both ends were seen, with the moments in which programs come and go."""
    found, begun = [], None
    for before, now in zip(looks, looks[1:]):
        if now.attached and not before.attached:
            begun = before.at
        elif before.attached and not now.attached and begun is not None:
            found.append(Span(begun - COMING_AND_GOING_S, now.at + COMING_AND_GOING_S))
            begun = None
    return found


def between(taken: Sequence[Span]) -> list[Span]:
    """Spans like the slices, in the middle between two, where nothing is attached."""
    middles = [((before.ends + after.begins) / 2, before.seconds) for before, after in zip(taken, taken[1:])]
    return [Span(middle - seconds / 2, middle + seconds / 2) for middle, seconds in middles]


def quartets(looks: Sequence[Look], spans: Sequence[Span], taken: Sequence[Span]) -> list[list[float]]:
    """Bytes per second before, within (twice) and after each span, where no other slice comes in between: the time
    before and after is half as long as the span."""
    instants = [one.at for one in looks]

    def rate(span: Span) -> float | None:
        first, last = bisect_left(instants, span.begins), bisect_left(instants, span.ends)
        if first == 0 or last == len(looks):
            return None
        return (looks[last].bytes - looks[first].bytes) / (looks[last].at - looks[first].at)

    found = []
    for span in spans:
        half = span.seconds / 2
        before, after = Span(span.begins - half, span.begins), Span(span.ends, span.ends + half)
        if any(other is not span and other.ends > before.begins and other.begins < after.ends for other in taken):
            continue
        rates = [rate(before), rate(span), rate(after)]
        if all(rates):
            found.append([rates[0], rates[1], rates[1], rates[2]])
    return found


def judge(outcome: Outcome, looks: Sequence[Look], duty: float, busy: float) -> None:
    taken = slices(looks)
    seconds = looks[-1].at - looks[0].at
    share = sum(one.seconds for one in taken) / seconds
    rows, raw = [], {}
    for name, spans in ((DEFAULT, taken), (CONTROL, between(taken))):
        rates = quartets(looks, spans, taken)
        if len(rates) < 2:
            raise Failed(f"{len(taken)} slices in {seconds:.0f} s are too few: measure longer")
        within = toggle.less(change_percent(rates))
        whole = Estimate(*(share * value for value in (within.value, within.low, within.high)), within.of, interval=True)
        if name == DEFAULT:
            outcome.measured["throughput"] = whole
        raw[name] = rates
        rows.append([name, str(len(rates)), within.signed(), whole.signed()])
    outcome.table(
        f"Saturated nginx on one CPU, {100 * duty:.1f} % of the time attached, {100 * share:.1f} % with what comes before"
        " and after; value and 95 % interval",
        ["slices with", "slices", "loss of throughput within, %", "loss of all throughput, %"],
        rows,
    )
    outcome.notes.append(f"nginx had {100 * busy:.1f} % of its CPU")
    if busy < toggle.SATURATED:
        outcome.notes.append("nginx was NOT saturated: the generator or other work was the limit")
    outcome.raw = {"duty": duty, "share": share, "bytes_per_s": raw}


CASE = Case(
    "overhead-sockets",
    "What seeing requests at sockets takes from a saturated nginx",
    (Figure("throughput", "loss of throughput", "%", required=1.5, aim=1),),
    measure,
)
