"""The connections of one port by state: by /proc/net/tcp, by sock_diag, and by gauges that an eBPF program keeps.

A network namespace has 10,000 sockets. All of them are connections of the port, or half of them if the clients are on
the same host. /proc/net/tcp costs the same in both cases; the cost of sock_diag depends on the connections that it
reports. A method that does not count all connections has no result.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

from ..figures.testbed import SERVER_ADDRESS, Host, TestbedError, testbed
from ..side_by_side.report import figure
from ..side_by_side.tools import Failed
from .bed import Bed, helper, note
from .case import Case, Figure, Outcome
from .clock import cpu_s, family
from .peers import NODE_EXPORTER
from .stats import Estimate
from .tools import missing

PORT = 8080
SOCKETS = 10_000
# Number of connections for which this host has SOCKETS sockets. If the clients run on the same host as the server, both
# sockets of a connection are on this host; otherwise only one is.
LAYOUTS = {"half": SOCKETS // 2, "all": SOCKETS}
WORDS = {"half": "clients on the same host", "all": "clients elsewhere"}
EXPORTER_PORT = 9100
SCRAPE = """import sys, time, urllib.request
url = "http://127.0.0.1:{port}/metrics?collect[]=tcpstat"
deadline = time.monotonic() + 10
while True:
    try:
        urllib.request.urlopen(url).read()
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.05)
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        urllib.request.urlopen(url).read()
    print("done", flush=True)
"""


def measure(bed: Bed) -> Outcome:
    rounds = 2 if bed.quick else 5
    outcome = Outcome()
    for layout, connections in LAYOUTS.items():
        note(f"states: {connections} connections, {WORDS[layout]}")
        with connected(bed, layout, connections) as server:
            ways = probe(bed, server, rounds)
            others = others_us(bed, server, rounds)
        judge(outcome, layout, ways, others)
    outcome.notes += [missing(tool) for tool in ("ss", "node_exporter") if not bed.programs.path(tool)]
    return outcome


@contextlib.contextmanager
def connected(bed: Bed, layout: str, connections: int) -> Iterator[Host]:
    """Opens the connections, and yields the server's host."""
    try:
        with testbed(bed.server_cpu, bed.generator_cpu) as (server, client):
            clients, address = (server, "127.0.0.1") if layout == "half" else (client, SERVER_ADDRESS)
            serving = start(server, helper("sockets.py", "serve", PORT, connections))
            expect(serving, "listening")
            connecting = start(clients, helper("sockets.py", "connect", address, PORT, connections))
            for process in (connecting, serving):
                expect(process, f"{connections} connections")
            yield server
            for process in (serving, connecting):
                process.stdin.close()
                process.wait()
                process.stdout.close()
    except TestbedError as error:
        raise Failed(str(error)) from None


def judge(outcome: Outcome, layout: str, ways: dict, others: dict[str, list[float]]) -> None:
    """Stores the cost of each method that counted all connections, relative to reading /proc/net/tcp."""
    outcome.raw[layout] = {"ways": ways, "others_us": others}
    table = ways["proc_net_tcp"]
    rows = [["read of /proc/net/tcp, from inside", micros(table["us"]), "1"]]
    for key, way, title in (
        ("plain", "sock_diag", "connections group by sock_diag, from inside"),
        ("ebpf", "gauges", "connections group by eBPF gauges, from inside"),
    ):
        found = ways[key]
        established = found["connections"].get("established")
        if established != LAYOUTS[layout]:
            outcome.notes.append(
                f"{way}, {layout}: counted {established} connections of {LAYOUTS[layout]}, so it has no result"
            )
        elif key == "ebpf" and not found["source"].startswith("eBPF"):
            outcome.notes.append(f"gauges: not in use here: {found['source']}")
        else:
            ratios = Estimate.spread([middle(table["us"]) / us for us in found["us"]])
            outcome.measured[f"{way}-{layout}"] = ratios
            rows.append([title, micros(found["us"]), figure(ratios.value)])
    for tool, us in others.items():
        rows.append([f"{tool}, whole process", micros(us), figure(middle(table["us"]) / middle(us))])
    title = f"CPU µs to count {LAYOUTS[layout]} connections of one port, {SOCKETS} sockets, {WORDS[layout]}"
    outcome.table(f"{title}: median (least–greatest)", ["", "µs", "cheaper by"], rows)


def probe(bed: Bed, server: Host, rounds: int) -> dict:
    """The three methods, timed by the thread's CPU clock inside the server's namespace."""
    command = [bed.program("probe"), "states", "--port", str(PORT), "--rounds", str(rounds)]
    process = server.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    printed, errors = process.communicate(timeout=600)
    if process.returncode:
        raise Failed(errors.strip())
    return json.loads(printed)


def others_us(bed: Bed, server: Host, rounds: int) -> dict[str, list[float]]:
    """CPU time of `ss` and node_exporter for the same count."""
    found = {}
    if path := bed.programs.path("ss"):
        command = helper("account.py", path, "-tanH", f"( sport = :{PORT} )")
        runs = [server.start(command, stdout=subprocess.PIPE, text=True).communicate()[0] for _ in range(rounds)]
        found["ss -tan '( sport = :P )'"] = [json.loads(printed)["cpu_us"] for printed in runs]
    if path := bed.programs.path("node_exporter"):
        found["node_exporter, a scrape of tcpstat"] = scrapes_us(server, path, rounds)
    return found


def scrapes_us(server: Host, path: str, rounds: int) -> list[float]:
    listen = f"--web.listen-address=127.0.0.1:{EXPORTER_PORT}"
    exporter = server.start([path, listen, *NODE_EXPORTER], stderr=subprocess.DEVNULL)
    asking = start(server, [sys.executable, "-c", SCRAPE.format(port=EXPORTER_PORT)])
    try:
        expect(asking, "ready")
        found = []
        for _ in range(rounds):
            # `family` also includes the waiting process nsenter, which uses no CPU time.
            before = cpu_s(family(exporter.pid))
            print(1, file=asking.stdin, flush=True)
            expect(asking, "done")
            found.append(1e6 * (cpu_s(family(exporter.pid)) - before))
        return found
    finally:
        asking.stdin.close()
        asking.wait()
        asking.stdout.close()
        for pid in reversed(family(exporter.pid)[1:]):
            os.kill(pid, signal.SIGTERM)
        exporter.wait()


def start(host: Host, command: list[str]) -> subprocess.Popen:
    return host.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def expect(process: subprocess.Popen, line: str) -> None:
    """Raises Failed unless the next line of the process is this one."""
    if (printed := process.stdout.readline().strip()) != line:
        raise Failed(f"{process.args[-4:]} printed {printed!r} instead of {line!r}")


def middle(values: list[float]) -> float:
    return Estimate.spread(values).value


def micros(values: list[float]) -> str:
    return str(Estimate.spread(values))


CASE = Case(
    "states",
    f"Connections by state on one port, {SOCKETS} sockets, against reading /proc/net/tcp",
    (
        Figure("sock_diag-half", f"sock_diag, {WORDS['half']}", "× cheaper", 4, at_least=True),
        Figure("sock_diag-all", f"sock_diag, {WORDS['all']}", "× cheaper", 4, at_least=True),
        Figure("gauges-half", f"gauges, {WORDS['half']}", "× cheaper", aim=1000, at_least=True),
        Figure("gauges-all", f"gauges, {WORDS['all']}", "× cheaper", aim=1000, at_least=True),
    ),
    measure,
)
