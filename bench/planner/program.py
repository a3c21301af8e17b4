"""The planner's solvers: every request starts a new process of `brimful-bench-planner`."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..side_by_side.tools import Failed

NAME = "brimful-bench-planner"


@dataclass(frozen=True)
class Program:
    path: Path

    def ask(self, request: dict) -> tuple[dict | list, float]:
        """The program's answer, and its peak resident memory in MB."""
        ended = subprocess.run([self.path], input=json.dumps(request), capture_output=True, text=True)
        if ended.returncode != 0:
            raise Failed(f"{NAME}: {ended.stderr.strip()}")
        reply = json.loads(ended.stdout)
        return reply["answer"], reply["peak_rss_kib"] * 1024 / 1e6
