"""One run of one generator against a new server, each on its own CPU, with the cost of the generator.

CPU time is the kernel's account of the finished process (wait4), its start and its report included. The number of
requests is the server's count, not the generator's.
"""

import json
import os
import select
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from . import host, lateness, stats
from .case import Case
from .entry import Entry, Setting
from .servers import LARGE_BYTES, PAGE_BYTES, Nginx, Server, Trivial
from .tools import Failed, Programs

SCRIPTS = Path(__file__).parent / "scripts"
# Interval between readings of a running generator's memory, in seconds.
PERIOD_S = 0.2
# Connections per second that the slow server accepts, as in Figure 7 of Banga & Druschel (1997).
SLOW_PER_SECOND = 130
# Delay of the responses of the server with delayed responses, and think time of brimful's clients, in seconds. brimful
# distributes the clients' first calls over the think time, so all clients have connected before the first response.
# When the last call gets its response, the first client has not called again yet: at this moment, all connections are
# open and idle.
HOLD_S = 3
THINK_S = 2
# The two numbers of connections with which a generator's memory is measured. Their difference shows the memory per
# connection.
CONNECTIONS = (2000, 10000)


@dataclass
class Finished:
    """A generator that has ended."""

    command: list[str]
    wall_s: float
    cpu_s: float
    core_busy_s: float
    peak_rss_kib: int
    output: str
    # Readings of the generator's memory: seconds since its start, and resident memory in KiB.
    memory: list[tuple[float, int]] = field(repr=False)


@dataclass(frozen=True)
class Bench:
    """The programs, the scratch directory and the CPUs, the same for all runs."""

    programs: Programs
    directory: Path
    server_cpu: int
    generator_cpu: int

    def start(self, kind: str, room: int = 0) -> Server:
        """Starts a server. `room` is the largest number of requests that the stamping server can record."""
        if kind in ("nginx", "nginx-large", "nginx-tls", "nginx-http2"):
            if (path := self.programs.path("nginx")) is None:
                raise Failed("nginx is absent")
            secure, http2 = kind == "nginx-tls", kind == "nginx-http2"
            page = LARGE_BYTES if kind == "nginx-large" else PAGE_BYTES
            return Nginx(path, self.directory, self.server_cpu, secure=secure, http2=http2, page=page)
        mode = {
            "trivial": ["answer"],
            "stamp": ["stamp", "--limit", str(room), "--out", str(self.stamps)],
            "hold": ["hold", "--pause-s", str(HOLD_S)],
            "full": ["full"],
            "slow": ["slow", "--per-second", str(SLOW_PER_SECOND)],
        }[kind]
        return Trivial(self.programs.path("brimful-bench-server"), mode, self.server_cpu)

    @property
    def stamps(self) -> Path:
        return self.directory / "stamps"

    def run(self, entry: Entry, setting: Setting) -> Finished:
        """Runs a generator to its end."""
        with Generator(self, entry, setting) as generator:
            return generator.finish()


class Generator:
    """A running generator. It is killed when it exceeds three times its duration, or when the `with` block ends."""

    def __init__(self, bench: Bench, entry: Entry, setting: Setting) -> None:
        argv = entry.argv(setting)
        self._entry = entry
        self._cpu = bench.generator_cpu
        self._limit_s = 3 * setting.seconds + 60
        # The results contain the names of programs without their directories.
        self.command = ["taskset", "-c", str(self._cpu), *argv]
        self._output, self._errors = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        real = [*self.command[:3], bench.programs.path(entry.program), *argv[1:]]
        self._busy_before = host.cpu_busy_s(self._cpu)
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            real,
            cwd=SCRIPTS,
            env=environment(entry, setting),
            stdin=subprocess.PIPE if entry.stdin else subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
        )
        self._pidfd = os.pidfd_open(self._process.pid)
        if entry.stdin:
            with self._process.stdin as stdin:
                stdin.write(entry.stdin(setting).encode())
        self._memory: list[tuple[float, int]] = []
        self._peak_kib = 0

    @property
    def pid(self) -> int:
        # taskset executes the generator in its own process, so the process ID is that of the generator.
        return self._process.pid

    def finish(self) -> Finished:
        while not self._ends_within(PERIOD_S):
            at = time.monotonic() - self._begun
            if at > self._limit_s:
                raise Failed(f"still running after {self._limit_s:.0f} s: killed")
            now_kib, peak_kib = host.memory_kib(self.pid)
            if now_kib:
                self._memory.append((at, now_kib))
                self._peak_kib = peak_kib
        wall_s = time.monotonic() - self._begun
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        busy = host.cpu_busy_s(self._cpu) - self._busy_before
        if self._process.returncode not in self._entry.good_exits:
            raise Failed(f"exit {self._process.returncode}: {complaint(text(self._errors) or text(self._output))}")
        return Finished(
            self.command,
            wall_s,
            usage.ru_utime + usage.ru_stime,
            busy,
            self._peak(usage.ru_maxrss),
            text(self._output),
            self._memory,
        )

    def _ends_within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(1000 * seconds))

    def _peak(self, maxrss_kib: int) -> int:
        # The kernel's value for the peak memory of a child process is at least the memory of this program at the fork.
        # So for a smaller generator, the maximum of the periodic readings is used. The last reading may be PERIOD_S
        # old.
        own = host.memory_kib(os.getpid())[1]
        return max(self._peak_kib, maxrss_kib if maxrss_kib > own else 0)

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._pidfd)
        self._output.close()
        self._errors.close()


def environment(entry: Entry, setting: Setting) -> dict[str, str]:
    """The environment of a generator. Only brimful verifies the server's certificate."""
    kept = {name: value for name, value in os.environ.items() if name not in entry.without}
    return kept | ({"SSL_CERT_FILE": str(setting.authority)} if setting.authority else {})


def load(bench: Bench, case: Case, entry: Entry, seconds: int) -> dict:
    """The usual measurement: the cost per request, by the server's count."""
    return run_loaded(bench, case, entry, seconds)[1]


def growth(bench: Bench, case: Case, entry: Entry, seconds: int) -> dict:
    """The usual measurement over a long run, and the growth of its memory after the first tenth."""
    finished, run = run_loaded(bench, case, entry, seconds)
    slope, half_width = stats.slope([(at, kib) for at, kib in finished.memory if at > finished.wall_s / 10])
    run["values"] |= {
        "growth_kib_per_min": 60 * slope,
        "growth_low_kib_per_min": 60 * (slope - half_width),
        "growth_high_kib_per_min": 60 * (slope + half_width),
    }
    # Store only one reading per second.
    return run | {"memory_kib": [kib for _, kib in finished.memory][:: round(1 / PERIOD_S)]}


def run_loaded(bench: Bench, case: Case, entry: Entry, seconds: int) -> tuple[Finished, dict]:
    server = bench.start(case.server)
    try:
        before, attempts, ignored = server.counted(), host.connection_attempts(), host.ignored_attempts()
        finished = bench.run(entry, Setting(server.port, seconds + entry.extra_seconds, authority=server.authority))
        attempts, ignored = host.connection_attempts() - attempts, host.ignored_attempts() - ignored
        after = server.counted()
    finally:
        server.stop()
    requests = after.requests - before.requests
    values = cost(finished, requests) | {
        "connections": after.connections - before.connections,
        "attempts_per_s": attempts / finished.wall_s,
        "ignored_per_s": ignored / finished.wall_s,
        "overload_factor": attempts / finished.wall_s / SLOW_PER_SECOND,
    }
    return finished, {"command": finished.command, "values": values} | own_account(finished)


def arrival_lateness(bench: Bench, case: Case, entry: Entry, seconds: int) -> dict:
    """Lateness by the arrivals that the server recorded, and by the generator's own report if it has one."""
    seconds += entry.extra_seconds
    server = bench.start("stamp", room=round(case.rate * seconds * 1.2) + 1000)
    try:
        finished = bench.run(entry, Setting(server.port, seconds, authority=server.authority))
        requests = server.counted().requests
    finally:
        server.stop()
    seen = lateness.measure(bench.stamps, case.rate, entry.connections, seconds)
    if not seen:
        raise Failed(f"only {requests} requests arrived: too few to measure lateness")
    values, own = cost(finished, requests) | seen, own_account(finished)
    if "lateness_us" in own.get("own", {}):
        values |= {f"own_lateness_{p}_us": own["own"]["lateness_us"][p] for p in ("p50", "p99")}
    return {"command": finished.command, "values": values} | own


def memory_per_connection(bench: Bench, case: Case, entry: Entry, _seconds: int) -> dict:
    """Memory per open connection, from the difference between many connections and few."""
    few, many = (memory_with_connections_kib(bench, case, entry, number) for number in CONNECTIONS)
    return {
        "command": entry.argv(Setting(0, 0, CONNECTIONS[1])),
        "values": {
            "few_rss_kib": few,
            "many_rss_kib": many,
            "bytes_per_connection": (many - few) * 1024 / (CONNECTIONS[1] - CONNECTIONS[0]),
        },
    }


def memory_with_connections_kib(bench: Bench, case: Case, entry: Entry, number: int) -> int:
    """Resident memory with this number of open connections, after each has had its response."""
    server = bench.start(case.server)
    # A duration in which all connections can be opened and all responses received.
    setting = Setting(server.port, 3 * (HOLD_S + THINK_S), number)
    try:
        with Generator(bench, entry, setting) as generator:
            deadline = time.monotonic() + setting.seconds - 1
            while (counted := server.counted()).requests < number:
                if time.monotonic() > deadline:
                    raise Failed(
                        f"of {number} connections, {counted.connections} were made and {counted.requests} answered"
                    )
                time.sleep(0.02)
            if counted.connections < number:
                raise Failed(f"{counted.connections} connections were made instead of {number}")
            return host.memory_kib(generator.pid)[0]
    finally:
        server.stop()


def cost(finished: Finished, requests: int) -> dict:
    values = {
        "requests": requests,
        "requests_per_s": requests / finished.wall_s,
        "wall_s": finished.wall_s,
        "cpu_s": finished.cpu_s,
        "cpu_percent": 100 * finished.cpu_s / finished.wall_s,
        "others_percent": 100 * max(finished.core_busy_s - finished.cpu_s, 0) / finished.wall_s,
        "peak_rss_mib": finished.peak_rss_kib / 1024,
    }
    if requests:
        values["cpu_us_per_request"] = 1e6 * finished.cpu_s / requests
        values["core_us_per_request"] = 1e6 * finished.core_busy_s / requests
    return values


def own_account(finished: Finished) -> dict:
    """The generator's own report of its run: brimful's account, or the failed calls of zrk and gcannon. It is empty for
    generators whose report is not JSON."""
    try:
        record = json.loads(finished.output)
        if "errors" in record:
            return {"own": {"failed_calls": failed_calls(record)}}
        own = {
            "counts": {name: count for name, count in record["counts"].items() if count and name != "status"},
            "lateness_us": {name: record["lateness_us"][name] for name in ("p50", "p99", "max")},
            "engine": record["generator"]["engine"],
            "verdict": [reason["code"] for reason in record["verdict"]["reasons"]],
        }
    except (ValueError, KeyError, TypeError):
        return {}
    return {"own": own}


def failed_calls(record: dict) -> int:
    """The failed calls in the report of zrk or gcannon: errors, and responses with a status that is not 2xx.

    zrk counts those responses among its errors. gcannon counts them only by status.
    """
    unexpected = sum(count for status, count in record.get("status", {}).items() if status != "2xx")
    return sum(record["errors"].values()) + unexpected


def text(file: TextIO) -> str:
    file.seek(0)
    return file.read()


def complaint(output: str) -> str:
    """The line of an output that most likely says what went wrong: the first error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it printed nothing")
