"""The servers to calibrate, each on one CPU: nginx, Apache with two MPMs, and the reference server with known demands.

A class is a path. `page` is a file of 1,294 bytes, `large` is several times as large as a socket buffer, `text` is
compressed by nginx for every request.
"""

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..side_by_side.servers import PAGE_BYTES, free_port, wait_for

LARGE_BYTES = 60_000
TEXT_BYTES = 20_000
MODULES = "/usr/lib/apache2/modules"

NGINX = """\
daemon off;
{user}
worker_processes 1;
pid {directory}/server.pid;
error_log {directory}/error.log crit;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    scgi_temp_path {directory}/scgi;
    uwsgi_temp_path {directory}/uwsgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {directory}/www;
        location /text.txt {{ gzip on; gzip_types text/plain; }}
        {more}
    }}
}}
"""

APACHE = """\
ServerRoot "{directory}"
ServerName localhost
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dir_module {modules}/mod_dir.so
DirectoryIndex page.html
{limits}
User www-data
Group www-data
Listen 127.0.0.1:{port}
ListenBacklog 4096
DefaultRuntimeDir "{directory}"
PidFile "{directory}/server.pid"
ErrorLog "{directory}/error.log"
LogLevel crit
DocumentRoot "{directory}/www"
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
"""

LIMITS = {
    "prefork": "ServerLimit 128\nStartServers 128\nMinSpareServers 1\nMaxSpareServers 128\nMaxRequestWorkers 128\n"
    "MaxConnectionsPerChild 0",
    "threads": "ServerLimit 2\nStartServers 2\nThreadsPerChild 64\nThreadLimit 64\nMaxRequestWorkers 128\n"
    "MinSpareThreads 1\nMaxSpareThreads 128\nMaxConnectionsPerChild 0",
}


@dataclass(frozen=True)
class Class:
    """A class of requests, with its share in the calibrated mix and in the unseen mix."""

    path: str
    share: float
    unseen_share: float
    headers: str = ""
    # The configured service demand of the reference server, in seconds; None for other servers.
    demand_s: float | None = None


@dataclass(frozen=True)
class Subject:
    """A server, and the classes of requests sent to it."""

    name: str
    program: str
    classes: dict[str, Class]

    def workload(self) -> str:
        lines = []
        for name, kind in self.classes.items():
            lines += ["[[class]]", f'name = "{name}"', f'path = "{kind.path}"', f"weight = {kind.share}", kind.headers]
        return "\n".join(lines) + "\n"

    def mixes(self) -> dict[str, dict[str, float]]:
        """Shares by class: of the calibrated mix, of each class alone, and of the unseen mix."""
        alone = {name: {other: float(other == name) for other in self.classes} for name in self.classes}
        return {
            "mix": {name: kind.share for name, kind in self.classes.items()},
            **alone,
            "unseen": {name: kind.unseen_share for name, kind in self.classes.items()},
        }

    @contextlib.contextmanager
    def running(self, program: str, directory: Path, cpu: int) -> Iterator[int]:
        """Starts the server on a CPU, yields its port, and ends the server."""
        port = free_port()
        # The server runs in a process group of its own, because Apache sends a signal to its whole group when it ends.
        command = ["taskset", "-c", str(cpu), program, *self.arguments(directory, port)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, process_group=0)
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()
            process.wait()

    def arguments(self, directory: Path, port: int) -> list[str]:
        if self.program == "brimful":
            service = ",".join(f"{name}={kind.demand_s * 1e6:.0f}us" for name, kind in self.classes.items())
            return ["target", "--listen", f"127.0.0.1:{port}", "--service", service]
        files(directory / "www")
        conf = directory / "server.conf"
        if self.program == "nginx":
            conf.write_text(nginx(directory, port))
            return ["-e", str(directory / "error.log"), "-c", str(conf)]
        conf.write_text(apache(self.name.removeprefix("apache-"), directory, port))
        return ["-f", str(conf), "-DFOREGROUND"]


def nginx(directory: Path, port: int, more: str = "") -> str:
    """nginx's configuration, with `more` in the server block."""
    user = "user www-data;" if os.geteuid() == 0 else ""
    return NGINX.format(user=user, directory=directory, port=port, more=more)


def apache(mpm: str, directory: Path, port: int) -> str:
    """Apache's configuration, to which directives may be appended."""
    limits = LIMITS["prefork" if mpm == "prefork" else "threads"]
    return APACHE.format(mpm=mpm, limits=limits, directory=directory, port=port, modules=MODULES)


def files(directory: Path, text_bytes: int = TEXT_BYTES) -> None:
    """Writes the files that the servers serve. The servers run as other users, who must be able to read them."""
    directory.mkdir(parents=True, exist_ok=True)
    os.chmod(directory.parent, 0o755)
    words = random.Random(1).choices(["traffic", "server", "load", "time", "of", "demand", "queue"], k=text_bytes)
    for name, content in {
        "page.html": "x" * PAGE_BYTES,
        "index.html": "x" * PAGE_BYTES,
        "large.bin": "x" * LARGE_BYTES,
        "text.txt": " ".join(words)[:text_bytes],
    }.items():
        (directory / name).write_text(content)


PAGE = Class("/page.html", 0.9, 0.5)
LARGE = Class("/large.bin", 0.1, 0.5)
TEXT = Class("/text.txt", 0.1, 0.5, headers='headers = { Accept-Encoding = "gzip" }')

SUBJECTS = [
    Subject("nginx", "nginx", {"page": PAGE, "large": LARGE}),
    Subject("nginx-gzip", "nginx", {"page": PAGE, "text": TEXT}),
    Subject("apache-prefork", "apache2", {"page": PAGE, "large": LARGE}),
    Subject("apache-event", "apache2", {"page": PAGE, "large": LARGE}),
    Subject(
        "target",
        "brimful",
        {"a": Class("/a", 0.8, 0.3, demand_s=1e-3), "b": Class("/b", 0.2, 0.7, demand_s=4e-3)},
    ),
]
