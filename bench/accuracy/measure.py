"""One survey of one server, and the files kept of it."""

import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..side_by_side.tools import Failed, output
from . import reading
from .subjects import Subject

LIMIT_S = 300
# Number of clients that warm a server up, and the longest time for that.
WARM_UP_CLIENTS, WARM_UP_S = 8, 30
# Time that an interrupted survey has to restore the server and to write its results.
EXIT_GRACE_S = 15


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

    def key(self) -> dict:
        """The settings that must be equal in surveys that are compared."""
        binary = hashlib.sha256(Path(self.brimful).read_bytes()).hexdigest()[:16]
        return {
            "brimful": output([self.brimful, "--version"]).strip(),
            "binary": binary,
            "level": self.level,
            "cpus": [self.server_cpu, self.generator_cpu],
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Kept:
    """The files of one survey. `run` is written last and has the duration and the error, if any."""

    document: Path
    report: Path
    log: Path
    run: Path

    @staticmethod
    def at(directory: Path, name: str, repetition: int) -> "Kept":
        base = f"{name}-{repetition}"
        suffixes = (".json", ".html", ".log", ".run.json")
        return Kept(*(directory / (base + suffix) for suffix in suffixes))


def row(bench: Bench, subject: Subject, repetition: int) -> dict:
    """The result of one survey: made now, or kept from an earlier run."""
    kept = Kept.at(bench.kept, subject.name, repetition)
    if not kept.run.exists():
        kept.run.write_text(json.dumps(survey(bench, subject, repetition, kept), indent=1) + "\n")
    run = json.loads(kept.run.read_text())
    found = {"server": subject.name, "repetition": repetition, "seconds": run["seconds"]}
    if run["error"]:
        return found | {"error": run["error"]}
    try:
        return found | reading.figures(json.loads(kept.document.read_text()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Failed) as error:
        return found | {"error": f"{kept.document.name} cannot be read as a survey: {error!r}"}


def survey(bench: Bench, subject: Subject, repetition: int, kept: Kept) -> dict:
    """Starts the server, warms it up and surveys it. Returns the survey's duration, and its error or None."""
    place = bench.directory / subject.name
    began = time.monotonic()
    try:
        with subject.running(place, bench.server_cpu) as (url, pids):
            request = [argument for header in subject.headers for argument in ("--header", header)]
            warm_up(bench, url, request, subject.warm_up)
            watched = [argument for pid in pids for argument in ("--process", str(pid))]
            command = [
                bench.brimful, "survey", url, *request, *watched, "--thorough",
                "--server-cpus", str(bench.server_cpu), "--cpus", str(bench.generator_cpu),
                "--seed", str(bench.seed + repetition), "--level", bench.level or "3s",
                "--json", "--out", str(kept.document), "--report", str(kept.report), "--quiet",
            ]  # fmt: skip
            began = time.monotonic()
            error = complete(command, kept)
    except Failed as failure:
        error = str(failure)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return {"seconds": time.monotonic() - began, "error": error}


def warm_up(bench: Bench, url: str, request: Sequence[str], requests: int) -> None:
    command = [
        bench.brimful, "load", url, *request, "--clients", str(WARM_UP_CLIENTS), "--requests", str(requests),
        "--duration", f"{WARM_UP_S}s", "--cpus", str(bench.generator_cpu), "--quiet",
    ]  # fmt: skip
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    # Exit code 4 means that the generator was the limit, which does not matter here.
    if done.returncode not in (0, 4):
        raise Failed(f"warm-up: {last_line(done.stderr) or done.returncode}")


def complete(command: Sequence[str], kept: Kept) -> str | None:
    """Runs a survey until it ends or LIMIT_S passes. Returns an error if there is no usable document."""
    kept.document.unlink(missing_ok=True)
    with kept.log.open("w") as log:
        # The survey has its own session, so Ctrl-C reaches only this program, which then ends the survey cleanly.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
        )
        try:
            in_time = ends_within(process.pid, LIMIT_S)
        finally:
            stop(process)
    if not in_time:
        return f"not done after {LIMIT_S} s"
    # With a document, the exit codes 1 (refuted), 3 (disturbed) and 4 (client-limited) are results, too.
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


def last_line(text: str) -> str:
    """The last line that is not a hint, without the prefix `error: `."""
    lines = [re.sub(r"^error: ", "", line.strip()) for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith("hint:")]
    return (errors or lines or [""])[-1]
