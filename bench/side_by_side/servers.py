"""The servers under load: Debian's nginx with a configuration of its own, and our trivial one. One for every run."""

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .tools import Failed

# Small enough to fit into one segment with its head, and not trivial: the page of the httperf era.
PAGE_BYTES = 1294
LARGE_BYTES = 1 << 20
# The file with the private key of a server by TLS.
KEY = "key.pem"


@dataclass(frozen=True)
class Counted:
    """What a server has done so far."""

    connections: int
    requests: int


class Server(Protocol):
    port: int
    # Of a server by TLS.
    authority: Path | None

    def counted(self) -> Counted: ...

    def stop(self) -> None: ...


class Trivial:
    """brimful-bench-server in one of its modes. Talks over its stdin and stdout; the end of stdin ends it."""

    authority = None

    def __init__(self, path: str, mode: list[str], cpu: int) -> None:
        self._process = subprocess.Popen(
            ["taskset", "-c", str(cpu), path, *mode],
            text=True,
            bufsize=1,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = int(self._answer())

    def counted(self) -> Counted:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
        return Counted(**json.loads(self._answer()))

    def _answer(self) -> str:
        if line := self._process.stdout.readline():
            return line
        raise Failed("the server has failed, see above")

    def stop(self) -> None:
        """Returns when it has ended, and has written its notes."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


NGINX = """\
daemon off;
{user}
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log crit;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    scgi_temp_path {directory}/scgi;
    uwsgi_temp_path {directory}/uwsgi;
    server {{ listen 127.0.0.1:{port} {secure} backlog=4096; root {directory}/www; {identity}
        location /s/ {{ try_files /index.html =404; }}
    }}
    server {{ listen 127.0.0.1:{status}; location / {{ stub_status; }} }}
}}
"""


class Nginx:
    """One worker on one CPU, one file, which also answers for all paths below /s/, no log, connections kept for ever."""

    def __init__(
        self, path: str, directory: Path, cpu: int, secure: bool = False, http2: bool = False, page: int = PAGE_BYTES
    ) -> None:
        directory = directory / "nginx"
        (directory / "www").mkdir(parents=True, exist_ok=True)
        # Its worker is another user.
        os.chmod(directory.parent, 0o755)
        (directory / "www" / "index.html").write_text("x" * page)
        self.port, self._status = free_port(), free_port()
        self.authority = certificate(directory) if secure else None
        settings = {
            "user": "user www-data;" if os.geteuid() == 0 else "",
            "secure": "ssl http2" if secure else "http2" if http2 else "",
            "identity": f"ssl_protocols TLSv1.3; ssl_certificate {self.authority}; ssl_certificate_key {directory / KEY};" if secure else "",
        }
        (directory / "nginx.conf").write_text(
            NGINX.format(**settings, directory=directory, port=self.port, status=self._status, connections=16384)
        )
        command = [
            "taskset",
            "-c",
            str(cpu),
            path,
            "-e",
            str(directory / "error.log"),
            "-c",
            str(directory / "nginx.conf"),
        ]
        self._process = subprocess.Popen(command)
        wait_for(self._status)
        self._asked = 1

    def counted(self) -> Counted:
        """What its status page says, without the questions themselves."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._status}/") as page:
            counted = status(page.read().decode())
        self._asked += 1
        return Counted(counted.connections - self._asked, counted.requests - self._asked)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def certificate(directory: Path) -> Path:
    """One for 127.0.0.1 that vouches for itself, beside its key: on P-256, as most sites have them."""
    made = directory / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=bench", "-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(directory / KEY), "-out", str(made)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise Failed(f"openssl makes no certificate: {failure}") from failure
    return made


def status(page: str) -> Counted:
    """The third line of nginx's stub_status: connections accepted, handled, and requests."""
    accepted, _handled, requests = map(int, page.splitlines()[2].split())
    return Counted(accepted, requests)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for(port: int, patience_s: float = 10) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            # A request of its own, so that nothing is left to accept.
            urllib.request.urlopen(f"http://127.0.0.1:{port}/").close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
