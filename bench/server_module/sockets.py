"""The effect of observing requests at sockets on a saturated nginx, by `brimful watch --requests` with its defaults.

The watch attaches its eBPF programs for a slice of every second, at a random time. This program polls every few
milliseconds whether they are attached, and the bytes over the loopback device. A slice includes the moments of
attaching and detaching. The throughput in a slice is compared with the throughput just before and after it, over the
same length of time. The overall loss is the loss within slices times their share of the time. The watch runs on the
server's CPU, where it costs most.

The control is the same comparison between slices, with nothing attached.
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
POLL_S = 0.004
# Time that is not measured, in seconds: loading the eBPF programs takes some tenths of a second, and in the first
# slices, their data is not in the caches.
LOADING_S = 3.0
# Time before and after an observed attachment that counts as attached, in seconds. The kernel begins to attach programs
# before the links are visible, and continues to detach them after the links have disappeared.
ATTACH_MARGIN_S = 0.03
DEFAULT, CONTROL = "attached", "nothing attached"


@dataclass(frozen=True)
class Reading:
    """Whether programs were attached at an instant, and the bytes over the loopback device until then."""

    at: float
    attached: bool
    bytes: int


@dataclass(frozen=True)
class Span:
    """A span of time, in seconds of CLOCK_MONOTONIC."""

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
        readings = []
        for _ in range(round(seconds)):
            readings += poll(process.pid, 1.0)
            load.check()
        elapsed = time.monotonic() - begun
        busy = (cpu_s(pids) - cpu) / elapsed
        say(f"overhead-sockets: measured for {elapsed:.0f} s")
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
        seen = json.loads(printed)
    if "requests" not in seen:
        raise Failed(f"brimful watch observed no requests: {seen['sources'].get('requests')}")
    outcome = Outcome()
    judge(outcome, readings, seen["requests"]["duty"], busy)
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


def poll(pid: int, seconds: float) -> list[Reading]:
    """Reads a watch's state and the traffic every few milliseconds, for this time."""
    readings = []
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        readings.append(Reading(now, is_attached(pid), Traffic.now().bytes))
        time.sleep(POLL_S)
    return readings


def is_attached(pid: int) -> bool:
    """Whether a process holds a link of an eBPF program, or a tracepoint."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        # The process may have closed the file descriptor after the directory was listed.
        with contextlib.suppress(FileNotFoundError):
            held = os.readlink(f"/proc/{pid}/fd/{name}")
            if held.startswith(("anon_inode:bpf_link", "anon_inode:bpf-perf", "anon_inode:[perf_event]")):
                return True
    return False


def slices(readings: Sequence[Reading]) -> list[Span]:
    """The slices of which both ends were observed, with the moments of attaching and detaching."""
    found, begun = [], None
    for before, now in zip(readings, readings[1:]):
        if now.attached and not before.attached:
            begun = before.at
        elif before.attached and not now.attached and begun is not None:
            found.append(Span(begun - ATTACH_MARGIN_S, now.at + ATTACH_MARGIN_S))
            begun = None
    return found


def between(taken: Sequence[Span]) -> list[Span]:
    """Spans as long as the slices, in the middle between two slices, where nothing is attached."""
    middles = [((before.ends + after.begins) / 2, before.seconds) for before, after in zip(taken, taken[1:])]
    return [Span(middle - seconds / 2, middle + seconds / 2) for middle, seconds in middles]


def quartets(readings: Sequence[Reading], spans: Sequence[Span], taken: Sequence[Span]) -> list[list[float]]:
    """Bytes per second before, within (twice) and after each span. The times before and after a span are each half as
    long as the span. Spans that are too close to another slice are left out."""
    instants = [reading.at for reading in readings]

    def rate(span: Span) -> float | None:
        first, last = bisect_left(instants, span.begins), bisect_left(instants, span.ends)
        if first == 0 or last == len(readings):
            return None
        return (readings[last].bytes - readings[first].bytes) / (readings[last].at - readings[first].at)

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


def judge(outcome: Outcome, readings: Sequence[Reading], duty: float, busy: float) -> None:
    taken = slices(readings)
    seconds = readings[-1].at - readings[0].at
    share = sum(span.seconds for span in taken) / seconds
    rows, raw = [], {}
    for name, spans in ((DEFAULT, taken), (CONTROL, between(taken))):
        rates = quartets(readings, spans, taken)
        if len(rates) < 2:
            raise Failed(f"{len(taken)} slices in {seconds:.0f} s are too few: measure longer")
        within = change_percent(rates).negated()
        scaled = [share * value for value in (within.value, within.low, within.high)]
        whole = Estimate(*scaled, within.of, interval=True)
        if name == DEFAULT:
            outcome.measured["throughput"] = whole
        raw[name] = rates
        rows.append([name, str(len(rates)), within.signed(), whole.signed()])
    outcome.table(
        f"Saturated nginx on one CPU, attached for {100 * duty:.1f} % of the time, "
        f"{100 * share:.1f} % with attaching and detaching; value and 95 % interval",
        ["slices with", "slices", "loss of throughput within, %", "loss of all throughput, %"],
        rows,
    )
    outcome.notes.append(f"nginx used {100 * busy:.1f} % of its CPU")
    if busy < toggle.SATURATED:
        outcome.notes.append("nginx was NOT saturated: the generator or other work was the limit")
    outcome.raw = {"duty": duty, "share": share, "bytes_per_s": raw}


CASE = Case(
    "overhead-sockets",
    "Effect of observing requests at sockets on a saturated nginx",
    (Figure("throughput", "loss of throughput", "%", required=1.5, aim=1),),
    measure,
)
