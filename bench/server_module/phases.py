"""Compares the sum of the module's phases with the servers' own request times: nginx's `$request_time`, Apache's `%D`.

nginx logs milliseconds of a clock that it reads once per event loop. So its requests are proxied to a server that takes
tens of milliseconds, and means are compared. Apache logs microseconds; its requests are for a small file.
"""

import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ..monitor.case import Case, Figure, Outcome
from ..monitor.stats import Estimate
from .bed import Bed
from .memory import PHASES, Counted

REQUESTS, QUICK_REQUESTS = 2000, 200
# Maximum permitted error: PERCENT of the logged time or MICROSECONDS, whichever is larger.
PERCENT, MICROSECONDS = 1.0, 50.0


class Slow(BaseHTTPRequestHandler):
    """Answers after 20 to 60 ms."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(random.uniform(0.02, 0.06))
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"slow\n")

    def log_message(self, *_: object) -> None:
        pass


def measure_nginx(bed: Bed) -> Outcome:
    behind = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=behind.serve_forever, daemon=True).start()
    try:
        extra = f"location /slow {{ proxy_pass http://127.0.0.1:{behind.server_port}; }}"
        return measure(bed, "nginx", "slow", extra, 100, lambda word: 1e6 * float(word))
    finally:
        behind.shutdown()
        behind.server_close()


def measure_apache(bed: Bed) -> Outcome:
    return measure(bed, "apache", "index.html", "", 500, float)


def measure(bed: Bed, kind: str, path: str, extra: str, rate: int, microseconds: object) -> Outcome:
    outcome = Outcome()
    number = QUICK_REQUESTS if bed.quick else REQUESTS
    with bed.server(kind, logs=True, extra=extra) as server:
        server.settled()
        before, lines = server.memory.counted(), server.lines()
        with bed.load(server.url + path, "--rate", rate, "--requests", number) as load:
            load.record()
        server.settled()
        counted = server.memory.counted() - before
        logged = [microseconds(line.split()[0]) for line in server.log.read_text().splitlines()[lines:]]
    by_log = sum(logged) / len(logged)
    by_module = sum(mean_us(counted).values())
    error_us = abs(by_module - by_log)
    # The error as a percentage of the logged time. If the logged time is short, it is replaced by a constant, so that
    # an error of MICROSECONDS counts as PERCENT.
    outcome.measured["off"] = Estimate.exact(100 * error_us / max(by_log, 100 * MICROSECONDS / PERCENT))
    outcome.table(
        f"{kind}: mean of {len(logged)} requests, µs",
        [*PHASES, "sum", "by the log", "difference"],
        [[f"{us:.1f}" for us in [*mean_us(counted).values(), by_module, by_log, error_us]]],
    )
    return outcome


def mean_us(counted: Counted) -> dict[str, float]:
    """The mean time of each phase over all requests, including requests without that phase."""
    sums = [sum(sums.phase_ns[i] for sums in counted.classes.values()) for i in range(len(PHASES))]
    return {phase: ns / 1000 / counted.requests for phase, ns in zip(PHASES, sums, strict=True)}


def case(kind: str, word: str, measure: object) -> Case:
    figure = Figure("off", "difference, in % of the logged time or of 5 ms if that is longer", "%", required=PERCENT)
    return Case(f"phases-{kind}", f"The sum of the phases beside {word}, {kind}", (figure,), measure)


NGINX = case("nginx", "$request_time", measure_nginx)
APACHE = case("apache", "%D", measure_apache)
