#!/usr/bin/env python3
"""Makes each output of `brimful load` fail in several ways, and checks that the load still ends with its Record.

    python3 bench/reliability/side_outputs.py --build target/release

The outputs are --trace, --keep, --hdr, --html and --out. The failures are a disk (tmpfs) that is full from the start,
after half of the output or after nearly all of it; a device error (EIO: a terminal that was closed); a file size limit
(EFBIG); and a directory that is removed during the load. In one more load, the file of the request body shrinks. The
Record must be on standard output. Needs root, to mount the tmpfs. Exits with 1 if a Record is missing.
"""

import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from shared import parser

CALLS = 200
OUTPUTS = {
    "--trace": "trace",
    "--keep": "kept.json",
    "--hdr": "times.hgrm",
    "--html": "page.html",
    "--out": "record.json",
}
WAYS = ["full at 0 %", "full at 50 %", "full at 95 %", "EIO", "EFBIG", "directory removed"]
PAGE = 4096
WHOLE = "a complete Record"
#: Messages of a load that does not start, because it cannot write to the output.
REFUSED = re.compile(r"cannot write .*: choose another place|is not a file that can be replaced")


class Server(http.server.ThreadingHTTPServer):
    """Answers every request; `on_call` is called before each answer."""

    daemon_threads = True
    request_queue_size = 128
    on_call: Callable[[], None] = staticmethod(lambda: None)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.on_call()
        body = b"hello"
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


def main() -> int:
    arguments = parser(__doc__)
    program = arguments.parse_args().build.resolve() / "brimful"
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    results = []
    for output in OUTPUTS:
        for way in WAYS:
            results.append(fail(program, server, url, output, way))
            print(f"{output:8} {way:18} {results[-1]}", flush=True)
    results.append(shrink(program, server, url))
    print(f"{'body':8} {'file shrunk':18} {results[-1]}")
    lost = sum(result.startswith("NO") for result in results)
    print(f"{len(results)} loads, {results.count(WHOLE)} with a complete Record, {lost} without")
    return 1 if lost else 0


def fail(program: Path, server: Server, url: str, output: str, way: str) -> str:
    """Runs a load with one output that fails. Returns a description of its Record."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="brimful-side-outputs-")))
        place, prefix = directory / "place", []
        place.mkdir()
        name = place / OUTPUTS[output]
        size = whole_size(program, url, directory, output)
        if way.startswith("full"):
            share = int(way.split()[2]) / 100
            stack.enter_context(mounted(place, max(PAGE, int(size * share) // PAGE * PAGE)))
            if share == 0:
                fill(place)
        elif way == "EIO":
            # Writing to a terminal fails with EIO after the other end of the terminal was closed.
            terminal, other_end = os.openpty()
            stack.callback(os.close, other_end)
            name = directory / OUTPUTS[output]
            name.symlink_to(os.ttyname(other_end))
            close_once = contextlib.ExitStack()
            close_once.callback(os.close, terminal)
            stack.enter_context(close_once)
            server.on_call = close_once.close
        elif way == "EFBIG":
            prefix = ["bash", "-c", f'ulimit -f {size // 1024 // 2}; exec "$0" "$@"']
        else:
            server.on_call = lambda: shutil.rmtree(place, ignore_errors=True)
        stack.callback(setattr, server, "on_call", lambda: None)
        command = [*prefix, str(program), "load", url, "--json", "-c", "2", "-n", str(CALLS), output, str(name)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        # If brimful refuses the output before the load begins, there is no Record that could be lost.
        refused = done.returncode in (2, 3) and not done.stdout and REFUSED.search(done.stderr)
        return "refused before the load" if refused else judge(done)


def shrink(program: Path, server: Server, url: str) -> str:
    """Runs a load whose body file shrinks meanwhile. Returns a description of its Record."""
    with tempfile.NamedTemporaryFile() as body:
        body.write(b"x" * (1 << 20))
        body.flush()
        server.on_call = lambda: body.truncate(10)
        command = [str(program), "load", url, "--json", "-c", "2", "-n", str(CALLS), "--data", f"@{body.name}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        server.on_call = lambda: None
        return judge(done)


def judge(done: subprocess.CompletedProcess) -> str:
    try:
        scheduled = json.loads(done.stdout)["counts"]["scheduled"]
    except (ValueError, LookupError):
        return f"NO RECORD, exit {done.returncode}: {done.stderr.strip()[-200:]}"
    return WHOLE if scheduled == CALLS else f"NOT COMPLETE: {scheduled} calls of {CALLS}"


def whole_size(program: Path, url: str, directory: Path, output: str) -> int:
    """The size in bytes of this output when nothing fails."""
    name = directory / ("whole-" + OUTPUTS[output])
    command = [str(program), "load", url, "-q", "-c", "2", "-n", str(CALLS), output, str(name)]
    subprocess.run(command, capture_output=True, timeout=120)
    return name.stat().st_size


@contextlib.contextmanager
def mounted(place: Path, size: int) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> None:
    with contextlib.suppress(OSError), open(place / "other", "wb", buffering=0) as other:
        while True:
            other.write(b"x" * PAGE)


if __name__ == "__main__":
    sys.exit(main())
