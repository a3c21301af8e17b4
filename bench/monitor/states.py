"""The connections of one port by state: reading /proc/net/tcp, asking sock_diag, and gauges that the kernel keeps.

The server is in a network namespace of its own with 10,000 connections and nothing else; its clients are in another, so
that the server's namespace has their sockets once. Every way is to count the same, or it does not count.
"""

import json
import os
import signal
import subprocess
import sys

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
CONNECTIONS = 10_000
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
    note(f"states: {CONNECTIONS} connections")
    try:
        with testbed(bed.server_cpu, bed.generator_cpu) as (server, client):
            serving = start(server, helper("sockets.py", "serve", PORT, CONNECTIONS))
            expect(serving, "listening")
            connecting = start(client, helper("sockets.py", "connect", SERVER_ADDRESS, PORT, CONNECTIONS))
            expect(connecting, f"{CONNECTIONS} connections")
            expect(serving, f"{CONNECTIONS + 1} connections")
            ways = probe(bed, server, rounds)
            others = others_us(bed, server, rounds)
            for process in (serving, connecting):
                process.stdin.close()
                process.wait()
                process.stdout.close()
    except TestbedError as error:
        raise Failed(str(error)) from None
    return judged(ways, others)


def judged(ways: dict, others: dict[str, list[float]]) -> Outcome:
    """The ratios to /proc/net/tcp, of those ways that counted all connections."""
    outcome = Outcome(raw={"ways": ways, "others_us": others})
    table = ways["proc_net_tcp"]
    rows = [["read of /proc/net/tcp, from inside", micros(table["us"]), "1"]]
    for key, way, title in (
        ("plain", "sock_diag", "connections group by sock_diag, from inside"),
        ("ebpf", "gauges", "connections group by eBPF gauges, from inside"),
    ):
        found = ways[key]
        established = found["connections"].get("established")
        if established != CONNECTIONS:
            outcome.notes.append(f"{way}: counted {established} connections of {CONNECTIONS}, so its time is no answer")
        elif key == "ebpf" and not found["source"].startswith("eBPF"):
            outcome.notes.append(f"gauges: not in use here: {found['source']}")
        else:
            ratios = [middle(table["us"]) / us for us in found["us"]]
            outcome.measured[way] = Estimate.spread(ratios)
            rows.append([title, micros(found["us"]), figure(outcome.measured[way].value)])
    rows += [
        [f"{tool}, whole process", micros(us), figure(middle(table["us"]) / middle(us))] for tool, us in others.items()
    ]
    outcome.table(
        f"CPU µs to count {CONNECTIONS} connections of one port by state, median (least–greatest)",
        ["", "µs", "cheaper by"],
        rows,
    )
    outcome.notes += [missing(tool) for tool in ("ss", "node_exporter") if not any(tool in other for other in others)]
    return outcome


def probe(bed: Bed, server: Host, rounds: int) -> dict:
    """The three ways, timed by the thread's clock inside the server's namespace."""
    command = [bed.program("probe"), "states", "--port", str(PORT), "--rounds", str(rounds)]
    process = server.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    printed, complaints = process.communicate(timeout=600)
    if process.returncode:
        raise Failed(complaints.strip())
    return json.loads(printed)


def others_us(bed: Bed, server: Host, rounds: int) -> dict[str, list[float]]:
    """CPU time of what people would use."""
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
            # nsenter waits in front of it, and costs nothing meanwhile.
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
    if (said := process.stdout.readline().strip()) != line:
        raise Failed(f"{process.args[-4:]} said {said!r} instead of {line!r}")


def middle(values: list[float]) -> float:
    return Estimate.spread(values).value


def micros(values: list[float]) -> str:
    return str(Estimate.spread(values))


CASE = Case(
    "states",
    "Connections by state on one port",
    (
        Figure("sock_diag", f"sock_diag, {CONNECTIONS} sockets, against /proc/net/tcp", "× cheaper", 4, at_least=True),
        Figure("gauges", "gauges, against /proc/net/tcp", "× cheaper", aim=1000, at_least=True),
    ),
    measure,
)
