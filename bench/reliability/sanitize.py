"""Loads nginx and Apache with the Server Module under gcc's address and undefined-behaviour sanitizers.

    sudo python3 bench/reliability/sanitize.py --brimful target/release/brimful
    sudo python3 bench/reliability/sanitize.py --requests 100000 --reloads 20 --kills 20

Builds both modules with -fsanitize=address,undefined, starts each server in a private directory, and loads it: with
kept-alive connections, with new connections, and as a proxy of itself. Meanwhile the server is reloaded and its workers
are killed (SIGKILL) at regular intervals. Then the module's counts must equal the access log, except for at most one
request per killed worker: a worker may be killed between counting and logging. Finally the server is reloaded with the
shared memory in a full file system: it must serve without the recorder, and log the reason. No sanitizer may report
anything at any time.

Prints a line for each server; exits with 1 if any check failed. Needs root (to mount a file system), nginx, Apache, gcc
and the build tools of their modules. Load goes to 127.0.0.1 only.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "server-module/tests"))
import dump  # noqa: E402  (needs the path above)

FLAGS = "-fsanitize=address,undefined -fno-omit-frame-pointer -g"
LIMIT_S = 60
CHUNK = 20_000
NGINX = """
daemon off;
{user}
load_module {dir}/module.so;
worker_processes 2;
pid {dir}/server.pid;
error_log {dir}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    brimful {memory};
    brimful_cpu_one_in 1;
    brimful_slots 400;
    brimful_class behind url /behind/*;
    brimful_class small size 0-4999;
    access_log {log};
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
    keepalive_requests 1000;
    upstream itself {{ server 127.0.0.1:{port}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {dir}/www;
        location /behind/ {{ proxy_pass http://itself/; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
"""
APACHE = """
ServerRoot {dir}
ServerName localhost
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_http_module {modules}/mod_proxy_http.so
LoadModule brimful_module {dir}/module.so
{user}
ServerLimit 16
StartServers 2
ThreadsPerChild 16
MaxRequestWorkers 256
Listen 127.0.0.1:{port}
DefaultRuntimeDir {dir}
PidFile {dir}/server.pid
ErrorLog {dir}/error.log
LogLevel warn
DocumentRoot {dir}/www
KeepAlive On
MaxKeepAliveRequests 1000
LogFormat "%>s %r" short
CustomLog {log} short
Brimful {memory}
BrimfulSlots 2000
BrimfulClass behind url /behind/*
BrimfulClass small size 0-4999
BrimfulCpuOneIn 1
ProxyPass /behind/ http://127.0.0.1:{port}/
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what: str, is_true) -> None:
    """Polls a condition; raises AssertionError if it is not true within LIMIT_S."""
    end = time.monotonic() + LIMIT_S
    while not is_true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {LIMIT_S} s: {what}")
        time.sleep(0.02)


class Server:
    """A server that runs under the sanitizers, in its own directory."""

    def __init__(self, kind: str, place: Path):
        self.kind, self.dir, self.port = kind, place, free_port()
        self.log, self.reports = place / "access.log", place / "reports"
        self.reload_signal = signal.SIGHUP if kind == "nginx" else signal.SIGUSR1
        for directory in ["www", "reports", "full"]:
            (place / directory).mkdir()
        # The server's workers run as another user, which needs access to this directory and must be able to write
        # reports there.
        place.chmod(0o755)
        self.reports.chmod(0o1777)
        (place / "www/small").write_text("x" * 1000)
        build = ROOT / f"server-module/{kind}/build.sh"
        subprocess.run([build, place / "module.so"], env={**os.environ, "CFLAGS": FLAGS}, check=True)
        self.configure(place / "memory", self.log)
        self.process = self.start()
        try:
            wait_until(f"{kind} records", lambda: (place / "memory").exists() and self.accepts())
        except AssertionError:
            self.stop()
            raise

    def configure(self, memory: Path, log: Path) -> None:
        """Writes the configuration. It takes effect when the server is started or reloaded."""
        names = {"dir": self.dir, "memory": memory, "log": log, "port": self.port}
        if self.kind == "nginx":
            text = NGINX.format(user="user www-data;", **names)
        else:
            text = APACHE.format(user="User www-data\nGroup www-data", modules="/usr/lib/apache2/modules", **names)
        (self.dir / "server.conf").write_text(text)

    def start(self) -> subprocess.Popen:
        libraries = [
            subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
            for name in ["libasan.so", "libubsan.so"]
        ]
        # The servers do not free all their memory at exit, so leaks are not reported.
        asan = f"log_path={self.reports}/asan:detect_leaks=0:abort_on_error=0"
        environment = {
            **os.environ,
            "LD_PRELOAD": ":".join(libraries),
            "ASAN_OPTIONS": asan,
            "UBSAN_OPTIONS": f"log_path={self.reports}/ubsan:print_stacktrace=1",
        }
        config = str(self.dir / "server.conf")
        command = {
            "nginx": ["/usr/sbin/nginx", "-p", str(self.dir), "-e", str(self.dir / "error.log"), "-c", config],
            "apache": ["/usr/sbin/apache2", "-DFOREGROUND", "-d", str(self.dir), "-f", config],
        }[self.kind]
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)

    def accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(word) for word in children.split()]

    def reload(self) -> None:
        self.process.send_signal(self.reload_signal)

    def kill_worker(self, which: int) -> bool:
        """Kills one worker. Returns whether there was one."""
        workers = self.workers()
        if workers:
            try:
                os.kill(workers[which % len(workers)], signal.SIGKILL)
            except ProcessLookupError:
                return False
        return bool(workers)

    def logged(self) -> int:
        with self.log.open("rb") as file:
            return sum(1 for _ in file)

    def counted(self) -> int:
        return dump.read(self.dir / "memory")["requests"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(LIMIT_S)

    def reported(self) -> list[str]:
        """The reports of the sanitizers, from their own files and from the servers' error log."""
        texts = [path.read_text(errors="replace") for path in [self.dir / "error.log", *self.reports.iterdir()]]
        found = [re.search("^.*(ERROR: AddressSanitizer|runtime error:)", text, re.MULTILINE) for text in texts]
        return [text[match.start() :][:2000] for text, match in zip(texts, found) if match]


def load(brimful: Path, server: Server, chunk: int, requests: int) -> subprocess.Popen:
    """Starts one of three kinds of load in turn, with this number of requests."""
    path, more = [("small", []), ("small", ["--new-connection"]), ("behind/small", [])][chunk % 3]
    command = [brimful, "load", f"http://127.0.0.1:{server.port}/{path}", "--requests", str(requests)]
    command += ["--clients", "32", "--timeout", "10s", "--quiet", *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def disturb(brimful: Path, server: Server, requests: int, reloads: int, kills: int) -> tuple[int, int]:
    """Loads the server while it is reloaded and its workers are killed. Returns the numbers of reloads and kills."""
    first, done, reloaded, killed, chunk = server.logged(), 0, 0, 0, 0
    while (done < requests or reloaded < reloads or killed < kills) and not server.reported():
        running = load(brimful, server, chunk, min(CHUNK, requests))
        while running.poll() is None:
            time.sleep(0.05)
            if server.reported():
                running.terminate()
            done = server.logged() - first
            # Distribute reloads and kills evenly over the requests.
            if reloaded < reloads and done * reloads >= reloaded * requests:
                server.reload()
                reloaded += 1
            if killed < kills and done * kills >= killed * requests:
                killed += server.kill_worker(killed)
        done = server.logged() - first
        chunk += 1
    return reloaded, killed


def fill(brimful: Path, server: Server) -> None:
    """Reloads the server with the shared memory in a full file system; it must log that, and go on serving."""
    full = server.dir / "full"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", full], check=True)
    log_length = len((server.dir / "error.log").read_text(errors="replace"))
    server.configure(full / "memory", server.log)
    server.reload()

    def warned() -> bool:
        new_lines = (server.dir / "error.log").read_text(errors="replace")[log_length:]
        return "No space left on device" in new_lines

    wait_until("the server warns that the file system is full", warned)
    # Some requests may fail, because old workers still close connections. So only wait until the server serves requests
    # again.
    before = server.logged()
    load(brimful, server, 1, 2000).wait(LIMIT_S)
    if server.process.poll() is not None or server.logged() == before:
        raise AssertionError("the server does not serve without the recorder")


def check(kind: str, arguments: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory() as place:
        server = Server(kind, Path(place))
        wrong = []
        try:
            reloaded, killed = disturb(
                arguments.brimful, server, arguments.requests, arguments.reloads, arguments.kills
            )
            last = [-1]

            def is_quiet() -> bool:
                logged = server.logged()
                last[:] = [*last[-1:], logged]
                time.sleep(0.5)
                return last[0] == logged

            wait_until("the requests end", is_quiet)
            logged, counted = server.logged(), server.counted()
            # nginx's module counts a request before its log line is written; Apache's module counts it afterwards.
            between = counted - logged if kind == "nginx" else logged - counted
            if not 0 <= between <= killed:
                wrong.append(f"counted {counted}, logged {logged}")
            lost = dump.read(server.dir / "memory")["lost"]
            done = f"{reloaded} reloads, {killed} workers killed, {lost} without a slot"
            print(f"{kind}: {logged:,} logged, {counted:,} counted, {done}")
            if not server.reported():
                fill(arguments.brimful, server)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            wrong.append(str(error))
        finally:
            server.stop()
            subprocess.run(["umount", server.dir / "full"], check=False, stderr=subprocess.DEVNULL)
        wrong += [f"a sanitizer reports:\n{report}" for report in server.reported()]
        if wrong and arguments.keep:
            shutil.copytree(place, arguments.keep / kind, dirs_exist_ok=True)
        for line in wrong:
            print(f"{kind}: {line}")
        return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brimful", type=Path, default=Path("target/release/brimful"), help="the program")
    parser.add_argument("--server", choices=["nginx", "apache"], action="append", help="[both]")
    parser.add_argument("--requests", type=int, default=1_000_000, help="[%(default)s]")
    parser.add_argument("--reloads", type=int, default=100, help="[%(default)s]")
    parser.add_argument("--kills", type=int, default=100, help="[%(default)s]")
    parser.add_argument("--keep", type=Path, help="where to copy the files of a server that failed")
    arguments = parser.parse_args()
    arguments.brimful = arguments.brimful.resolve()
    if not arguments.brimful.is_file() or os.geteuid() != 0:
        print("error: run this as root, and name the program with --brimful", file=sys.stderr)
        return 2
    return 0 if all([check(kind, arguments) for kind in arguments.server or ["nginx", "apache"]]) else 1


if __name__ == "__main__":
    sys.exit(main())
