"""nginx and Apache with the Server Module, each on one CPU and in its own directory, set up by `brimful module
install`."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from ..monitor.clock import family
from ..side_by_side.servers import free_port, wait_for
from ..side_by_side.tools import Failed
from .memory import Memory

NGINX = """\
daemon off;
{user}
worker_processes {workers};
pid {directory}/server.pid;
error_log {directory}/error.log warn;
include modules-enabled/*.conf;
events {{ worker_connections 4096; }}
http {{
    log_format timed '$request_time $status $uri';
    access_log {log};
    keepalive_requests 1000000000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    scgi_temp_path {directory}/scgi;
    uwsgi_temp_path {directory}/uwsgi;
    include conf.d/*.conf;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {directory}/www;
        {extra}
    }}
}}
"""

APACHE = """\
ServerRoot "{directory}"
ServerName localhost
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dir_module {modules}/mod_dir.so
{user}
ServerLimit {workers}
StartServers {workers}
ThreadLimit 64
ThreadsPerChild 64
MinSpareThreads 1
MaxSpareThreads {threads}
MaxRequestWorkers {threads}
Listen 127.0.0.1:{port}
ListenBacklog 4096
DefaultRuntimeDir "{directory}"
PidFile "{directory}/server.pid"
ErrorLog "{directory}/error.log"
LogLevel warn
LogFormat "%D %>s %U" timed
{log}
DocumentRoot "{directory}/www"
DirectoryIndex index.html
KeepAlive On
KeepAliveTimeout 75
MaxKeepAliveRequests 0
{extra}
IncludeOptional conf.d/*.conf
"""
APACHE_MODULES = "/usr/lib/apache2/modules"


class Server:
    """A server that runs with the module until it is stopped. `files` gives the sizes of the files in `www`."""

    def __init__(
        self,
        bed: "Bed",  # noqa: F821
        kind: str,
        files: dict[str, int],
        classes: list[str] = (),
        workers: int = 1,
        logs: bool = False,
        extra: str = "",
        http: str = "",
        module: Path | None = None,
        name: str = "",
    ) -> None:
        """`module` is a further module that nginx loads, and `http` its configuration. Servers that run at the same time
        need different names."""
        self.kind = kind
        self.directory = bed.scratch(name or kind)
        self.port = free_port()
        self.log = self.directory / "access.log"
        self._memory = Path(f"/dev/shm/brimful-bench-{os.getpid()}-{name or kind}")
        self._place_files(files)
        if module:
            (self.directory / "modules-enabled" / "other.conf").write_text(f"load_module {module};\n")
        if http:
            (self.directory / "conf.d" / "other.conf").write_text(http)
        config = self.directory / ("nginx.conf" if kind == "nginx" else "httpd.conf")
        config.write_text(self._configuration(workers, logs, extra))
        self._install(bed, classes)
        pinned = ["taskset", "-c", str(bed.server_cpu)]
        self._process = subprocess.Popen([*pinned, *self._command(bed.program(kind), config)], start_new_session=True)
        try:
            wait_for(self.port)
            self.memory = Memory(self._memory)
        except OSError as error:
            self.stop()
            raise Failed(f"{kind} with the module does not start: {error}: {self._complaint()}") from None

    def _place_files(self, files: dict[str, int]) -> None:
        # The server's workers run as another user, which needs access to this directory.
        os.chmod(self.directory.parent, 0o755)
        for name in ("www", "modules-enabled", "conf.d"):
            (self.directory / name).mkdir()
        for name, size in ({"index.html": 1294} | files).items():
            path = self.directory / "www" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * size)

    def _configuration(self, workers: int, logs: bool, extra: str) -> str:
        root = os.geteuid() == 0
        if self.kind == "nginx":
            user, log = "user www-data;" if root else "", f"{self.log} timed" if logs else "off"
        else:
            user, log = "User www-data\nGroup www-data" if root else "", f'CustomLog "{self.log}" timed' if logs else ""
        return (NGINX if self.kind == "nginx" else APACHE).format(
            directory=self.directory,
            user=user,
            workers=workers,
            threads=64 * workers,
            modules=APACHE_MODULES,
            log=log,
            port=self.port,
            extra=extra,
        )

    def _install(self, bed: "Bed", classes: list[str]) -> None:  # noqa: F821
        given = [f"--class={rule}" for rule in classes]
        built = bed.directory / f"{self.kind}.so"
        given += ["--module", str(built)] if built.exists() else []
        command = [bed.program("brimful"), "module", "install", self.kind, "--prefix", str(self.directory), "--yes"]
        done = subprocess.run(
            [*command, "--memory", str(self._memory), *given], text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise Failed(done.stderr.strip())
        if not built.exists():
            # Keep the module that was built, so that later installations need not build it again.
            shutil.copy(next((self.directory / "modules").glob("*.so")), built)

    def _command(self, program: str, config: Path) -> list[str]:
        if self.kind == "nginx":
            return [program, "-p", str(self.directory), "-e", "error.log", "-c", str(config)]
        return [program, "-d", str(self.directory), "-f", str(config), "-DFOREGROUND"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def pids(self) -> list[int]:
        # taskset executes the server in its own process, so the process ID is that of the server.
        return family(self._process.pid)

    @property
    def workers(self) -> list[int]:
        return self.pids[1:]

    def reload(self) -> None:
        """Reloads gracefully."""
        os.kill(self._process.pid, signal.SIGHUP if self.kind == "nginx" else signal.SIGUSR1)

    def lines(self) -> int:
        """The number of lines in the access log."""
        with self.log.open("rb") as log:
            return sum(block.count(b"\n") for block in iter(lambda: log.read(1 << 20), b""))

    def settled(self, timeout_s: float = 20) -> tuple[int, int]:
        """Waits until the counts stop growing; returns the requests by the module and by the log."""
        deadline = time.monotonic() + timeout_s
        before = None
        while (now := (self.memory.counted().requests, self.lines())) != before and time.monotonic() < deadline:
            before = now
            time.sleep(1)
        return now

    def _complaint(self) -> str:
        log = self.directory / "error.log"
        return log.read_text(errors="replace").strip()[-400:] if log.exists() else "there is no error log"

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)
            self._process.wait()
        self._memory.unlink(missing_ok=True)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
