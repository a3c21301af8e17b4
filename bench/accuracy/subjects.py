"""The servers to survey: how each is started, and what one request asks for.

All are third-party servers. The application pages that some of them serve are in servers/. Each request costs enough
work that a client on one CPU can saturate the server on another, except for servers chosen so that the client is the
limit.
"""

import contextlib
import hashlib
import http.client
import os
import random
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..calibration.subjects import MODULES, apache, files, nginx
from ..monitor.bed import Running
from ..side_by_side.servers import free_port
from ..side_by_side.tools import Failed, output
from .programs import PROGRAMS, missing

SOURCES = Path(__file__).parent / "servers"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brimful-bench"
TEXT_BYTES = 23_000
# Maximum time in which a server must start, in seconds. Java takes about a second, or several seconds on a busy host.
START_TIMEOUT_S = 30
# Minimum size of a valid page, in bytes. A shorter response is an error page.
MIN_PAGE_BYTES = 200

APACHE_GZIP = """\
LoadModule deflate_module {modules}/mod_deflate.so
<Location "/text.txt">
SetOutputFilter DEFLATE
</Location>
"""

LIGHTTPD = """\
server.document-root = "{directory}/www"
server.bind = "127.0.0.1"
server.port = {port}
server.listen-backlog = 4096
server.max-keep-alive-requests = 1000000000
server.max-keep-alive-idle = 120
server.max-fds = 16384
server.pid-file = "{directory}/server.pid"
server.errorlog = "{directory}/error.log"
mimetype.assign = ( ".html" => "text/html" )
"""

CADDY = """\
{{
    admin off
    auto_https off
    storage file_system {directory}/caddy
}}
http://127.0.0.1:{port} {{
    bind 127.0.0.1
    root * {directory}/www
    file_server
}}
"""

HAPROXY = """\
global
    nbthread 1
    maxconn 8192
defaults
    mode http
    timeout connect 10s
    timeout queue 60s
    timeout client 120s
    timeout server 120s
    http-reuse always
frontend web
    bind 127.0.0.1:{port} backlog 4096
    default_backend pages
backend pages
    server nginx 127.0.0.1:{behind} maxconn 128
"""

PHP_LOCATION = """\
location = /rows.php {{
            fastcgi_pass unix:{directory}/php.sock;
            fastcgi_param SCRIPT_FILENAME {sources}/rows.php;
            fastcgi_param DATABASE {directory}/www/items.sqlite;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param SCRIPT_NAME $fastcgi_script_name;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
        }}"""

PHP_FPM = """\
[global]
pid = {directory}/php.pid
error_log = {directory}/php.log
log_level = error
daemonize = no
[www]
{user}
listen = {directory}/php.sock
listen.backlog = 4096
listen.mode = 0666
pm = {pm}
pm.max_children = 8
pm.process_idle_timeout = 10s
"""


@dataclass(frozen=True)
class Place:
    """The directory and the port of one server process."""

    directory: Path
    port: int

    def write(self, name: str, content: str) -> str:
        path = self.directory / name
        path.write_text(content)
        return str(path)


@dataclass(frozen=True)
class Subject:
    """A server, and the request that it is surveyed with."""

    name: str
    title: str
    programs: tuple[str, ...]
    commands: Callable[[Place], list[list[str]]]
    path: str = "/"
    headers: tuple[str, ...] = ()
    # Number of requests before the measurement, so that just-in-time compilers have finished and caches are full.
    warm_up: int = 5000
    # Minimum size of a valid answer, in bytes.
    min_bytes: int = MIN_PAGE_BYTES

    def missing(self) -> str | None:
        return missing(self.programs)

    @contextlib.contextmanager
    def running(self, directory: Path, cpu: int) -> Iterator[tuple[str, list[int]]]:
        """Starts the server on a CPU, in a new directory. Yields its URL and process IDs. Ends all its processes at the
        end."""
        directory.mkdir(parents=True)
        for path in (directory.parent, directory):
            # The server's workers run as another user, which needs access to these directories.
            os.chmod(path, 0o755)
        place = Place(directory, free_port())
        commands = self.commands(place)
        with contextlib.ExitStack() as stack:
            processes = [stack.enter_context(Running(command, cpu)) for command in commands]
            self._wait_until_ready(place.port, processes)
            yield f"http://127.0.0.1:{place.port}{self.path}", [process.pid for process in processes]

    def _wait_until_ready(self, port: int, processes: list[Running]) -> None:
        """Returns once the server answers correctly."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while error := self._answer_error(port):
            for process in processes:
                process.check()
            if time.monotonic() > deadline:
                raise Failed(f"{self.name} does not answer correctly after {START_TIMEOUT_S} s: {error}")
            time.sleep(0.05)

    def _answer_error(self, port: int) -> str | None:
        """The error in the server's answer, or None."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        headers = dict(header.split(": ", 1) for header in self.headers)
        with contextlib.closing(connection):
            try:
                connection.request("GET", self.path, headers=headers)
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                return str(error) or type(error).__name__
        if answer.status != 200:
            return f"status {answer.status}"
        if "Accept-Encoding" in headers and answer.getheader("Content-Encoding") != headers["Accept-Encoding"]:
            return "not compressed"
        return f"{len(body)} bytes" if len(body) < self.min_bytes else None


def on_nginx(place: Place, more: str = "") -> list[list[str]]:
    files(place.directory / "www", TEXT_BYTES)
    conf = place.write("nginx.conf", nginx(place.directory, place.port, more))
    return [[program("nginx"), "-e", str(place.directory / "error.log"), "-c", conf]]


def on_apache(mpm: str, more: str = "") -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        files(place.directory / "www", TEXT_BYTES)
        conf = apache(mpm, place.directory, place.port) + more.format(modules=MODULES)
        return [[program("apache"), "-f", place.write("apache.conf", conf), "-DFOREGROUND"]]

    return commands


def on_lighttpd(place: Place) -> list[list[str]]:
    files(place.directory / "www")
    conf = place.write("lighttpd.conf", LIGHTTPD.format(directory=place.directory, port=place.port))
    return [[program("lighttpd"), "-D", "-f", conf]]


def on_caddy(place: Place) -> list[list[str]]:
    files(place.directory / "www")
    conf = place.write("Caddyfile", CADDY.format(directory=place.directory, port=place.port))
    home = [f"{name}={place.directory}" for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")]
    return [["env", *home, program("caddy"), "run", "--config", conf, "--adapter", "caddyfile"]]


def behind_haproxy(place: Place) -> list[list[str]]:
    backend = Place(place.directory, free_port())
    conf = place.write("haproxy.cfg", HAPROXY.format(port=place.port, behind=backend.port))
    return [*on_nginx(backend), [program("haproxy"), "-db", "-f", conf]]


def on_php(pm: str) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        page = PHP_LOCATION.format(directory=place.directory, sources=place.directory)
        web = on_nginx(place, page)
        place.write("rows.php", (SOURCES / "rows.php").read_text())
        items(place.directory / "www" / "items.sqlite")
        user = "user = www-data\ngroup = www-data" if os.geteuid() == 0 else ""
        conf = place.write("php-fpm.conf", PHP_FPM.format(directory=place.directory, user=user, pm=pm))
        return [[program("php-fpm"), "-F", "-y", conf], *web]

    return commands


def on_node(place: Place) -> list[list[str]]:
    return [[program("node"), str(SOURCES / "rows.js"), str(place.port)]]


def on_uvicorn(place: Place) -> list[list[str]]:
    return asgi(place, SOURCES / "rows.py")


def asgi(place: Place, source: Path) -> list[list[str]]:
    """uvicorn with the object `app` of a script."""
    options = ["--loop", "uvloop", "--http", "httptools", "--backlog", "4096", "--timeout-keep-alive", "120"]
    quiet = ["--no-access-log", "--log-level", "warning"]
    where = ["--host", "127.0.0.1", "--port", str(place.port), "--app-dir", str(place.directory)]
    # The server runs a copy of the script, so that Python does not write __pycache__ into the source directory.
    place.write(source.name, source.read_text())
    return [[program("uvicorn"), "-m", "uvicorn", f"{source.stem}:app", *where, *options, *quiet]]


def on_go(place: Place) -> list[list[str]]:
    return [[go(SOURCES / "rows.go"), str(place.port)]]


def go(source: Path) -> str:
    """The path of a compiled Go program."""

    def build(directory: Path) -> list[str]:
        # With GOTOOLCHAIN=local, Go does not download another compiler.
        return ["env", "GOTOOLCHAIN=local", program("go"), "build", "-o", str(directory), str(source)]

    return str(built(source, output([program("go"), "version"]), build) / source.stem)


def on_java(place: Place) -> list[list[str]]:
    return [[*java(SOURCES / "Rows.java"), str(place.port)]]


def java(source: Path) -> list[str]:
    """The command of a compiled Java program that uses the JDK's HTTP server."""

    def build(directory: Path) -> list[str]:
        return [program("javac"), "-d", str(directory), str(source)]

    classes = built(source, output([program("javac"), "-version"]), build)
    # Without `nodelay`, Nagle's algorithm and delayed ACKs delay the body of a response by 40 ms on connections that
    # stay open.
    options = ["-Dsun.net.httpserver.nodelay=true", "-Dsun.net.httpserver.maxIdleConnections=10000", "-Xmx256m"]
    return [program("java"), *options, "-cp", str(classes), source.stem]


def built(source: Path, compiler: str, command: Callable[[Path], list[str]]) -> Path:
    """The directory of a compiled source. Each version of the source is compiled once per version of the compiler."""
    key = hashlib.sha256(source.read_bytes() + compiler.encode()).hexdigest()[:12]
    directory = CACHE / f"{source.name}-{key}"
    if not directory.exists():
        unfinished = CACHE / f"{source.name}-{key}-{os.getpid()}"
        unfinished.mkdir(parents=True)
        done = subprocess.run(command(unfinished), text=True, capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"{source.name} does not compile: {done.stderr.strip()}")
        unfinished.rename(directory)
    return directory


def items(path: Path) -> None:
    """Writes a SQLite table of 5,000 items on 25 shelves."""
    order = random.Random(1)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, shelf INTEGER, name TEXT, price REAL)")
        rows = [(i % 25, f"item <{i}> & more", order.uniform(1, 100)) for i in range(5000)]
        database.executemany("INSERT INTO item (shelf, name, price) VALUES (?, ?, ?)", rows)
        database.execute("CREATE INDEX item_shelf ON item (shelf)")
        database.commit()


def program(name: str) -> str:
    if path := PROGRAMS[name].path():
        return path
    raise Failed(missing((name,)))


GZIP = ("Accept-Encoding: gzip",)

SUBJECTS = [
    Subject("nginx-gzip", "nginx, 23 kB of text compressed for every request", ("nginx",), on_nginx, "/text.txt", GZIP),
    Subject("nginx-static", "nginx, a file of 1.3 kB", ("nginx",), on_nginx, "/page.html"),
    Subject("apache-event", "Apache event, a file of 1.3 kB", ("apache",), on_apache("event"), "/page.html"),
    Subject(
        "apache-prefork-gzip", "Apache prefork, 23 kB of text compressed for every request", ("apache",),
        on_apache("prefork", APACHE_GZIP), "/text.txt", GZIP,
    ),
    Subject("apache-worker", "Apache worker, a file of 23 kB", ("apache",), on_apache("worker"), "/text.txt"),
    Subject("lighttpd", "lighttpd, a file of 1.3 kB", ("lighttpd",), on_lighttpd, "/page.html"),
    Subject("caddy", "Caddy, a file of 1.3 kB", ("caddy",), on_caddy, "/page.html"),
    Subject("haproxy", "HAProxy before nginx, a file of 1.3 kB", ("haproxy", "nginx"), behind_haproxy, "/page.html"),
    Subject("php-fpm-static", "nginx and php-fpm (static), a query of SQLite", ("php-fpm", "nginx"), on_php("static"),
            "/rows.php"),
    Subject("php-fpm-ondemand", "nginx and php-fpm (ondemand), a query of SQLite", ("php-fpm", "nginx"),
            on_php("ondemand"), "/rows.php"),
    Subject("node", "Node, 400 rows as JSON", ("node",), on_node, warm_up=15_000),
    Subject("uvicorn", "uvicorn, 100 rows as JSON", ("uvicorn", "httptools", "uvloop"), on_uvicorn),
    Subject("go-gzip", "Go's net/http, 200 rows as JSON, compressed", ("go",), on_go, headers=GZIP),
    # Java needs a longer warm-up: its just-in-time compiler continues to optimize the code after 20,000 requests.
    Subject("java", "the JDK's HTTP server with 8 threads, 500 rows sorted, as JSON", ("java", "javac"), on_java,
            warm_up=40_000),
]  # fmt: skip
