"""Kills `brimful module install nginx` at many instants, and checks that it can be repeated or removed.

    python3 bench/reliability/module_install.py --brimful target/release/brimful --count 200

Each trial installs the module into a private nginx directory. Trial n of --count kills the installation (SIGKILL) after
n / count of the time that a complete installation takes. In half of the trials, the module was installed before. In
half of the trials, the installation is repeated before the module is removed. Afterwards the directory must be as
before, and no temporary file may be left. Prints one line for each failure and a summary; exits with 1 if any trial
failed.

Needs nginx, and the tools that `brimful module install nginx` needs to build the module. The module is built once.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIGURATION = """pid nginx.pid;
error_log error.log;
include modules-enabled/*.conf;
events {}
http {
    access_log off;
    include conf.d/*.conf;
    server { listen 127.0.0.1:1; }
}
"""
# Files that nginx itself creates when it tests its configuration, so they may remain.
SERVERS_OWN = {"error.log", "nginx.pid"}
LIMIT_S = 900


def contents(directory: Path) -> dict[str, bytes]:
    """Paths and contents of all files and directories below a directory, without the server's own files."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.name not in SERVERS_OWN:
            is_file = path.is_file() and not path.is_symlink()
            found[str(path.relative_to(directory))] = path.read_bytes() if is_file else b""
    return found


class Bed:
    """A directory for nginx, the built module, and a directory for temporary files."""

    def __init__(self, brimful: Path, place: Path):
        self.brimful = brimful
        self.nginx = place / "nginx"
        self.scratch = place / "scratch"
        self.module = place / "module.so"
        for directory in [self.nginx / "modules-enabled", self.nginx / "conf.d", self.scratch]:
            directory.mkdir(parents=True)
        (self.nginx / "nginx.conf").write_text(CONFIGURATION)
        self.empty = contents(self.nginx)
        self.done("install", "--yes")
        self.module.write_bytes((self.nginx / "modules/ngx_http_brimful_module.so").read_bytes())
        self.done("remove")

    def start(self, action: str, *more: str) -> subprocess.Popen:
        command = [self.brimful, "module", action, "nginx", f"--prefix={self.nginx}", *more]
        environment = {**os.environ, "TMPDIR": str(self.scratch)}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )

    def done(self, action: str, *more: str, may_be_absent: bool = False) -> None:
        """Runs a command to its end; raises AssertionError if it fails."""
        process = self.start(action, *more)
        _, stderr = process.communicate(timeout=LIMIT_S)
        is_absent = may_be_absent and process.returncode == 2 and "has no module that brimful installed" in stderr
        if process.returncode != 0 and not is_absent:
            raise AssertionError(f"{action} exits with {process.returncode}: {stderr.strip()}")

    def install(self, *more: str) -> None:
        self.done("install", "--yes", f"--module={self.module}", *more)

    def kill_at(self, delay_s: float, is_second: bool, is_repeated: bool) -> None:
        """Kills one installation; raises AssertionError if a later step fails or leaves a file."""
        more = []
        if is_second:
            self.install()
            more = ["--class", "all=size 0-"]
        process = self.start("install", "--yes", f"--module={self.module}", *more)
        time.sleep(delay_s)
        process.kill()
        process.communicate(timeout=LIMIT_S)
        if is_repeated:
            self.install()
        self.done("remove", may_be_absent=not is_second and not is_repeated)
        left = contents(self.nginx)
        if left != self.empty:
            raise AssertionError(f"left: {sorted(left.keys() ^ self.empty.keys()) or 'a file with other contents'}")
        if scratch := [path.name for path in self.scratch.iterdir()]:
            raise AssertionError(f"temporary files are left: {scratch}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brimful", type=Path, default=Path("target/release/brimful"), help="the program")
    parser.add_argument("--count", type=int, default=200, help="number of instants [%(default)s]")
    arguments = parser.parse_args()
    if not arguments.brimful.is_file():
        print(f"error: {arguments.brimful} does not exist: build it, or name it with --brimful", file=sys.stderr)
        return 2
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        bed = Bed(arguments.brimful.resolve(), Path(place))
        begun = time.monotonic()
        bed.install()
        whole_s = time.monotonic() - begun
        bed.done("remove")
        for instant in range(arguments.count):
            is_second, is_repeated = instant % 2 == 1, instant // 2 % 2 == 1
            delay_s = whole_s * instant / arguments.count
            try:
                bed.kill_at(delay_s, is_second, is_repeated)
            except AssertionError as error:
                failed += 1
                print(f"killed after {1000 * delay_s:.1f} ms: {error}")
                # Run the next trial in a new directory.
                place_of_next = Path(place) / f"next-{instant}"
                bed = Bed(arguments.brimful.resolve(), place_of_next)
    print(f"{arguments.count} installations of {1000 * whole_s:.0f} ms killed: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
