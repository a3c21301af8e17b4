"""The measurements of each figure: the servers, the loads and the rows of its table."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from . import hosts, syncost
from .measure import SPARE_S, fitted, point
from .servers import Apache, Target
from .testbed import SOURCES
from .wide import SOURCES as WIDE_SOURCES

# The server of Banga & Druschel (1997): 130 requests/s, and responses of 1294 bytes. Figures 5 and 6 do not depend on
# the length of the listen queue, so it is short and fills sooner. Figures 7 and 8 have the paper's length of 1024
# (`Plan.queue`): in the paper, bursts of 5 s and longer filled this queue.
CAPACITY, SIZE, BACKLOG, PROCESSES = 130, 1294, 128, 8
# Each request does a fixed amount of work. If it used a fixed amount of CPU time instead, the cost of SYNs would be
# invisible: the kernel charges the time of an interrupt to the interrupted thread, so the reference server would count
# it as its own CPU time.
DEMAND = "work:7.6ms"
ATTEMPT = "500ms"
# Number of S-Clients in Figure 8. It exceeds the highest rate of a burst (6 · 125/s) times the timeout of an attempt,
# so that an S-Client is always free.
BURST_CLIENTS = 1000
# The server of Mosberger & Jin (1998), from the title of their figure: queue=32 procs=32 timeout=1s, 1 KB, saturated at
# 800 calls/s.
CAPACITY_1998, SIZE_1998, BACKLOG_1998, PROCESSES_1998 = 800, 1024, 32, 32
DEMAND_1998 = "work:1.15ms"
# Pairs (a, b) as in Figure 8: for b % of the time, the rate is a times the mean. The paper's text names (6, 5). The
# other pairs have half of that a, twice that b, or both.
BURSTS = [(3, 5), (6, 5), (3, 10), (6, 10)]
# By default, Linux repeats a SYN four times, one second apart, and only then doubles the interval each time. With the
# value 0, Linux doubles the interval from the first repetition on.
DOUBLING = {"net.ipv4.tcp_syn_linear_timeouts": 0}

# Delays and losses of a wide-area network between clients and server. The paper did not measure with such a network
# (§4.2). The router of the test bed, as in the paper's Figure 3, causes the delays and losses.
WIDE = {
    "no delay": ("--rtt", "0ms"),
    "RTT 100 ms": ("--rtt", "100ms"),
    "RTT 200 ms": ("--rtt", "200ms"),
    "RTT 200 ms, 2 % loss": ("--rtt", "200ms", "--loss", "2%"),
}


@dataclass(frozen=True)
class Plan:
    """The points to measure and their durations in seconds."""

    clients: tuple
    clients_doubling: tuple
    descriptors: tuple
    descriptors_wide: tuple
    means: tuple
    queue: int
    period: float
    periods: int
    offered: tuple
    host_rates: tuple
    syn_rates: tuple
    warm_up: float
    window: float
    fit: float


FULL = Plan(
    clients=(1, 8, 32, 64, 128, 192, 256, 384, 512, 768, 1024),
    clients_doubling=(256, 512, 1024),
    descriptors=(1, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768),
    descriptors_wide=(16, 64, 256, 512, 1024, 2048),
    means=(50, 75, 100, 125),
    queue=1024,
    period=100,
    periods=3,
    offered=(100, 200, 400, 600, 700, 800, 900, 1200, 1600, 2000),
    host_rates=(500, 1_000, 2_000, 4_000, 8_000, 12_000, 16_000, 24_000, 32_000),
    syn_rates=(5_000, 20_000, 40_000),
    warm_up=10,
    window=20,
    fit=3,
)
QUICK = Plan(
    clients=(16, 256, 1024),
    clients_doubling=(),
    descriptors=(64, 1024, 16384),
    descriptors_wide=(64, 1024),
    means=(100,),
    queue=32,
    period=3,
    periods=1,
    offered=(400, 800, 1600),
    host_rates=(200, 1_000),
    syn_rates=(20_000,),
    warm_up=1.5,
    window=2,
    fit=1,
)


@dataclass(frozen=True)
class Table:
    """One table: its title, the general form of the load's command line, and the function that measures its rows."""

    title: str
    load: str
    rows: Callable
    servers: str


class Servers:
    """The servers of both papers. Apache is fitted to a paper's capacity when that paper's servers are first needed."""

    def __init__(self, lab, plan):
        self.lab = lab
        self.plan = plan
        self._fitted = {"nginx": [hosts.Nginx(SIZE)]}

    def like_paper(self, which):
        """Apache and the target with the capacity of the server in a paper: of 1997, of 1997 with its long queue, or of
        1998."""
        if which not in self._fitted:
            say(f"fitting apache to the capacity of {which}")
            capacity, apache, demand = {
                "1997": (CAPACITY, Apache(PROCESSES, BACKLOG, SIZE), DEMAND),
                "1997, its queue": (CAPACITY, Apache(PROCESSES, self.plan.queue, SIZE), DEMAND),
                "1998": (CAPACITY_1998, Apache(PROCESSES_1998, BACKLOG_1998, SIZE_1998), DEMAND_1998),
            }[which]
            target = Target(self.lab.brimful, demand, apache.backlog, apache.size)
            self._fitted[which] = [fitted(self.lab, apache, capacity, self.plan.fit), target]
        return self._fitted[which]


def fig5(lab, plan, servers):
    """Request rate against simple clients, which wait for their response while the kernel repeats their SYNs."""
    for server in servers:
        runs = [(lab, "1 s apart at first", n) for n in plan.clients]
        runs += [(replace(lab, client_sysctls=DOUBLING), "doubling", n) for n in plan.clients_doubling]
        for lab_of_run, series, clients in runs:
            say(f"{server.name}: {clients} simple clients, SYNs repeated {series}")
            load = ["--clients", clients, "--new-connection", "--timeout", "60s"]
            row, _ = point(lab_of_run, server, load, plan.warm_up, plan.window)
            yield {"server": server.name, "series": series, "clients": clients} | row


def fig6_7(lab, plan, servers):
    """Request rate and throughput against the descriptors D of S-Clients."""
    for server in servers:
        for descriptors in plan.descriptors:
            say(f"{server.name}: S-Clients with {descriptors} descriptors")
            load = ["--s-clients", descriptors, "--connect-timeout", ATTEMPT, "--source-ip", SOURCES]
            row, record = point(lab, server, load, plan.warm_up, plan.window)
            row["established"] = record["rates"]["established"]
            yield {"server": server.name, "descriptors": descriptors} | row


def fig8(lab, plan, servers):
    """Throughput under bursts against the mean rate."""
    seconds = plan.period * plan.periods
    for server in servers:
        for height, percent in BURSTS:
            for mean in plan.means:
                say(f"{server.name}: mean {mean}/s in bursts ({height}, {percent})")
                bursts = f"onoff:{height},{percent / 100},{plan.period:g}s"
                load = ["--s-clients", BURST_CLIENTS, "--connect-timeout", ATTEMPT, "-R", mean, "--arrivals", bursts]
                row, record = point(lab, server, load, 0, seconds, lasting=seconds)
                row["replies"] = record["counts"]["completed"] / seconds
                row["errors"] = errors(record)
                row["expected"] = fluid(server, mean, height, percent / 100, plan.period)
                yield {"server": server.name, "burst": f"({height}, {percent})", "offered": mean} | row


def wide(lab, plan, servers):
    """Throughput against the descriptors of S-Clients, with the delays and losses of a wide area."""
    for server in servers:
        for series, flags in WIDE.items():
            for descriptors in plan.descriptors_wide:
                say(f"{server.name}: {series}, S-Clients with {descriptors} descriptors")
                load = ["--s-clients", descriptors, "--connect-timeout", ATTEMPT, "--source-ip", WIDE_SOURCES]
                row, record = point(replace(lab, wide=flags), server, load, plan.warm_up, plan.window)
                row["established"] = record["rates"]["established"]
                yield {"server": server.name, "series": series, "descriptors": descriptors} | row


def httperf_fig2(lab, plan, servers):
    """Reply rate, errors and response time against the offered rate."""
    for server in servers:
        for rate in plan.offered:
            say(f"{server.name}: {rate} calls/s offered")
            load = ["-R", rate, "--new-connection", "--connect-timeout", "1s", "--timeout", "1s"]
            row, record = point(
                lab, server, load, plan.warm_up, plan.window, lasting=plan.warm_up + plan.window + SPARE_S
            )
            row["errors"] = errors(record)
            for name, key in (
                ("connect", "connect_time_us"),
                ("response", "first_byte_us"),
                ("total", "response_time_us"),
            ):
                row[name] = record[key] and record[key]["mean"] / 1000
            yield {"server": server.name, "offered": rate} | row


def client_hosts(lab, plan, servers):
    """Throughput against the request rate of one client host, and of two."""
    return hosts.rows(lab, servers[0], lab.client_cpus, plan.host_rates, plan.warm_up, plan.window, say)


def syn_cost(lab, plan, _servers):
    """The CPU time of a dropped SYN against the rate of SYNs."""
    return syncost.rows(lab, plan.syn_rates, plan.window, say)


TABLES = {
    "fig5": Table(
        "Banga & Druschel 1997, Figure 5: request rate against simple clients",
        "--clients CLIENTS --new-connection --timeout 60s",
        fig5,
        "1997",
    ),
    "fig6-7": Table(
        "Banga & Druschel 1997, Figures 6 and 7: request rate and throughput against the descriptors of S-Clients",
        f"--s-clients DESCRIPTORS --connect-timeout {ATTEMPT} --source-ip {SOURCES}",
        fig6_7,
        "1997, its queue",
    ),
    "fig8": Table(
        "Banga & Druschel 1997, Figure 8: throughput under bursts (a, b) against the mean request rate",
        f"--s-clients {BURST_CLIENTS} --connect-timeout {ATTEMPT} -R OFFERED --arrivals onoff:A,B,{{period:g}}s",
        fig8,
        "1997, its queue",
    ),
    "httperf-fig2": Table(
        "Mosberger & Jin 1998, Figure 2: reply rate, errors and times against the offered rate",
        "-R OFFERED --new-connection --connect-timeout 1s --timeout 1s",
        httperf_fig2,
        "1998",
    ),
    "wide": Table(
        "Throughput against the request rate with the delays and losses of a wide area (Banga & Druschel 1997, §4.2)",
        f"--s-clients DESCRIPTORS --connect-timeout {ATTEMPT} --source-ip {WIDE_SOURCES}",
        wide,
        "1997",
    ),
    "client-hosts": Table(
        "Throughput against the request rate of one client host and of two, at nginx (Banga & Druschel 1997, §4.3)",
        f"--s-clients RATE×{hosts.ATTEMPT_S:g}s --connect-timeout {hosts.ATTEMPT_S:g}s -R RATE [--shard I/2]",
        client_hosts,
        "nginx",
    ),
    "syn-cost": Table(
        "CPU time per SYN that is dropped at a full accept queue (Banga & Druschel 1997, §5.3: 325 µs)",
        "-R SYN " + " ".join(syncost.FLOOD),
        syn_cost,
        "",
    ),
}


def errors(record):
    """Percentage of the scheduled calls that got no complete response."""
    counts = record["counts"]
    return 100 * (1 - counts["completed"] / counts["scheduled"])


def fluid(server, mean, height, share, period):
    """Replies per second in a fluid model, where a burst loses only what exceeds the capacity and the queue."""
    excess = max(0, height * mean - CAPACITY) * share * period
    return mean - max(0, excess - server.room()) / period


def say(what):
    print(what, file=sys.stderr, flush=True)
