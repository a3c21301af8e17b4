"""One measured point: a new test bed, a server, a load, and the kernel counters of both ends."""

import json
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from .counters import between, snapshot
from .servers import PORT
from .testbed import SERVER_ADDRESS, TestbedError, testbed
from .wide import wide

URL = f"http://{SERVER_ADDRESS}:{PORT}/page"
# Maximum time in which a run must end by itself after its last call, in seconds. It is longer than all timeouts of a
# run.
END_TIMEOUT_S = 15
# Seconds by which a load is longer than the measured window. The last interval of the Record may be incomplete; with
# this, it is outside of the window.
SPARE_S = 1
# Numbers of loop iterations per request for which Apache's capacity is measured. The number for a desired capacity is
# interpolated from these.
TRIALS = (30_000, 90_000)


@dataclass(frozen=True)
class Lab:
    """The binary, the CPUs and the settings of the test bed."""

    brimful: Path
    server_cpu: int
    client_cpu: int
    server_sysctls: dict = field(default_factory=dict)
    client_sysctls: dict = field(default_factory=dict)
    steered: bool = True
    # CPUs of the client hosts, if a figure has several. On a machine with two CPUs, the client hosts share one.
    client_cpus: tuple = ()
    # Flags of `brimful testbed` for a wide-area network between client and server. Empty if there is none.
    wide: tuple = ()

    def bed(self):
        if self.wide:
            return wide(self.brimful, self.server_cpu, self.client_cpu, self.wide)
        return testbed(self.server_cpu, self.client_cpu, self.server_sysctls, self.client_sysctls, self.steered)

    def load(self, arguments, seconds):
        """The command line of a load of this duration."""
        cpu = str(self.client_cpu)
        return [self.brimful, "load", *arguments, "-d", f"{seconds:g}s", "--cpus", cpu, "--json", "--quiet", URL]


def point(lab, server, arguments, warm_up, window, lasting=None):
    """Loads a server. Returns a table row with the rates within the window, and the Record of the whole run.

    With `lasting`, the load ends by itself after that number of seconds, so that the Record has the outcome of every
    call. Without it, the load is interrupted after the window, which saves waiting for the last calls of an overload.
    """
    with lab.bed() as (server_host, client_host):
        listening(server.start(server_host), server_host)
        limit = lasting + END_TIMEOUT_S if lasting else warm_up + window + SPARE_S / 2
        # Without --foreground, `timeout` would send the signal also to its process group, so the load would receive it
        # twice. A second signal ends a load without a Record.
        limited = ["timeout", "--foreground", "--signal=INT", "--preserve-status", f"{limit:g}"]
        command = [*limited, *lab.load(arguments, lasting or warm_up + window + SPARE_S)]
        generator = client_host.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(warm_up)
        before = snapshot(server_host.pid, client_host.pid)
        time.sleep(window)
        after = snapshot(server_host.pid, client_host.pid)
        record = finish(generator)
    row = between(before, after, lab.server_cpu, lab.client_cpu)
    row["replies"] = completed(record, before.at_ns, after.at_ns) / row["seconds"]
    row["valid"] = verdict(record)
    row["open"] = after.server["CurrEstab"]
    return row, record


def finish(generator):
    """Waits for a load and returns its Record, also if the load was interrupted or is invalid."""
    output, errors = generator.communicate()
    try:
        return json.loads(output)
    except ValueError:
        raise TestbedError(f"brimful load printed no Record: {errors.decode().strip()}") from None


def completed(record, start_ns, end_ns):
    """Replies between two instants of CLOCK_MONOTONIC, assumed to be even within each interval of the Record."""
    origin = record["started_monotonic_ns"]
    start, end = (start_ns - origin) / 1e9, (end_ns - origin) / 1e9
    total = 0.0
    for interval in record["intervals"]:
        first, length = interval["t_s"], interval["length_s"]
        inside = min(end, first + length) - max(start, first)
        if inside > 0:
            total += interval["completed"] * inside / length
    return total


def verdict(record):
    """`yes`, or the reason codes of an invalid run. The interruption by this program is not a reason."""
    codes = [reason["code"] for reason in record["verdict"]["reasons"] if reason["code"] != "interrupted"]
    return ", ".join(dict.fromkeys(codes)) or "yes"


def listening(process, host, proc=Path("/proc"), timeout_s=10):
    """Waits until a server that was just started listens."""
    deadline = time.monotonic() + timeout_s
    while not listens((proc / str(host.pid) / "net" / "tcp").read_text(), PORT):
        if process.poll() is not None or time.monotonic() > deadline:
            raise TestbedError(f"the server does not listen on port {PORT}; its error messages are above")
        time.sleep(0.02)


def listens(text, port):
    """Whether /proc/net/tcp has a listening socket (state 0A) on a port."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return any(int(row[1].partition(":")[2], 16) == port and row[3] == "0A" for row in rows)


def fitted(lab, apache, capacity, seconds):
    """Apache with the number of loop steps per request that gives this capacity, in requests per second."""
    clients = ["--clients", str(apache.workers), "--new-connection"]
    demands = [1 / point(lab, replace(apache, steps=n), clients, 0.5, seconds)[0]["replies"] for n in TRIALS]
    per_step = (demands[1] - demands[0]) / (TRIALS[1] - TRIALS[0])
    return replace(apache, steps=max(0, round(TRIALS[0] + (1 / capacity - demands[0]) / per_step)))
