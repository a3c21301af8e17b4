#!/usr/bin/env python3
"""Tests of the module in a real nginx: nginx_test.py MODULE.so. Prints what fails; exits with 1 then. NGINX_COMMAND
names another nginx, or says how to run it, such as "valgrind --trace-children=yes nginx" (which is so slow that some
checks of times fail).

A private nginx and a server behind it listen on free ports of 127.0.0.1; all of their files are in a temporary
directory. Each case sends requests as clients do, good and bad, and says what the recorder must have seen of them.
Whatever happens, there must be as many requests as lines in the access log.
"""
import http.server
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import dump
from behind import Threaded, free_port

CONFIGURATION = """
load_module {module};
worker_processes 2;
pid {dir}/nginx.pid;
error_log {dir}/error.log info;
{user}
events {{ worker_connections 256; }}
http {{
    brimful {memory};
    brimful_cpu_one_in 1;
    brimful_class images url /images/*;
    brimful_class small size 0-4999;
    log_format times '$status $request_time $request';
    access_log {dir}/access.log times;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
    keepalive_requests 1000000;
    client_header_timeout 1s;
    upstream behind {{ server 127.0.0.1:{behind}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{port_tls} ssl;
        ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
        root {dir}/html;
        error_page 500 502 /error.html;
        location /fails {{ return 500; }}
        location /moved {{ rewrite ^ /small last; }}
        location /proxy/ {{ proxy_pass http://behind/; proxy_http_version 1.1; proxy_set_header Connection ""; }}
        location /nobody/ {{ proxy_pass http://127.0.0.1:1/; }}
        location /included/ {{ ssi on; ssi_types *; alias {dir}/html/; }}
    }}
}}
"""


class Behind(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "slow" in self.path:
            time.sleep(0.3)
        try:
            self.send_response(200)
            self.send_header("Content-Length", "2000")
            self.end_headers()
            self.wfile.write(b"x" * 2000)
        except OSError:
            pass  # nginx has closed the connection, because its client has disconnected

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


class Nginx:
    def __init__(self, module, directory):
        self.dir, self.memory = directory, f"{directory}/memory"
        self.port, self.port_tls = free_port(), free_port()
        behind = Threaded(("127.0.0.1", 0), Behind)
        threading.Thread(target=behind.serve_forever, daemon=True).start()
        os.mkdir(f"{directory}/html")
        for name, size in (("small", 1000), ("large", 5_000_000)):
            with open(f"{directory}/html/{name}", "wb") as file:
                file.write(b"x" * size)
        os.mkdir(f"{directory}/html/images")
        shutil.copy(f"{directory}/html/large", f"{directory}/html/images/one.png")
        with open(f"{directory}/html/error.html", "w") as file:
            file.write("sorry")
        with open(f"{directory}/html/page", "w") as file:
            file.write('<!--#include virtual="/small" --><!--#include virtual="/proxy/slow" -->')
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-keyout", f"{directory}/key.pem", "-out", f"{directory}/cert.pem"],
                       check=True, capture_output=True)
        with open(f"{directory}/nginx.conf", "w") as file:
            file.write(CONFIGURATION.format(
                module=os.path.abspath(module), dir=directory, memory=self.memory, port=self.port,
                port_tls=self.port_tls, behind=behind.server_address[1],
                user="user root;" if os.geteuid() == 0 else ""))
        command = os.environ.get("NGINX_COMMAND", "nginx").split()
        self.process = subprocess.Popen([*command, "-p", directory, "-c", "nginx.conf", "-g", "daemon off;"])
        self.wait_for(lambda: self.lines() is not None and os.path.exists(self.memory))

    def wait_for(self, what, seconds=20):
        end = time.monotonic() + seconds
        while not what():
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit(f"error: nginx did not come to it; see {self.dir}/error.log")
            time.sleep(0.02)

    def lines(self):
        try:
            with open(f"{self.dir}/access.log") as file:
                return [line.split(" ", 2) for line in file]
        except FileNotFoundError:
            return None

    def workers(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def connect(self, tls=False):
        one = socket.create_connection(("127.0.0.1", self.port_tls if tls else self.port), timeout=30)
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            one = context.wrap_socket(one)
        return one


def receive_all(one):
    size = 0
    while more := one.recv(1 << 16):
        size += len(more)
    return size


def ask(path, more="Connection: close\r\n", method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{more}\r\n".encode()


def whole(path, tls=False):
    def send(nginx):
        with nginx.connect(tls) as one:
            one.sendall(ask(path))
            receive_all(one)
    return send


def in_parts(*parts, pause=0.3, tls=False):
    def send(nginx):
        with nginx.connect(tls) as one:
            for part in parts[:-1]:
                one.sendall(part)
                time.sleep(pause)
            one.sendall(parts[-1])
            receive_all(one)
    return send


def gone_after(data, seconds):
    def send(nginx):
        with nginx.connect() as one:
            one.sendall(data)
            time.sleep(seconds)
    return send


def slow_reader(nginx):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        one.connect(("127.0.0.1", nginx.port))
        one.sendall(ask("/images/one.png"))
        time.sleep(0.5)
        receive_all(one)


# Each case has a name, a function that sends requests, the number of these requests, and the expected values of a
# class: exact values of counts, and lower bounds of the times of phases in ms.
CASES = [
    ("a small file", whole("/small"), 1, {("small", "requests"): 1, ("small", "bytes"): 1000}),
    ("an image, by its path", whole("/images/one.png?x"), 1, {("images", "bytes"): 5_000_000}),
    ("a large file", whole("/large"), 1, {("other", "bytes"): 5_000_000}),
    ("TLS", whole("/small", tls=True), 1, {("small", "requests"): 1}),
    ("kept alive and pipelined", in_parts(ask("/small", "") * 9, ask("/small")), 10, {("small", "requests"): 10}),
    ("a slow head", in_parts(b"GET /small HT", b"TP/1.1\r\nHost: a\r\n", b"Connection: close\r\n\r\n"), 1,
     {("small", "head"): 400}),
    ("a slow head over TLS", in_parts(b"GET /small HT", b"TP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", tls=True), 1,
     {("small", "head"): 200}),
    ("a slow head behind another",
     in_parts(ask("/small", "") + b"GET /sma", b"ll HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 2,
     {("small", "head"): 200}),
    ("a slow body",
     in_parts(ask("/proxy/a", "Content-Length: 10\r\nConnection: close\r\n", "POST"), b"12345", b"67890"), 1,
     {("small", "head"): 400}),
    ("a body that is not read", gone_after(ask("/small", "Content-Length: 100000\r\n", "POST") + b"abc", 0.4), 1,
     {("small", "send"): 300}),
    ("a slow reader", slow_reader, 1, {("images", "send"): 400, ("images", "resumed"): 1}),
    ("a malformed head", in_parts(b"GARBAGE\r\n\r\n"), 1, {("small", "requests"): 1}),
    ("a head without a host", in_parts(b"GET / HTTP/1.1\r\n\r\n"), 1, {("small", "requests"): 1}),
    ("half a head", gone_after(b"GET / HTTP/1.1\r\nHo", 0.3), 1, {("small", "aborted"): 1, ("small", "head"): 250}),
    ("a head that never ends", in_parts(b"GET / HTTP/1.1\r\nHo", b"st"), 1, {("small", "head"): 900}),
    ("a client that gives up", gone_after(ask("/proxy/slow"), 0.1), 1,
     {("small", "aborted"): 1, ("small", "upstream"): 80}),
    ("an error", whole("/fails"), 1, {("small", "failed"): 1}),
    ("not found", whole("/nothing"), 1, {("small", "requests"): 1}),
    ("an internal redirect", whole("/moved"), 1, {("small", "requests"): 1}),
    ("proxied", whole("/proxy/slow"), 1, {("small", "upstream"): 280}),
    ("nobody behind", whole("/nobody/"), 1, {("small", "failed"): 1}),
    ("subrequests", whole("/included/page"), 1, {("small", "requests"): 1, ("small", "upstream"): 280}),
]


# Names of the expected values that are lower bounds. The others are exact values.
AT_LEAST = (*dump.PHASES, "resumed")


def difference(before, after, name, figure):
    first, second = before["classes"][name], after["classes"][name]
    if figure in dump.PHASES:
        return 1000 * (second["phases"][figure]["sum_s"] - first["phases"][figure]["sum_s"])
    return second[figure] - first[figure]


def run_case(nginx, name, send, requests, wanted):
    before, lines, began = dump.read(nginx.memory), len(nginx.lines()), time.monotonic()
    send(nginx)
    nginx.wait_for(lambda: len(nginx.lines()) >= lines + requests
                   and dump.read(nginx.memory)["requests"] >= before["requests"] + requests)
    took = 1000 * (time.monotonic() - began)
    after = dump.read(nginx.memory)
    problems = []
    if len(nginx.lines()) != lines + requests or after["requests"] != before["requests"] + requests:
        problems.append(f"{after['requests'] - before['requests']} requests and {len(nginx.lines()) - lines} lines")
    for (of, figure), least in wanted.items():
        value = difference(before, after, of, figure)
        if value < least or (figure not in AT_LEAST and value != least):
            problems.append(f"{figure} of {of} is {value}, not {least}")
    if sum(worker["in_progress"] for worker in after["workers"]) != 0:
        problems.append("a request never ends")
    total = sum(difference(before, after, of, phase) for of in after["classes"] for phase in dump.PHASES)
    if not 0 < total <= took:
        problems.append(f"the phases are {total:.1f} ms of {took:.1f} ms")
    return problems


def run_load(nginx):
    """Continuous clients, reloads, and 4 killed workers: no request is lost or counted twice."""
    stop = threading.Event()

    def client():
        while not stop.is_set():
            try:
                with nginx.connect() as one:
                    for _ in range(200):
                        one.sendall(ask("/small", "") * 3)
                        if not one.recv(1 << 16):
                            break
            except OSError:
                pass

    before, lines = dump.read(nginx.memory)["requests"], len(nginx.lines())
    clients = [threading.Thread(target=client) for _ in range(8)]
    for one in clients:
        one.start()
    for _ in range(4):
        time.sleep(0.5)
        nginx.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        os.kill(nginx.workers()[-1], signal.SIGKILL)
    stop.set()
    for one in clients:
        one.join()
    time.sleep(1)
    after = dump.read(nginx.memory)
    counted, logged = after["requests"] - before, len(nginx.lines()) - lines
    # A request is counted just before its line is written. If a worker is killed in between, which is rare, a counted
    # request has no line. Four workers are killed here.
    fine = 0 <= counted - logged <= 4 and logged > 100
    problems = [] if fine else [f"{counted} requests and {logged} lines"]
    return problems + (["a worker found no slot"] if after["lost"] else [])


# Number of requests. On average, one in 16 is sampled, so it is almost certain that at least one of these is.
COLD_REQUESTS = 400


def run_cold(nginx):
    """A file that is not in the page cache: its blocks are those of its class, and of no other class. It is requested
    until the module has sampled a request for it."""
    path = f"{nginx.dir}/html/images/one.png"
    if subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True).stdout.strip() == "tmpfs":
        print("SKIPPED: files in a tmpfs are always in memory: set TMPDIR to a folder on a disk")
        return []
    before = dump.read(nginx.memory)["classes"]
    for _ in range(COLD_REQUESTS):
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        whole("/images/one.png")(nginx)
        whole("/small")(nginx)
        time.sleep(0.05)
        after = dump.read(nginx.memory)["classes"]
        counted = after["images"]["blocks_count"] - before["images"]["blocks_count"]
        if counted:
            break
    read, small = (after[name]["blocks_read"] - before[name]["blocks_read"] for name in ("images", "small"))
    fine = counted > 0 and small == 0 and read >= counted * (5_000_000 // 512)
    return [] if fine else [f"{read} blocks of {counted} image(s), and {small} of a small file"]


def main():
    if len(sys.argv) != 2:
        sys.exit("error: name the module to be tested, which nginx/build.sh makes")
    directory = tempfile.mkdtemp(prefix="brimful-nginx-")
    nginx = Nginx(sys.argv[1], directory)
    failed = 0
    try:
        special = {"load": run_load, "a file that is not in memory": run_cold}
        for case in [*CASES, *((name, None, None, None) for name in reversed(special))]:
            problems = special[case[0]](nginx) if case[0] in special else run_case(nginx, *case)
            failed += bool(problems)
            print(f"{'FAILED' if problems else 'ok':7}{case[0]}{': ' if problems else ''}{'; '.join(problems)}")
    finally:
        nginx.process.terminate()
        nginx.process.wait()
        if not failed:
            shutil.rmtree(directory)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
