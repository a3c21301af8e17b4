"""Workloads A and B of the WebMonitor paper (1997, Table 1), by 30 clients with a new connection for each request.

Measures the paper's Table 3, the monitor's effect on the server, and its main result, the share of a request's CPU time
that is spent in the kernel: up to 90 % in 1997.
"""

import os
import time
from pathlib import Path

from ..monitor.case import Case, Figure, Outcome
from ..monitor.stats import Estimate
from ..monitor.toggle import mean
from . import toggle
from .bed import Bed
from .servers import Server

CLIENTS = 30
# For each kind of file: number of files, mean size in KB, share of the requests. The files of workload B have a quarter
# of the size.
FILES = (
    ("html", 24, 7.5, 0.192),
    ("images", 29, 13.28, 0.754),
    ("sound", 20, 179.0, 0.05),
    ("video", 4, 2304.0, 0.004),
)
# Length of a slice, in seconds. overhead.py explains why slices are short and the server is started several times. A
# slice has about 200 connections, each of which lasts at most a few milliseconds.
SLICE_S = 0.02
STARTS, QUICK_STARTS = 8, 2
START_S = 26
SHARE_S, QUICK_SHARE_S = 20, 4
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def files(divisor: int) -> dict[str, int]:
    return {f"{kind}/{i}": round(1024 * size / divisor) for kind, number, size, _ in FILES for i in range(number)}


def workload(path: Path) -> Path:
    text = ""
    for kind, number, _, share in FILES:
        urls = "".join(f'  {{ path = "/{kind}/{i}" }},\n' for i in range(number))
        text += f'[[class]]\nname = "{kind}"\nweight = {share}\nurls = [\n{urls}]\n\n'
    path.write_text(text)
    return path


def flags(bed: Bed, seconds: float) -> list[object]:
    path = workload(bed.directory / "webstone.toml")
    return ["--workload", path, "--clients", CLIENTS, "--new-connection", "--duration", f"{seconds:.0f}s"]


def table_3(bed: Bed, kind: str) -> Outcome:
    outcome = Outcome()
    seconds = max(bed.seconds / 2, 30)
    starts = QUICK_STARTS if bed.quick else max(STARTS, round(seconds / START_S))
    seconds /= starts
    runs = []
    for start in range(starts):
        name = f"table3-{kind}, start {start + 1} of {starts}"
        with (
            bed.aside(),
            bed.server(kind, files(1)) as server,
            bed.load(server.url, *flags(bed, 1.5 * seconds + 60)) as load,
        ):
            toggle.measure(server, load, 2, SLICE_S, f"{name}, warm-up")
            runs.append(toggle.measure(server, load, seconds, SLICE_S, name))
    of_module = [run[toggle.MODULE] for run in runs]
    quartets = [quartet for run in of_module for quartet in run]
    slower = toggle.loss_of_runs(of_module, "connections_per_s")
    outcome.measured = {
        "connections": slower,
        "bits": toggle.loss_of_runs(of_module, "bytes_per_s"),
        # Without think time, R = N/X (response time law), so the response time changes inversely to the throughput.
        "response": inverse(slower),
    }
    per_s = {on: mean(quartets, "connections_per_s", on) for on in (True, False)}
    mbit = {on: 8e-6 * mean(quartets, "bytes_per_s", on) for on in (True, False)}
    rows = [
        ["connections/s", f"{per_s[True]:,.0f}", f"{per_s[False]:,.0f}", slower.signed()],
        ["Mbit/s", f"{mbit[True]:,.0f}", f"{mbit[False]:,.0f}", outcome.measured["bits"].signed()],
        ["response time, ms", *(f"{1000 * CLIENTS / per_s[on]:.3f}" for on in (True, False))]
        + [outcome.measured["response"].signed()],
    ]
    outcome.table(
        f"Table 3 of the paper, {kind}, Workload A", ["", "with the module", "without", "difference, %"], rows
    )
    control = toggle.loss_of_runs([run[toggle.CONTROL] for run in runs], "connections_per_s")
    busy = 100 * sum(map(toggle.busy, runs)) / starts
    outcome.notes.append(f"control: {control.signed()} % of connections/s; {kind} used {busy:.0f} % of its CPU")
    outcome.raw = {"starts": [toggle.raw(run) for run in runs]}
    return outcome


def inverse(loss: Estimate) -> Estimate:
    """The increase of the response time, in percent, that belongs to this loss of throughput."""
    value, low, high = (100 * (1 / (1 - x / 100) - 1) for x in (loss.value, loss.low, loss.high))
    return Estimate(value, low, high, loss.of, interval=True)


def kernel_share(bed: Bed) -> Outcome:
    outcome = Outcome()
    rows = []
    for kind in ("nginx", "apache"):
        for name, divisor in (("A", 1), ("B", 4)):
            with bed.aside(), bed.server(kind, files(divisor)) as server:
                rows.append([kind, name, *shares(bed, server, outcome, f"{kind} {name}")])
    outcome.table(
        f"CPU time of a saturated server, {CLIENTS} clients, a connection for each request",
        ["server", "workload", "requests/s", "server's CPU, %", "µs/request", "in the kernel, %", "in the phases, %"],
        rows,
    )
    outcome.notes.append(
        "In the kernel: by the kernel's account of the server's processes (/proc/PID/stat); "
        "the paper's Apache of 1997: 90 %. In the phases: share of the threads' CPU time; the rest is between requests."
    )
    return outcome


def shares(bed: Bed, server: Server, outcome: Outcome, name: str) -> list[str]:
    seconds = QUICK_SHARE_S if bed.quick else SHARE_S
    with bed.load(server.url, *flags(bed, seconds + 3)) as load:
        time.sleep(1)
        pids = server.pids
        before, times, begun = server.memory.counted(), account(pids), time.monotonic()
        time.sleep(seconds)
        counted, spent = server.memory.counted() - before, [b - a for a, b in zip(times, account(pids), strict=True)]
        elapsed = time.monotonic() - begun
        load.record()
    total, kernel = sum(spent), spent[1] / sum(spent)
    sampled = sum(sums.cpu_count for sums in counted.classes.values())
    inside_ns = sum(sums.cpu_ns for sums in counted.classes.values())
    phases = inside_ns / sampled * counted.requests / counted.thread_cpu_ns if sampled else 0.0
    outcome.raw[name] = {"kernel": kernel, "cpu_s": total, "requests": counted.requests, "phases": phases}
    return [
        f"{counted.requests / elapsed:,.0f}",
        f"{100 * total / elapsed:.0f}",
        f"{1e6 * total / counted.requests:.1f}",
        f"{100 * kernel:.1f}",
        f"{100 * phases:.1f}",
    ]


def account(pids: list[int]) -> tuple[float, float]:
    """CPU seconds of these processes in user mode and in the kernel."""
    user = system = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        user += int(fields[11]) * TICK_S
        system += int(fields[12]) * TICK_S
    return user, system


def case(kind: str) -> Case:
    figures = (
        Figure("connections", "loss of connections/s", "%", required=4, aim=1),
        Figure("bits", "loss of Mbit/s", "%", required=4, aim=1),
        Figure("response", "longer response time", "%", required=4, aim=1),
    )
    return Case(f"table3-{kind}", f"The paper's Table 3, {kind}", figures, lambda bed: table_3(bed, kind))


NGINX = case("nginx")
APACHE = case("apache")
KERNEL = Case("kernel-share", "Share of a request's CPU time in the kernel", (), kernel_share)
