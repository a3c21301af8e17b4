"""brimful's own: one fresh process of `brimful-bench-planner` for each thing asked."""

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
        """What it answers, and its peak resident memory in MB."""
        ended = subprocess.run([self.path], input=json.dumps(request), capture_output=True, text=True)
        if ended.returncode != 0:
            raise Failed(f"{NAME}: {ended.stderr.strip()}")
        said = json.loads(ended.stdout)
        return said["answer"], said["peak_rss_kib"] * 1024 / 1e6
