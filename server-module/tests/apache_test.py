#!/usr/bin/env python3
"""Tests of the module in a real Apache, with each of its MPMs: apache_test.py MODULE.so [MPM ...]. Prints what fails;
exits with 1 then. APACHE names another server than /usr/sbin/apache2, APACHE_MODULES where its modules are.

A private Apache and a server behind it listen on free ports of 127.0.0.1; all of their files are in a temporary
directory. Each case sends requests as clients do, good and bad, and says what the recorder must have seen of them.
Whatever happens, there must be as many requests as lines in the access log.
"""
import http.server
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

import dump
from behind import Threaded, free_port

SERVER = os.environ.get("APACHE", "/usr/sbin/apache2")
MODULES = os.environ.get("APACHE_MODULES", "/usr/lib/apache2/modules")
THREADS = """ServerLimit 4\nStartServers 2\nThreadsPerChild 8\nMaxRequestWorkers 32
MinSpareThreads 8\nMaxSpareThreads 32"""
POOLS = {
    "event": THREADS,
    "worker": THREADS,
    "prefork": "ServerLimit 32\nStartServers 8\nMinSpareServers 8\nMaxSpareServers 16\nMaxRequestWorkers 32",
}
LOADED = ("authz_core", "dir", "mime", "include", "proxy", "proxy_http", "ssl", "socache_shmcb", "http2")
CONFIGURATION = """
ServerRoot "{dir}"
ServerName localhost
{load}
LoadModule brimful_module {module}
{pool}
{user}
Listen 127.0.0.1:{port}
Listen 127.0.0.1:{port_tls}
DefaultRuntimeDir "{dir}"
PidFile "{dir}/server.pid"
ErrorLog "{dir}/error.log"
TypesConfig /dev/null
DocumentRoot "{dir}/www"
KeepAlive On
KeepAliveTimeout 3
MaxKeepAliveRequests 0
LogFormat "%>s %B %D %X %r" times
CustomLog "{dir}/access.log" times
Brimful {dir}/memory
BrimfulClass images url /images/*
BrimfulClass small size 0-4999
BrimfulCpuOneIn 1
Protocols h2 http/1.1
ErrorDocument 404 /sorry
AddOutputFilter INCLUDES .shtml
ProxyPass /behind/ http://127.0.0.1:{behind}/
ProxyPass /nobody/ http://127.0.0.1:1/
<Directory "{dir}/www">
Options +Includes
</Directory>
<Location /sent>
EnableSendfile On
</Location>
<VirtualHost 127.0.0.1:{port_tls}>
SSLEngine On
SSLCertificateFile {dir}/cert.pem
SSLCertificateKeyFile {dir}/key.pem
CustomLog "{dir}/access.log" times
</VirtualHost>
"""
CLOSE = b"Connection: close\r\n\r\n"


def get(path, rest=b"\r\n"):
    return b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n" + rest


class Behind(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if "slow" in self.path:
            time.sleep(0.3)
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *arguments):
        pass


class Apache:
    def __init__(self, mpm, module, directory):
        self.dir = directory
        self.port, self.port_tls = free_port(), free_port()
        behind = Threaded(("127.0.0.1", 0), Behind)
        threading.Thread(target=behind.serve_forever, daemon=True).start()
        os.mkdir(f"{directory}/www")
        for of in ("www/images", "www/sent"):
            os.mkdir(f"{directory}/{of}")
        files = {"small": 1000, "large": 8_000_000, "sent/large": 8_000_000, "images/one": 500, "sorry": 10}
        for name, size in files.items():
            with open(f"{directory}/www/{name}", "wb") as file:
                file.write(b"x" * size)
        with open(f"{directory}/www/page.shtml", "w") as file:
            file.write('<!--#include virtual="/small" --><!--#include virtual="/sorry" -->')
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-keyout", f"{directory}/key.pem", "-out", f"{directory}/cert.pem"],
                       check=True, capture_output=True)
        names = (f"mpm_{mpm}",) + LOADED
        with open(f"{directory}/server.conf", "w") as file:
            file.write(CONFIGURATION.format(
                dir=directory, module=module, pool=POOLS[mpm], port=self.port, port_tls=self.port_tls,
                load="\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in names),
                user="User www-data\nGroup www-data" if os.geteuid() == 0 else "", behind=behind.server_port))
        command = [SERVER, "-f", f"{directory}/server.conf", "-DFOREGROUND"]
        self.process = subprocess.Popen(command, start_new_session=True)
        for _ in range(200):
            if self.process.poll() is not None:
                sys.exit(f"error: {SERVER} has ended with {self.process.returncode}")
            if os.path.exists(f"{directory}/server.pid") and os.path.exists(f"{directory}/memory"):
                break
            time.sleep(0.05)
        time.sleep(0.5)

    def connect(self, receive_buffer=None):
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(20)
        client.connect(("127.0.0.1", self.port))
        return client

    def send(self, *parts, pause=0.0):
        """Sends the parts of a request, with a pause after each part, and reads the response to the end."""
        with self.connect() as client:
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
            return drain(client)

    def over_tls(self, sent):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(socket.create_connection(("127.0.0.1", self.port_tls), 20)) as client:
            client.sendall(sent)
            return drain(client)

    def lines(self):
        with open(f"{self.dir}/access.log") as file:
            return file.read().splitlines()

    def read(self):
        return dump.read(f"{self.dir}/memory")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def drain(client):
    received = bytearray()
    try:
        while part := client.recv(65536):
            received += part
    except OSError:
        pass
    return bytes(received)


def read_slowly(apache, path="/large"):
    with apache.connect(receive_buffer=20_000) as client:
        client.sendall(get(path, CLOSE))
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            client.recv(10_000)
            time.sleep(0.02)
        drain(client)


def break_off(apache):
    with apache.connect(receive_buffer=20_000) as client:
        client.sendall(get("/large"))
        time.sleep(0.3)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def keep_alive(apache):
    with apache.connect() as client:
        for _ in range(3):
            client.sendall(get("/small"))
            time.sleep(0.2)
            client.recv(65536)


class Cases:
    """Cases that send requests and check by how much the recorder's figures increase."""

    def __init__(self, apache):
        self.apache, self.failed = apache, 0

    def expect(self, what, holds, seen):
        if not holds:
            self.failed += 1
            print(f"FAILED: {what}: {seen}")

    def run(self, name, act, requests, **bounds):
        """Runs one case. `bounds` has minimum and maximum of the time of a phase in seconds, or of a count."""
        before, lines = self.totals(), len(self.apache.lines())
        act()
        until = time.monotonic() + 5
        while (seen := self.totals())["requests"] - before["requests"] < requests and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.1)
        seen = {key: value - before[key] for key, value in self.totals().items()}
        self.expect(f"{name}: {requests} requests", seen["requests"] == requests, seen)
        logged = self.apache.lines()[lines:]
        self.expect(f"{name}: as many lines", len(logged) == requests, logged)
        logged_s = sum(int(line.split()[2]) for line in logged) / 1e6
        answered_s = sum(seen[phase] for phase in ("parse", "process", "upstream", "send"))
        # The response time in Apache's log (%D) begins when the first line of the head was read, so it includes a part
        # of HEAD.
        holds = answered_s <= logged_s + 0.005 * requests and logged_s <= answered_s + seen["head"] + 0.005 * requests
        self.expect(f"{name}: the phases are what %D says", holds, (seen, logged_s))
        for phase, (least, most) in bounds.items():
            self.expect(f"{name}: {phase}", least <= seen[phase] <= most, seen)

    def totals(self):
        read = self.apache.read()
        classes = read["classes"].values()
        totals = {phase: sum(c["phases"][phase]["sum_s"] for c in classes) for phase in dump.PHASES}
        for name in ("requests", "bytes", "failed", "aborted", "resumed"):
            totals[name] = sum(c[name] for c in classes)
        totals["measured"] = sum(c["cpu_count"] for c in classes)
        totals["images"] = read["classes"]["images"]["requests"]
        totals["small"] = read["classes"]["small"]["requests"]
        return totals


def try_cases(apache, mpm):
    cases, send = Cases(apache), apache.send
    none, some = (0, 0.05), (0.25, 5)
    cases.run("one", lambda: send(get("/small", CLOSE)), 1, head=none, send=none, bytes=(1000, 1000), small=(1, 1))
    cases.run("of a class by URL", lambda: send(get("/images/one?a=b", CLOSE)), 1, images=(1, 1))
    cases.run("a slow head", lambda: send(b"GET /sm", b"all HTTP/1.1\r\nHo", b"st: x\r\n", CLOSE, pause=0.1), 1,
              head=some, parse=none, process=none)
    cases.run("a late head", lambda: send(b"", get("/small", CLOSE), pause=0.3), 1, head=none, parse=none)
    cases.run("kept alive", lambda: keep_alive(apache), 3, head=none, parse=none, process=none, send=none)
    cases.run("pipelined", lambda: send(get("/small") * 9 + get("/small", CLOSE)), 10, bytes=(10_000, 10_000))
    cases.run("a slow body", lambda: send(b"POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n" + CLOSE, b"abc",
                                          b"def", pause=0.2), 1, head=some, process=none)
    cases.run("no HTTP", lambda: send(b"GARBAGE\r\n\r\n"), 1)
    cases.run("no host", lambda: send(b"GET / HTTP/1.1\r\n\r\n"), 1)
    cases.run("half a head", lambda: half_a_head(apache), 1)
    cases.run("a connection without a request", lambda: apache.connect().close(), 0)
    cases.run("HEAD", lambda: send(b"HEAD /small HTTP/1.1\r\nHost: x\r\n" + CLOSE), 1, bytes=(0, 0))
    cases.run("an internal redirect", lambda: send(get("/none", CLOSE)), 1, bytes=(10, 10))
    cases.run("subrequests", lambda: send(get("/page.shtml", CLOSE)), 1, bytes=(1010, 1010))
    cases.run("a slow reader", lambda: read_slowly(apache), 1, send=some, process=(0, 0.2), bytes=(8e6, 8e6),
              measured=(1, 1), resumed=(0, 0))
    # With the event MPM, the kernel sends the file, and no worker waits for the client. Workers resume the request
    # instead.
    cases.run("a slow reader of a file", lambda: read_slowly(apache, "/sent/large"), 1, send=some, process=(0, 0.2),
              bytes=(8e6, 8e6), resumed=(1, 8e6) if mpm == "event" else (0, 0))
    cases.run("broken off", lambda: break_off(apache), 1, aborted=(1, 1), send=(0.2, 5), process=(0, 0.2))
    cases.run("proxied", lambda: send(get("/behind/slow", CLOSE)), 1, upstream=some, process=none)
    cases.run("proxied again", lambda: send(get("/behind/", CLOSE)), 1, upstream=(1e-6, 0.2))
    cases.run("to nobody", lambda: send(get("/nobody/", CLOSE)), 1, failed=(1, 1), upstream=(1e-6, 0.2))
    cases.run("TLS", lambda: apache.over_tls(get("/small", CLOSE)), 1, head=none)
    cases.run("pipelined in TLS", lambda: apache.over_tls(get("/small") * 9 + get("/small", CLOSE)), 10)
    if mpm != "prefork" and shutil.which("curl"):
        url = f"https://127.0.0.1:{apache.port_tls}/small?[1-20]"
        cases.run("HTTP/2", lambda: subprocess.run(["curl", "-skZ", "--http2", url], capture_output=True), 20)
    workers = apache.read()["workers"]
    busy = [w for w in workers if w["owner"] and (w["busy_since_ns"] or w["in_progress"])]
    cases.expect("no worker is busy", not busy, busy)
    return cases


def half_a_head(apache):
    with apache.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHo")
        client.shutdown(socket.SHUT_WR)
        drain(client)


def client(apache, until):
    """Sends calls, several on each connection, and ignores errors."""
    while time.monotonic() < until:
        try:
            with apache.connect() as one:
                one.sendall(get("/small") * 4 + get("/images/one", CLOSE))
                drain(one)
        except OSError:
            time.sleep(0.01)


def try_restarts(apache, cases):
    """Graceful restarts and killed children under load: the counts match the access log."""
    until = time.monotonic() + 6
    clients = [threading.Thread(target=client, args=(apache, until)) for _ in range(8)]
    for one in clients:
        one.start()
    for turn in range(4):
        time.sleep(1)
        if turn % 2:
            with open(f"/proc/{apache.process.pid}/task/{apache.process.pid}/children") as file:
                for child in file.read().split()[:1]:
                    os.kill(int(child), signal.SIGKILL)
        else:
            apache.process.send_signal(signal.SIGUSR1)
    for one in clients:
        one.join()
    time.sleep(5)
    read, lines = apache.read(), len(apache.lines())
    # If a thread is killed between writing the line and counting, which takes about a microsecond, the line is not
    # counted.
    cases.expect("as many requests as lines", 0 <= lines - read["requests"] <= 2 * 8, (read["requests"], lines))
    cases.expect("no worker was without a slot", read["lost"] == 0, read["lost"])
    print(f"  {read['requests']} requests, {lines} lines after restarts and killed children")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = 0
    for mpm in sys.argv[2:] or POOLS:
        directory = tempfile.mkdtemp(prefix="brimful-apache-")
        os.chmod(directory, 0o755)
        apache = Apache(mpm, os.path.abspath(sys.argv[1]), directory)
        print(mpm)
        try:
            cases = try_cases(apache, mpm)
            try_restarts(apache, cases)
        finally:
            apache.stop()
        cases.expect("all slots are released", not any(w["owner"] for w in apache.read()["workers"]), "owners")
        with open(f"{directory}/error.log") as file:
            wrong = [line for line in file if "brimful records" in line or "exit signal Seg" in line]
        cases.expect("the error log", not wrong, wrong)
        shutil.rmtree(directory)
        failed += cases.failed
    print("all cases hold" if failed == 0 else f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
