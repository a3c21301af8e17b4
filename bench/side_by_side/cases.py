"""The cases, with the requirements on brimful."""

from . import measure
from .case import Case, Requirement
from .entry import (
    ab,
    brimful,
    brimful_as,
    gcannon,
    h2load,
    h2load_http2,
    hey,
    httperf,
    httperf_keep_alive,
    k6,
    oha,
    vegeta,
    wrk,
    wrk2,
    zrk,
    zrk_closed,
)

CPU = "cpu_us_per_request"
COST = (CPU, "core_us_per_request", "requests_per_s", "peak_rss_mib")
SEEN = (
    "lateness_p50_us",
    "lateness_p90_us",
    "lateness_p99_us",
    "lateness_p99.9_us",
    "lateness_max_us",
    "missing",
    "own_lateness_p50_us",
    "own_lateness_p99_us",
    "cpu_percent",
)
KEEP_ALIVE = (
    *brimful("--clients", "64"),
    wrk(64),
    h2load(64),
    httperf_keep_alive(64, 40_000),
    ab(64, "-k"),
    hey(64),
    oha(64),
    vegeta(0, 64),
    k6("closed.js", CLIENTS=64),
    zrk_closed(64),
    gcannon(64),
)
PIPELINED = (
    *brimful("--clients", "1024", "--pipeline", "16"),
    wrk(64, "-s", "pipeline.lua"),
    h2load(64, "-m16"),
    gcannon(64, "-p", "16"),
)
# HTTP/2 on 64 connections with 16 concurrent streams each.
STREAMS = (*brimful("--http", "2", "--clients", "1024", "--streams", "16"), h2load_http2(64, 16))
# Flags for more connection attempts than one CPU can make, so that the measured rate is the generator's maximum.
ATTEMPTS = ("--s-clients", "2000", "--connect-timeout", "20ms")
HTTPERF_ATTEMPTS = httperf(60_000, "--timeout=0.02")
# A header field that makes the server close the connection after the response. All generators send it.
CLOSE = "Connection: close"


def ratio(
    against: str, required: float | None, aim: float | None, metric: str = CPU, text: str = "CPU/request"
) -> Requirement:
    return Requirement(f"{text} vs {against}", metric, required, aim, against)


def lateness(rate: int, requirements: tuple[Requirement, ...]) -> Case:
    """A lateness case. Generators that need a number of connections get ten."""
    return Case(
        f"lateness-{rate // 1000}k",
        f"lateness at {rate:,}/s, seen from outside",
        "stamp",
        (
            *brimful("-R", str(rate)),
            wrk2(10, rate),
            vegeta(rate, 50),
            httperf(rate),
            h2load(10, rate=rate),
            oha(10, "-q", str(rate)),
            hey(1, "-q", str(rate)),
            k6("constant_rate.js", RATE=rate),
            zrk(10, rate),
        ),
        SEEN,
        ("lateness_p50_us", "lateness_p99_us"),
        requirements,
        rate=rate,
        measure=measure.arrival_lateness,
    )


CASES = (
    Case(
        "keep-alive-nginx",
        "keep-alive, 64 connections, nginx",
        "nginx",
        KEEP_ALIVE,
        COST,
        (CPU, "requests_per_s", "peak_rss_mib"),
        (ratio("wrk", 0.95, 0.85), ratio("h2load", 0.95, 0.85)),
        measure=measure.load,
    ),
    Case(
        "keep-alive-trivial",
        "keep-alive, 64 connections, trivial server",
        "trivial",
        KEEP_ALIVE,
        COST,
        (CPU, "requests_per_s", "peak_rss_mib"),
        (ratio("wrk", 0.88, 0.78),),
        measure=measure.load,
    ),
    Case(
        "large-body",
        "keep-alive, 64 connections, 1 MiB from nginx",
        "nginx-large",
        (*brimful("--clients", "64"), wrk(64), h2load(64), hey(64), oha(64), zrk_closed(64), gcannon(64)),
        COST,
        (CPU, "requests_per_s"),
        measure=measure.load,
    ),
    Case(
        "urls-100k",
        "keep-alive, 64 connections, nginx: 100,000 URLs by Zipf's law, beside one of them",
        "nginx",
        (
            *brimful("--clients", "64", "--workload", "urls_100k.toml"),
            brimful_as("one-url", "--clients", "64", "--workload", "one_url.toml"),
        ),
        COST,
        (CPU, "requests_per_s"),
        (ratio("one-url", 1.05, 1.02),),
        measure=measure.load,
    ),
    Case(
        "pipelined-trivial",
        "pipelined, 64 connections x 16, trivial server",
        "trivial",
        PIPELINED,
        COST,
        (CPU, "requests_per_s"),
        (ratio("wrk", 0.70, 0.58),),
        measure=measure.load,
    ),
    Case(
        "pipelined-nginx",
        "pipelined, 64 connections x 16, nginx",
        "nginx",
        PIPELINED,
        COST,
        (CPU, "requests_per_s"),
        (ratio("wrk", 1.1, 0.9),),
        measure=measure.load,
    ),
    Case(
        "new-connection",
        "a new connection per request, nginx",
        "nginx",
        (
            *brimful("--new-connection", "--close", "server", "--clients", "64"),
            wrk(64, "-H", CLOSE),
            # httperf cannot reach this rate, so it never waits between connections. The server counts the connections.
            httperf(20_000, "--timeout=5", f"--add-header={CLOSE}\\n"),
            ab(64),
            hey(64, "-disable-keepalive"),
            oha(64, "--disable-keepalive"),
            zrk_closed(64, "-H", CLOSE),
            # Without -r, gcannon sends a second request before the server closes the connection.
            gcannon(64, "-r", "1", "--raw", "close.http"),
        ),
        ("connections", *COST),
        (CPU, "requests_per_s"),
        (ratio("wrk", 0.85, 0.72), ratio("httperf", 0.65, 0.55)),
        measure=measure.load,
    ),
    Case(
        "tls-keep-alive",
        "TLS 1.3, keep-alive, 64 connections, nginx",
        "nginx-tls",
        (*brimful("--clients", "64"), wrk(64), h2load(64), hey(64), oha(64), zrk_closed(64)),
        COST,
        (CPU, "requests_per_s", "peak_rss_mib"),
        (ratio("wrk", 1.0, 0.85), ratio("h2load", 1.0, 0.85)),
        measure=measure.load,
    ),
    Case(
        "tls-handshake",
        "TLS 1.3, a full handshake per request, nginx",
        "nginx-tls",
        (
            *brimful("--new-connection", "--close", "server", "--clients", "64"),
            wrk(64, "-H", CLOSE),
            zrk_closed(64, "-H", CLOSE),
        ),
        ("connections", *COST),
        (CPU, "requests_per_s"),
        (ratio("wrk", 1.1, 0.9),),
        measure=measure.load,
    ),
    Case(
        "tls-resumed",
        "TLS 1.3, a resumed handshake per request, nginx (wrk makes full ones)",
        "nginx-tls",
        (*brimful("--new-connection", "--close", "server", "--clients", "64", "--tls-resume"), wrk(64, "-H", CLOSE)),
        ("connections", *COST),
        (CPU, "requests_per_s"),
        measure=measure.load,
    ),
    Case(
        "http2-tls",
        "HTTP/2 by TLS 1.3, 64 connections x 16 streams, nginx",
        "nginx-tls",
        STREAMS,
        COST,
        (CPU, "requests_per_s", "peak_rss_mib"),
        (ratio("h2load", 1.2, 0.9),),
        measure=measure.load,
    ),
    Case(
        "http2-clear",
        "HTTP/2 without TLS, 64 connections x 16 streams, nginx",
        "nginx-http2",
        STREAMS,
        COST,
        (CPU, "requests_per_s", "peak_rss_mib"),
        (ratio("h2load", 1.0, 0.8),),
        measure=measure.load,
    ),
    Case(
        "fixed-20k",
        "20,000/s at exact times, nginx",
        "nginx",
        (*brimful("-R", "20000"), wrk2(64, 20_000), h2load(64, rate=20_000), vegeta(20_000, 64), zrk(64, 20_000)),
        COST,
        (CPU,),
        (ratio("wrk2", 1.3, 1.0),),
        measure=measure.load,
    ),
    Case(
        "tick-20k",
        "20,000/s, what is due once a millisecond (--tick 1ms), nginx",
        "nginx",
        (*brimful("-R", "20000", "--tick", "1ms"), wrk2(64, 20_000), h2load(64, rate=20_000)),
        COST,
        (CPU,),
        (ratio("wrk2", None, 1.0),),
        measure=measure.load,
    ),
    lateness(
        1_000,
        (
            Requirement("own lateness, median, µs", "own_lateness_p50_us", 1),
            *(ratio(tool, 1, None, "lateness_p99_us", "p99") for tool in ("wrk2", "vegeta", "httperf")),
        ),
    ),
    lateness(
        10_000,
        tuple(
            ratio(tool, None, 1, "lateness_p99_us", "p99")
            for tool in ("wrk2", "vegeta", "httperf", "h2load", "oha", "hey", "k6")
        ),
    ),
    lateness(20_000, (ratio("wrk2", 0.25, None, "lateness_p99_us", "p99"),)),
    Case(
        "idle-1k",
        "CPU at 1,000/s, one connection per call for both",
        "trivial",
        (*brimful("-R", "1000", "--new-connection", "--close", "server"), httperf(1000, f"--add-header={CLOSE}\\n")),
        ("cpu_percent", CPU, "requests_per_s"),
        (CPU,),
        (ratio("httperf", 0.20, 0.10),),
        measure=measure.load,
    ),
    Case(
        "abandoned",
        "attempts abandoned after 20 ms at a full accept queue",
        "full",
        (*brimful(*ATTEMPTS), HTTPERF_ATTEMPTS),
        ("attempts_per_s", "ignored_per_s", "cpu_percent", "peak_rss_mib"),
        ("attempts_per_s",),
        (Requirement("abandoned attempts/s", "ignored_per_s", 40_000, 60_000, at_least=True),),
        measure=measure.load,
    ),
    Case(
        "overload",
        f"attempts on a server of {measure.SLOW_PER_SECOND} connections/s",
        "slow",
        (*brimful(*ATTEMPTS), HTTPERF_ATTEMPTS),
        ("overload_factor", "attempts_per_s", "requests_per_s", "cpu_percent"),
        ("overload_factor",),
        (Requirement("offered connections/s ÷ capacity", "overload_factor", 50, 300, at_least=True),),
        measure=measure.load,
    ),
    Case(
        "memory",
        "memory per open idle connection",
        "hold",
        brimful("--clients", "{connections}", "--think", f"{measure.THINK_S}s"),
        ("bytes_per_connection", "few_rss_kib", "many_rss_kib"),
        (),
        (Requirement("bytes per connection", "bytes_per_connection", 1536, 512),),
        measure=measure.memory_per_connection,
    ),
    Case(
        "sessions-10k",
        "10,000 sessions at once that think for 2 s between calls, nginx",
        "nginx",
        brimful("--workload", "sessions_10k.toml"),
        ("peak_rss_mib", "connections", CPU, "requests_per_s"),
        (),
        (Requirement("peak RSS, MiB", "peak_rss_mib", 64, 24),),
        measure=measure.load,
    ),
    Case(
        "growth",
        "memory over a long run of 20,000/s",
        "trivial",
        brimful("-R", "20000"),
        ("growth_kib_per_min", "growth_low_kib_per_min", "growth_high_kib_per_min", "peak_rss_mib"),
        (),
        (Requirement("growth above chance, KiB/min", "growth_low_kib_per_min", 0),),
        measure=measure.growth,
        long=True,
    ),
)
