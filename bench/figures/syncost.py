"""The cost of a dropped SYN in CPU time of the server.

Two estimates, made while only SYNs arrive at a full accept queue:

- by work: a process that only spins on the server's CPU counts its rounds. The rounds lost, compared with the quiet
  stretches just before and after, divided by the SYNs, are the whole cost of a SYN: interrupt, receive work, caches.
- by softirq: the CPU's softirq time in /proc/stat, less the softirq time of the quiet stretches. The spinner also keeps
  the clock tick running: the softirq time of an idle CPU would not be counted.

A third estimate comes from throughput: the slope of Figure 7, as in Banga & Druschel §5.3. If each SYN without a reply
costs c seconds of the CPU and each reply 1/X0, the throughput is X = X0·(1 − c·S), where S is the rate of such SYNs.
"""

import itertools
import subprocess
import sys
import time
from dataclasses import replace

from .counters import between, snapshot
from .measure import SPARE_S, finish, listening, verdict
from .servers import NeverAccepting

BACKLOG = 128
SPIN = """import time
rounds = 0
with open({path!r}, "w", buffering=1) as out:
    while True:
        sum(range(50_000))
        rounds += 1
        print(time.monotonic_ns(), rounds, file=out)
"""
# Flags of the load that fills the accept queue. After the timeouts, the client's sockets are closed, but the
# connections stay in the accept queue.
FILL = ["-R", 1000, "--new-connection", "--connect-timeout", "50ms", "--timeout", "50ms"]
# Flags of the load of SYNs. The timeout is shorter than the time to the first repeated SYN, and limits the number of
# ports in use.
FLOOD = ["--new-connection", "--connect-timeout", "100ms"]
SETTLE_S = 1


def rows(lab, rates, seconds, say):
    """One row per rate and setting: with SYN cookies, without them, and without packet steering."""
    for series, lab_of_series in (
        ("tcp_syncookies=1", lab),
        ("tcp_syncookies=0", replace(lab, server_sysctls={"net.ipv4.tcp_syncookies": 0})),
        ("not steered", replace(lab, steered=False)),
    ):
        with lab_of_series.bed() as (server, client):
            listening(NeverAccepting(BACKLOG).start(server), server)
            finish(client.start(lab.load(FILL, 0.5), stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            server.start([sys.executable, "-c", SPIN.format(path=str(server.write("spins", "")))])
            time.sleep(SETTLE_S)
            stretches, verdicts = [stretch(server, client, seconds)], []
            for rate in rates:
                say(f"full accept queue, {series}: {rate} SYN/s")
                load = lab.load(["-R", rate, *FLOOD], SETTLE_S + seconds + SPARE_S)
                generator = client.start(load, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(SETTLE_S)
                stretches.append(stretch(server, client, seconds))
                verdicts.append(verdict(finish(generator)))
                stretches.append(stretch(server, client, seconds))
            # Wait until the spinner has finished the round that was in progress at the last snapshot.
            time.sleep(SETTLE_S)
            samples = read_spins(server.outside("spins").read_text())
        found = [
            between(*pair, lab.server_cpu, lab.client_cpu) | {"rounds": rounds(samples, *pair)} for pair in stretches
        ]
        # Compare each interval with SYNs with the intervals without SYNs before and after it.
        for before, during, after, valid in zip(found[::2], found[1::2], found[2::2], verdicts):
            yield {"series": series} | during | costs(before, during, after) | {"valid": valid}


def stretch(server, client, seconds):
    """Two snapshots, this number of seconds apart."""
    first = snapshot(server.pid, client.pid)
    time.sleep(seconds)
    return first, snapshot(server.pid, client.pid)


def costs(before, during, after):
    """Both estimates of the CPU time per SYN, in microseconds, from the stretch with SYNs and the two around it."""
    rounds, softirq = ((before[name] + after[name]) / 2 for name in ("rounds", "server_softirq"))
    work = during["rounds"] / rounds
    return {
        "work": work,
        "cost_by_work": 1e6 * (1 - work) / during["syn"],
        "cost_by_softirq": 1e6 * (during["server_softirq"] - softirq) / during["syn"],
    }


def read_spins(text):
    """(nanoseconds, rounds so far) for every round. The last line is ignored, since it may be incomplete."""
    return [tuple(map(int, line.split())) for line in text.splitlines()[:-1]]


def rounds(samples, first, last):
    """Rounds per second between two snapshots."""
    return (rounds_at(samples, last.at_ns) - rounds_at(samples, first.at_ns)) / (last.at_ns - first.at_ns) * 1e9


def rounds_at(samples, at_ns):
    """Rounds completed at an instant, interpolated."""
    for (t0, n0), (t1, n1) in itertools.pairwise(samples):
        if t0 <= at_ns <= t1:
            return n0 + (n1 - n0) * (at_ns - t0) / (t1 - t0)
    raise ValueError("the spinner was not running at that time")


def slope_of_ends(points):
    """The cost of a SYN in microseconds by the method of Banga & Druschel §5.3: the relative fall of the throughput
    from the first to the last point (SYN/s, replies/s), per SYN/s between them."""
    (first_s, first_x), (last_s, last_x) = points[0], points[-1]
    return 1e6 * (first_x - last_x) / first_x / (last_s - first_s)


def slope(points):
    """(X0, c) of X = X0·(1 − c·S) through points (S, X), by least squares; c in microseconds."""
    n = len(points)
    mean_s, mean_x = sum(s for s, _ in points) / n, sum(x for _, x in points) / n
    b = sum((s - mean_s) * (x - mean_x) for s, x in points) / sum((s - mean_s) ** 2 for s, _ in points)
    x0 = mean_x - b * mean_s
    return x0, -1e6 * b / x0
