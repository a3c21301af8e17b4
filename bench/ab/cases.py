"""The servers: those that are equal, and pairs with a small known difference."""

from dataclasses import dataclass

from ..accuracy.subjects import GZIP, SUBJECTS, Place, Subject, on_nginx

# A page of a size for which nginx's `sendfile` matters a little.
PAGE_BYTES = 100_000


@dataclass(frozen=True)
class Difference:
    """Two servers. `expected` is the true difference of the CPU time per request, or None if nobody knows it."""

    name: str
    a: Subject
    b: Subject
    expected: float | None = None


def equal() -> list[Difference]:
    """The same server twice."""
    return [Difference(subject.name, subject, subject, 0.0) for subject in SUBJECTS if subject.name in ("nginx-gzip", "node")]


def differences(brimful: str) -> list[Difference]:
    """The pairs for `brimful ab`."""
    return [
        Difference("sendfile", nginx("sendfile on", "sendfile on", "/tried/page.bin"),
                   nginx("sendfile off", "sendfile off", "/tried/page.bin")),
        Difference("gzip", gzip(5), gzip(6)),
        five_percent(brimful),
        Difference("one-percent", target(brimful, 200), target(brimful, 202), 0.01),
        Difference("node-equal", *2 * [next(subject for subject in SUBJECTS if subject.name == "node")], expected=0.0),
    ]  # fmt: skip


def five_percent(brimful: str) -> Difference:
    """The pair with which the power of `brimful compare` is measured."""
    return Difference("five-percent", target(brimful, 1000), target(brimful, 1050), 0.05)


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
