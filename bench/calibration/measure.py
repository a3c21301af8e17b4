"""One repetition with one server: its capacity, runs well below it, the model fitted to the runs, and its predictions.

The capacity of each mix is measured before the runs and again after them, by clients that never pause. Where other
programs use the server's CPU, requests per second say little about the server. Requests per CPU second, which the model
predicts as well, remain comparable.
"""

import json
import random
import subprocess
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ..side_by_side.tools import Failed
from .subjects import Subject

LEVELS = (0.2, 0.4, 0.6)
ALONE = (0.3, 0.6)
CLIENTS = 32
# Requests per second of the run that measures the CPU use of the almost idle server.
IDLE_RATE = 0.4


@dataclass(frozen=True)
class Bench:
    """The paths, CPUs and the length of all runs."""

    brimful: str
    directory: Path
    server_cpu: int
    generator_cpu: int
    seconds: float
    records: Path | None

    def load(self, subject: Subject, port: int, shares: dict[str, float], *arguments: str) -> dict:
        """Runs one load and returns its Record."""
        workload = self.directory / "workload.toml"
        workload.write_text(subject.workload())
        mix = ",".join(f"{name}={share}" for name, share in shares.items())
        printed = self._run(
            "load", f"http://127.0.0.1:{port}/", "--workload", str(workload), "--mix", mix, "--watch",
            "--cpus", str(self.generator_cpu), "--duration", f"{self.seconds}s", "--json", "--quiet", *arguments,
        )  # fmt: skip
        return json.loads(printed)

    def calibrate(self, name: str, records: Sequence[dict]) -> dict:
        directory = (self.records or self.directory) / name
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{i:02}.json" for i in range(len(records))]
        for path, record in zip(paths, records, strict=True):
            path.write_text(json.dumps(record))
        return json.loads(self._run("plan", "calibrate", "--json", "--servers", "1", *map(str, paths)))

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([self.brimful, *arguments], text=True, capture_output=True, check=False)
        # Exit code 4 means that the load generator was the limit. The Record says so, and `brimful plan calibrate`
        # leaves such a run out.
        if done.returncode not in (0, 4):
            raise Failed(f"brimful {arguments[0]}: {done.stderr.strip() or done.returncode}")
        return done.stdout


def repetition(bench: Bench, subject: Subject, port: int, number: int, order: random.Random) -> dict:
    mixes = subject.mixes()
    before = {name: bench.load(subject, port, shares, "--clients", str(CLIENTS)) for name, shares in mixes.items()}
    capacity = {name: record["rates"]["completed"] for name, record in before.items()}
    has_truth = subject.program == "brimful"
    spent = [truth(port)] if has_truth else []
    runs = [("mix", level) for level in LEVELS] + [(name, level) for name in subject.classes for level in ALONE]
    order.shuffle(runs)
    records = [bench.load(subject, port, mixes["mix"], "--rate", str(IDLE_RATE))]
    for name, level in runs:
        rate = ["--rate", f"{level * capacity[name]:.1f}", "--arrivals", "poisson"]
        records.append(bench.load(subject, port, mixes[name], *rate))
    spent += [truth(port)] if has_truth else []
    after = {name: bench.load(subject, port, shares, "--clients", str(CLIENTS)) for name, shares in mixes.items()}
    calibration = bench.calibrate(f"{subject.name}-{number}", records)
    found = {
        "mixes": {name: compare(calibration, mixes[name], [before[name], after[name]]) for name in mixes},
        "interval": calibration["saturation"]["ci95"],
        "load_dependence": shape(calibration),
        "runs": calibration["runs"],
        "warnings": calibration["warnings"],
        "left_out": len(calibration["left_out"]),
        "other_work": fmean(other_work(record, bench.server_cpu) for record in records),
    }
    if has_truth:
        found["demands"] = demands(calibration, *spent)
    return found


def compare(calibration: dict, shares: dict[str, float], measured: Sequence[dict]) -> dict:
    """The predicted saturation rate over the measured one: per second, and per second of the server's CPU time."""
    model = calibration["model"]
    names = [kind["name"] for kind in model["classes"]]
    total = sum(shares.values())
    cpu = next(k for k, station in enumerate(model["stations"]) if station["name"] == "cpu")
    demand = sum(shares[name] / total * d for name, d in zip(names, model["demands"][cpu], strict=True))
    if demand == 0:
        raise Failed(f"too few of the runs could be used: {calibration['left_out']}")
    saturation = (1 - model["stations"][cpu]["background"]) / demand
    reached = [record["rates"]["completed"] for record in measured]
    busy = [cores(record) for record in measured]
    per_cpu_second = sum(reached) / sum(busy)
    return {
        "predicted": saturation,
        "measured": fmean(reached),
        "busy": fmean(busy),
        "ratio": saturation / fmean(reached),
        "ratio_per_cpu_second": saturation / per_cpu_second,
    }


def demands(calibration: dict, before: dict, after: dict) -> dict:
    """Each estimated demand over the CPU time that the server itself counted per request, its own overhead included."""
    model = calibration["model"]
    found = {}
    for c, kind in enumerate(model["classes"]):
        cpu_s, requests = (after[kind["name"]][key] - before[kind["name"]][key] for key in ("cpu_s", "requests"))
        ci = calibration["uncertainty"][0][c]["ci95"]
        found[kind["name"]] = {
            "ratio": model["demands"][0][c] / (cpu_s / requests),
            "covered": ci is not None and ci["low"] <= cpu_s / requests <= ci["high"],
        }
    return found


def truth(port: int) -> dict:
    """The CPU time that the reference server has spent on each class."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/__truth") as page:
        return json.load(page)["classes"]


def cores(record: dict) -> float:
    return sum(process["cores"] for process in record["server"]["process"])


def other_work(record: dict, cpu: int) -> float:
    """Share of the server's CPU that other programs used."""
    idle = next(core["idle"] for core in record["server"]["cores"] if core["cpu"] == cpu)
    return max(0.0, 1 - idle - cores(record))


def shape(calibration: dict) -> str | None:
    return calibration["load_dependence"] and calibration["load_dependence"]["shape"]
