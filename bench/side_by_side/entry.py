"""The command lines of the generators."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

# The name that replaces `brimful` in the tables for an earlier version.
BEFORE = "before"


@dataclass(frozen=True)
class Setting:
    """The values that differ between runs of a case and appear in the command line."""

    port: int
    seconds: int
    connections: int = 0
    # Path of the certificate of a TLS server; None for a server without TLS.
    authority: Path | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.authority else 'http'}://127.0.0.1:{self.port}/"


@dataclass(frozen=True)
class Entry:
    """A generator as one case runs it: one row of the case's table."""

    tool: str
    argv: Callable[[Setting], list[str]]
    stdin: Callable[[Setting], str] | None = None
    # If each connection of the generator has a schedule of its own: the number of connections among which the rate is
    # divided equally. None if all connections follow one schedule.
    connections: int | None = None
    # Additional seconds that the generator runs to calibrate itself.
    extra_seconds: int = 0
    good_exits: tuple[int, ...] = (0,)
    # Environment variables that the generator does not get.
    without: tuple[str, ...] = ()
    # brimful's flags, with which the engine that brimful chooses is determined.
    flags: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        return self.argv(Setting(0, 1, 1))[0]


def brimful(*flags: str) -> tuple[Entry, ...]:
    """brimful with each engine. Exit code 4 says that the generator was the limit, which is intended here."""
    return tuple(brimful_with(engine, *flags) for engine in ("uring", "epoll"))


def brimful_with(engine: str, *flags: str) -> Entry:
    def argv(s: Setting) -> list[str]:
        given = [flag.format(connections=s.connections) for flag in flags]
        return ["brimful", "load", s.url, *given, "-d", f"{s.seconds}s", "--engine", engine, "--json", "--quiet"]

    return Entry(f"brimful-{engine}", argv, good_exits=(0, 4), flags=flags)


def brimful_as(tool: str, *flags: str) -> Entry:
    """brimful as a peer of itself, under another name, with `--engine auto`."""
    return replace(brimful_with("auto", *flags), tool=tool)


def earlier(entry: Entry, program: Path) -> Entry:
    """An earlier brimful binary with the same command line."""
    tool = entry.tool.replace("brimful", BEFORE)
    return replace(entry, tool=tool, argv=lambda s: [str(program), *entry.argv(s)[1:]])


def wrk(connections: int, *flags: str) -> Entry:
    return Entry("wrk", lambda s: ["wrk", "-t1", f"-c{connections}", f"-d{s.seconds}s", *flags, s.url])


def wrk2(connections: int, rate: int) -> Entry:
    """wrk2 calibrates for 10 s before it records anything, so its runs are 10 s longer."""
    return Entry(
        "wrk2",
        lambda s: ["wrk2", "-t1", f"-c{connections}", f"-R{rate}", f"-d{s.seconds}s", s.url],
        connections=connections,
        extra_seconds=10,
    )


def h2load(connections: int, *flags: str, rate: int | None = None) -> Entry:
    paced = [f"--rps={rate / connections:g}"] if rate else []
    return Entry(
        "h2load",
        lambda s: ["h2load", "--h1", "-t1", f"-c{connections}", f"-D{s.seconds}", *flags, *paced, s.url],
        connections=connections,
    )


def h2load_http2(connections: int, streams: int) -> Entry:
    """h2load with HTTP/2, negotiated by TLS, or by prior knowledge without TLS."""
    return Entry(
        "h2load",
        lambda s: ["h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{s.seconds}", s.url],
        connections=connections,
    )


def httperf(connections_per_s: int, *flags: str) -> Entry:
    """httperf with one call per connection: httperf can only set a rate of connections."""
    return Entry(
        "httperf",
        lambda s: [
            "httperf",
            "--hog",
            "--server=127.0.0.1",
            f"--port={s.port}",
            f"--rate={connections_per_s}",
            f"--num-conns={connections_per_s * s.seconds}",
            "--num-calls=1",
            *flags,
        ],
    )


def httperf_keep_alive(connections: int, calls_per_s: int) -> Entry:
    """httperf on kept-alive connections. It has no duration, so it gets the number of calls that fills the time."""
    return Entry(
        "httperf",
        lambda s: [
            "httperf",
            "--hog",
            "--server=127.0.0.1",
            f"--port={s.port}",
            f"--rate={100 * connections}",
            f"--num-conns={connections}",
            f"--num-calls={calls_per_s * s.seconds // connections}",
        ],
    )


def ab(connections: int, *flags: str) -> Entry:
    """ab ends after -t seconds or -n requests, so -n is set higher than it can reach."""
    return Entry(
        "ab", lambda s: ["ab", "-q", *flags, f"-c{connections}", f"-t{s.seconds}", f"-n{150_000 * s.seconds}", s.url]
    )


def hey(connections: int, *flags: str) -> Entry:
    return Entry("hey", lambda s: ["hey", "-z", f"{s.seconds}s", "-c", str(connections), *flags, s.url])


def oha(connections: int, *flags: str) -> Entry:
    return Entry("oha", lambda s: ["oha", "--no-tui", "-z", f"{s.seconds}s", "-c", str(connections), *flags, s.url])


def vegeta(rate: int, workers: int) -> Entry:
    """vegeta. A rate of 0 means as fast as the workers can."""
    return Entry(
        "vegeta",
        lambda s: [
            "vegeta",
            "attack",
            f"-rate={rate}",
            f"-workers={workers}",
            f"-max-workers={workers}",
            f"-duration={s.seconds}s",
            "-output=/dev/null",
        ],
        stdin=lambda s: f"GET {s.url}\n",
    )


def zrk(connections: int, rate: int, *flags: str) -> Entry:
    """zrk at a rate, which its connections share equally. Each connection has its own schedule. With `-k`, zrk accepts
    the server's self-signed certificate."""
    return Entry(
        "zrk",
        lambda s: [
            "zrk",
            "-t1",
            f"-c{connections}",
            f"-R{rate}",
            f"-d{s.seconds}s",
            *(["-k"] if s.authority else []),
            *flags,
            "--format",
            "json",
            s.url,
        ],
        connections=connections,
    )


def zrk_closed(connections: int, *flags: str) -> Entry:
    """zrk as fast as its connections can. zrk 1 has no closed loop, so it gets a rate that it cannot reach. A
    connection that is behind its schedule sends its next call when it has received the response."""
    return zrk(connections, 1_000_000, *flags)


def gcannon(connections: int, *flags: str) -> Entry:
    """gcannon. Without HOME it does not store its runs in the user's directory."""
    return Entry(
        "gcannon",
        lambda s: ["gcannon", s.url, "-t", "1", "-c", str(connections), "-d", f"{s.seconds}s", *flags, "--json"],
        without=("HOME",),
    )


def k6(script: str, **env: int) -> Entry:
    def argv(s: Setting) -> list[str]:
        pairs = {"URL": s.url, "SECONDS": s.seconds} | env
        given = [word for name, value in pairs.items() for word in ("-e", f"{name}={value}")]
        return ["k6", "run", "--quiet", "--no-usage-report", *given, script]

    return Entry("k6", argv)
