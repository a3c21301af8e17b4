"""A generator as one case runs it: its command line and its properties."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path


# What an earlier brimful is called in the tables.
BEFORE = "before"


@dataclass(frozen=True)
class Setting:
    """What a command line depends on. Everything else is the same in every run of a case."""

    port: int
    seconds: int
    connections: int = 0
    # The certificate that vouches for a server by TLS.
    authority: Path | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.authority else 'http'}://127.0.0.1:{self.port}/"


@dataclass(frozen=True)
class Entry:
    """One row of a case's table."""

    tool: str
    argv: Callable[[Setting], list[str]]
    stdin: Callable[[Setting], str] | None = None
    # Where the rate is spread over connections, each with a schedule of its own: how many.
    connections: int | None = None
    # How much longer than the others it must run to do the same.
    extra_seconds: int = 0
    good_exits: tuple[int, ...] = (0,)
    # brimful's flags, from which its own choice of engine is asked.
    flags: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        return self.argv(Setting(0, 1, 1))[0]


def brimful(*flags: str) -> tuple[Entry, ...]:
    """Both engines. Exit code 4 says that the generator was the limit, which here is the intention."""
    return tuple(brimful_with(engine, *flags) for engine in ("uring", "epoll"))


def brimful_with(engine: str, *flags: str) -> Entry:
    def argv(s: Setting) -> list[str]:
        given = [flag.format(connections=s.connections) for flag in flags]
        return ["brimful", "load", s.url, *given, "-d", f"{s.seconds}s", "--engine", engine, "--json", "--quiet"]

    return Entry(f"brimful-{engine}", argv, good_exits=(0, 4), flags=flags)


def brimful_as(tool: str, *flags: str) -> Entry:
    """brimful in the place of a peer, under another name, with the engine of its own choice."""
    return replace(brimful_with("auto", *flags), tool=tool)


def earlier(entry: Entry, program: Path) -> Entry:
    """brimful as it was: another binary, with the same command line."""
    tool = entry.tool.replace("brimful", BEFORE)
    return replace(entry, tool=tool, argv=lambda s: [str(program), *entry.argv(s)[1:]])


def wrk(connections: int, *flags: str) -> Entry:
    return Entry("wrk", lambda s: ["wrk", "-t1", f"-c{connections}", f"-d{s.seconds}s", *flags, s.url])


def wrk2(connections: int, rate: int) -> Entry:
    """It calibrates for 10 s before it records anything; a run shorter than that would be of another program."""
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
    """HTTP/2, agreed on by TLS, or by prior knowledge where there is none."""
    return Entry(
        "h2load",
        lambda s: ["h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{s.seconds}", s.url],
        connections=connections,
    )


def httperf(connections_per_s: int, *flags: str) -> Entry:
    """One call on each connection: only connections have a rate in httperf."""
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
    """It has no duration: as many calls as it is likely to make in the time."""
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
    """It ends after -t seconds; -n, which it takes room for, must be more than it can reach by then."""
    return Entry(
        "ab", lambda s: ["ab", "-q", *flags, f"-c{connections}", f"-t{s.seconds}", f"-n{150_000 * s.seconds}", s.url]
    )


def hey(connections: int, *flags: str) -> Entry:
    return Entry("hey", lambda s: ["hey", "-z", f"{s.seconds}s", "-c", str(connections), *flags, s.url])


def oha(connections: int, *flags: str) -> Entry:
    return Entry("oha", lambda s: ["oha", "--no-tui", "-z", f"{s.seconds}s", "-c", str(connections), *flags, s.url])


def vegeta(rate: int, workers: int) -> Entry:
    """A rate of 0 is as fast as the workers can."""
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


def k6(script: str, **env: int) -> Entry:
    def argv(s: Setting) -> list[str]:
        pairs = {"URL": s.url, "SECONDS": s.seconds} | env
        given = [word for name, value in pairs.items() for word in ("-e", f"{name}={value}")]
        return ["k6", "run", "--quiet", "--no-usage-report", *given, script]

    return Entry("k6", argv)
