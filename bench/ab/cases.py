"""The pairs of servers: equal ones, ones with a known difference, and ones that differ by a setting."""

from dataclasses import dataclass

from ..accuracy.subjects import GZIP, SUBJECTS, Place, Subject, on_nginx

# Size of the page that nginx sends with and without `sendfile`.
PAGE_BYTES = 100_000


@dataclass(frozen=True)
class Pair:
    """Two servers. `expected` is the true difference of the CPU time per request, or None if it is unknown."""

    name: str
    a: Subject
    b: Subject
    expected: float | None = None


def equal() -> list[Pair]:
    """The same server twice."""
    subjects = [subject for subject in SUBJECTS if subject.name in ("nginx-gzip", "node")]
    return [Pair(subject.name, subject, subject, 0.0) for subject in subjects]


def differences(brimful: str) -> list[Pair]:
    """The pairs for `brimful ab`."""
    return [
        Pair("sendfile", nginx("sendfile on", "sendfile on", "/tried/page.bin"),
                   nginx("sendfile off", "sendfile off", "/tried/page.bin")),
        Pair("gzip", gzip(5), gzip(6)),
        five_percent(brimful),
        Pair("one-percent", target(brimful, 200), target(brimful, 202), 0.01),
        Pair("node-equal", *2 * [next(subject for subject in SUBJECTS if subject.name == "node")], expected=0.0),
    ]  # fmt: skip


def five_percent(brimful: str) -> Pair:
    """The pair with which the power of `brimful compare` is measured."""
    return Pair("five-percent", target(brimful, 1000), target(brimful, 1050), 0.05)


def target(brimful: str, service_us: int) -> Subject:
    """The reference server, which uses this CPU time for each request, in addition to the system's."""

    def commands(place: Place) -> list[list[str]]:
        listen = ["--listen", f"127.0.0.1:{place.port}"]
        return [[brimful, "target", *listen, "--service", f"page={service_us}us/1KiB"]]

    return Subject(f"target-{service_us}", f"the reference server, {service_us} µs", (), commands, "/page")


def nginx(title: str, directives: str, path: str, headers: tuple[str, ...] = ()) -> Subject:
    """nginx with these directives for the location /tried/."""

    def commands(place: Place) -> list[list[str]]:
        started = on_nginx(place, f"location /tried/ {{ alias {place.directory}/www/; {directives}; }}")
        (place.directory / "www" / "page.bin").write_bytes(bytes(PAGE_BYTES))
        return started

    return Subject(title, f"nginx, {title}", ("nginx",), commands, path, headers)


def gzip(level: int) -> Subject:
    directives = f"gzip on; gzip_types text/plain; gzip_comp_level {level}"
    return nginx(f"gzip level {level}", directives, "/tried/text.txt", GZIP)
