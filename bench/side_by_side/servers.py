"""The servers under load: Debian's nginx with its own configuration, and brimful-bench-server. Every run starts one."""

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

# Size of the page in Banga & Druschel (1997). Together with the response's head, it fits into one TCP segment.
PAGE_BYTES = 1294
LARGE_BYTES = 1 << 20
# File name of a TLS server's private key.
KEY = "key.pem"


@dataclass(frozen=True)
class Counted:
    """The connections and requests that a server has accepted so far."""

    connections: int
    requests: int


class Server(Protocol):
    port: int
    # Path of the certificate of a TLS server; None without TLS.
    authority: Path | None

    def counted(self) -> Counted: ...

    def stop(self) -> None: ...


class Trivial:
    """brimful-bench-server in one of its modes. A line on its stdin asks for its counts; the end of stdin ends it."""

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
        raise Failed("brimful-bench-server has failed; its error message is above")

    def stop(self) -> None:
        """Ends the server. Returns when it has written the arrivals that it recorded."""
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
    """nginx with one worker on one CPU, without a log. It never closes a connection, and has one file, which it also
    sends for every path below /s/."""

    def __init__(
        self, path: str, directory: Path, cpu: int, secure: bool = False, http2: bool = False, page: int = PAGE_BYTES
    ) -> None:
        directory = directory / "nginx"
        (directory / "www").mkdir(parents=True, exist_ok=True)
        # nginx's worker runs as another user, which needs access to this directory.
        os.chmod(directory.parent, 0o755)
        (directory / "www" / "index.html").write_text("x" * page)
        self.port, self._status = free_port(), free_port()
        self.authority = certificate(directory) if secure else None
        identity = f"ssl_protocols TLSv1.3; ssl_certificate {self.authority}; ssl_certificate_key {directory / KEY};"
        settings = {
            "user": "user www-data;" if os.geteuid() == 0 else "",
            "secure": "ssl http2" if secure else "http2" if http2 else "",
            "identity": identity if secure else "",
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
        """The counts of its status page, without the requests for that page."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._status}/") as page:
            counted = status(page.read().decode())
        self._asked += 1
        return Counted(counted.connections - self._asked, counted.requests - self._asked)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def certificate(directory: Path) -> Path:
    """Makes a self-signed certificate for 127.0.0.1, on P-256 like most sites' certificates, and its key beside it."""
    path = directory / "certificate.pem"
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-subj", "/CN=bench", "-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(directory / KEY), "-out", str(path)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise Failed(f"openssl cannot make a certificate: {failure}") from failure
    return path


def status(page: str) -> Counted:
    """The third line of nginx's stub_status: connections accepted, handled, and requests."""
    accepted, _handled, requests = map(int, page.splitlines()[2].split())
    return Counted(accepted, requests)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for(port: int, timeout_s: float = 10) -> None:
    """Waits until a server answers on this port."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            # Send a whole request: a connection without a request may stay in the accept queue.
            urllib.request.urlopen(f"http://127.0.0.1:{port}/").close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
