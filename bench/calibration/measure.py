"""One repetition with one server: its capacity, runs well below it, the model of these, and what the model predicts.

The capacity of each mix is measured twice, before the runs and after them, by clients that leave the server no pause. Where
other work takes the server's CPU away meanwhile, requests per second say little of the server; requests per CPU second, which
the model predicts as well, still do.
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
# A load of next to nothing shows what the server does without any.
IDLE_RATE = 0.4


@dataclass(frozen=True)
class Bench:
    """Where things are, and how long to take."""

    brimful: str
    directory: Path
    server_cpu: int
    generator_cpu: int
    seconds: float
    records: Path | None

    def load(self, subject: Subject, port: int, shares: dict[str, float], *arguments: str) -> dict:
        """The Record of one run."""
        workload = self.directory / "workload.toml"
        workload.write_text(subject.workload())
        mix = ",".join(f"{name}={share}" for name, share in shares.items())
        said = self._run(
            "load", f"http://127.0.0.1:{port}/", "--workload", str(workload), "--mix", mix, "--watch", "--json", "--quiet",
            "--cpus", str(self.generator_cpu), "--duration", f"{self.seconds}s", *arguments,
        )  # fmt: skip
        return json.loads(said)

    def calibrate(self, name: str, records: Sequence[dict]) -> dict:
        directory = (self.records or self.directory) / name
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{i:02}.json" for i in range(len(records))]
        for path, record in zip(paths, records, strict=True):
            path.write_text(json.dumps(record))
        return json.loads(self._run("plan", "calibrate", "--json", "--servers", "1", *map(str, paths)))

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([self.brimful, *arguments], text=True, capture_output=True, check=False)
        # 4: the generator was the limit, which its Record says and calibration heeds.
        if done.returncode not in (0, 4):
            raise Failed(f"brimful {arguments[0]}: {done.stderr.strip() or done.returncode}")
        return done.stdout


def repetition(bench: Bench, subject: Subject, port: int, number: int, order: random.Random) -> dict:
    mixes = subject.mixes()
    before = {name: bench.load(subject, port, shares, "--clients", str(CLIENTS)) for name, shares in mixes.items()}
    capacity = {name: record["rates"]["completed"] for name, record in before.items()}
    knows = subject.program == "brimful"
    spent = [truth(port)] if knows else []
    runs = [("mix", level) for level in LEVELS] + [(name, level) for name in subject.classes for level in ALONE]
    order.shuffle(runs)
    records = [bench.load(subject, port, mixes["mix"], "--rate", str(IDLE_RATE))]
    for name, level in runs:
        rate = ["--rate", f"{level * capacity[name]:.1f}", "--arrivals", "poisson"]
        records.append(bench.load(subject, port, mixes[name], *rate))
    spent += [truth(port)] if knows else []
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
    if knows:
        found["demands"] = demands(calibration, *spent)
    return found


def compare(calibration: dict, shares: dict[str, float], measured: Sequence[dict]) -> dict:
    """The rate at which the model saturates over the one reached, and the demand at saturation over the one there."""
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
    """Each estimated demand, beside what the server itself counted: the CPU time it was set to burn, and handling the request."""
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
    """What the reference server has spent on each class."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/__truth") as page:
        return json.load(page)["classes"]


def cores(record: dict) -> float:
    return sum(process["cores"] for process in record["server"]["process"])


def other_work(record: dict, cpu: int) -> float:
    """Share of the server's CPU that others used."""
    idle = next(core["idle"] for core in record["server"]["cores"] if core["cpu"] == cpu)
    return max(0.0, 1 - idle - cores(record))


def shape(calibration: dict) -> str | None:
    return calibration["load_dependence"] and calibration["load_dependence"]["shape"]
