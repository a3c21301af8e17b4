"""One survey of one server, the repetition of its levels, and the files kept of both."""

import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..side_by_side.tools import Failed, output
from . import client, reading, repeat
from .client import last_line
from .subjects import SUBJECTS, Subject

LIMIT_S = 300
# Number of clients that warm a server up, and maximum duration of the warm-up in seconds.
WARM_UP_CLIENTS, WARM_UP_S = 8, 30
# Time in which an interrupted survey must restore the server and write its results, in seconds.
EXIT_GRACE_S = 15
# Minimum time from the end of a survey to the repetition of its levels, in seconds. Usually the survey of the next
# server takes longer than this.
MIN_GAP_S = 60


@dataclass(frozen=True)
class Bench:
    """The paths, CPUs and settings of all surveys."""

    brimful: str
    directory: Path
    kept: Path
    server_cpu: int
    generator_cpu: int
    level: str | None
    seed: int
    # One survey in this number of each server's surveys is run with --thorough; none if it is zero.
    thorough_every: int = 3

    def key(self) -> dict:
        """The settings that must be equal in surveys that are compared."""
        binary = hashlib.sha256(Path(self.brimful).read_bytes()).hexdigest()[:16]
        return {
            "brimful": output([self.brimful, "--version"]).strip(),
            "binary": binary,
            "level": self.level,
            "cpus": [self.server_cpu, self.generator_cpu],
            "seed": self.seed,
            "thorough_every": self.thorough_every,
        }

    def is_thorough(self, subject: Subject, repetition: int) -> bool:
        """Whether a survey is thorough. Each round has the same number of thorough surveys, of other servers each."""
        place = next((i for i, other in enumerate(SUBJECTS) if other.name == subject.name), 0)
        return self.thorough_every > 0 and (place + repetition) % self.thorough_every == 0


@dataclass(frozen=True)
class Kept:
    """The files of one survey. `run` is written last. It has the duration, the error if any, and the repetitions of
    the levels."""

    document: Path
    report: Path
    log: Path
    run: Path

    @staticmethod
    def at(directory: Path, name: str, repetition: int) -> "Kept":
        base = f"{name}-{repetition}"
        suffixes = (".json", ".html", ".log", ".run.json")
        return Kept(*(directory / (base + suffix) for suffix in suffixes))


class Visit:
    """One survey of one server. The server keeps running after the survey, so that its levels can be repeated while the
    other servers' surveys are done."""

    def __init__(self, bench: Bench, subject: Subject, repetition: int) -> None:
        self._bench, self._subject, self._repetition = bench, subject, repetition
        self._kept = Kept.at(bench.kept, subject.name, repetition)
        self._place = bench.directory / f"{subject.name}-{repetition}"
        self._server = contextlib.ExitStack()
        self._load: list[str] = []
        self._run: dict = {}
        self._ended = 0.0

    def survey(self) -> None:
        """Starts the server, warms it up and surveys it, unless there is a kept result."""
        if self._kept.run.exists():
            return
        bench, subject = self._bench, self._subject
        thorough = bench.is_thorough(subject, self._repetition)
        began = time.monotonic()
        try:
            self._server.callback(shutil.rmtree, self._place, ignore_errors=True)
            url, pids = self._server.enter_context(subject.running(self._place, bench.server_cpu))
            request = [argument for header in subject.headers for argument in ("--header", header)]
            watched = [argument for pid in pids for argument in ("--process", str(pid))]
            self._load = [bench.brimful, "load", url, *request, "--cpus", str(bench.generator_cpu), "--quiet"]
            warm_up(self._load, subject.warm_up)
            self._load += watched
            command = [
                bench.brimful, "survey", url, *request, *watched, *(["--thorough"] if thorough else []),
                *(["--level", bench.level] if bench.level else []),
                "--server-cpus", str(bench.server_cpu), "--cpus", str(bench.generator_cpu),
                "--seed", str(bench.seed + self._repetition),
                "--json", "--out", str(self._kept.document), "--report", str(self._kept.report), "--quiet",
            ]  # fmt: skip
            began = time.monotonic()
            error = complete(command, self._kept)
        except Failed as failure:
            error = str(failure)
        self._ended = time.monotonic()
        self._run = {"seconds": self._ended - began, "error": error, "thorough": thorough}
        if error:
            self.close()

    def finish(self) -> None:
        """Repeats the survey's levels, ends the server and stores the result."""
        if self._kept.run.exists():
            return
        self._run["repeats"] = [] if self._run["error"] else self._repeat()
        self.close()
        self._kept.run.write_text(json.dumps(self._run, indent=1) + "\n")

    def _repeat(self) -> list[dict]:
        try:
            document = json.loads(self._kept.document.read_text())
            levels = reading.open_levels(document)
        except (OSError, *UNREADABLE):
            # No error is raised here: `row` reports later that the document cannot be read.
            return []
        if not levels:
            return []
        time.sleep(max(0.0, self._ended + MIN_GAP_S - time.monotonic()))
        seed = repeat.FIRST_SEED + self._bench.seed + 100 * self._repetition
        return repeat.repeat(self._load, document, self._bench.server_cpu, seed, self._place)

    def row(self) -> dict:
        return row(self._bench, self._subject, self._repetition)

    def close(self) -> None:
        """Ends the server."""
        self._server.close()


# Exceptions that may be raised if the document that is read is not a survey.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)


def row(bench: Bench, subject: Subject, repetition: int) -> dict:
    """The result of one kept survey."""
    kept = Kept.at(bench.kept, subject.name, repetition)
    run = json.loads(kept.run.read_text())
    found = {"server": subject.name, "repetition": repetition, "seconds": run["seconds"], "wall_s": run["seconds"]}
    found |= {"thorough": run["thorough"]} if "thorough" in run else {}
    if run["error"]:
        return found | {"error": run["error"]}
    try:
        return found | reading.figures(json.loads(kept.document.read_text()), run.get("repeats", []))
    except (OSError, Failed, *UNREADABLE) as error:
        return found | {"error": f"{kept.document.name} cannot be read as a survey: {error!r}"}


def warm_up(command: Sequence[str], requests: int) -> None:
    flags = ["--clients", str(WARM_UP_CLIENTS), "--requests", str(requests), "--duration", f"{WARM_UP_S}s"]
    client.load([*command, *flags], "warm-up", WARM_UP_S)


def complete(command: Sequence[str], kept: Kept) -> str | None:
    """Runs a survey until it ends or LIMIT_S passes. Returns an error if there is no usable document."""
    kept.document.unlink(missing_ok=True)
    with kept.log.open("w") as log:
        # The survey runs in a session of its own, so that Ctrl-C reaches only this program, which then interrupts the
        # survey.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
        )
        try:
            in_time = ends_within(process.pid, LIMIT_S)
        finally:
            stop(process)
    if not in_time:
        return f"not done after {LIMIT_S} s"
    # Exit codes 1 (the model is refuted), 3 (disturbed) and 4 (the client was the limit) are not failures if the survey
    # has written its document.
    return None if kept.document.exists() else f"exit {process.returncode}: {last_line(kept.log.read_text())}"


def ends_within(pid: int, timeout_s: float) -> bool:
    """Waits for a process without polling: polling would disturb the survey on these CPUs."""
    descriptor = os.pidfd_open(pid)
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def stop(process: subprocess.Popen) -> None:
    """Interrupts a survey that is still running, so that it can restore the server; kills it after EXIT_GRACE_S."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        if not ends_within(process.pid, EXIT_GRACE_S):
            process.kill()
    process.wait()

