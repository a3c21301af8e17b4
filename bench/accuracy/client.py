"""Runs `brimful load`, and finds the error in what a command printed."""

import re
import subprocess
from collections.abc import Sequence

from ..side_by_side.tools import Failed

# Maximum time from the end of a load to the exit of `brimful load`, in seconds.
EXIT_S = 30


def load(command: Sequence[str], what: str, length_s: float) -> None:
    """Runs `brimful load`, which makes load for `length_s`. `what` names the load in errors."""
    limit_s = length_s + EXIT_S
    try:
        done = subprocess.run(
            command, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{what}: not done after {limit_s:.0f} s") from None
    # Exit code 4 means that the load generator was the limit. Such a run is kept: its Record contains this verdict.
    if done.returncode not in (0, 4):
        raise Failed(f"{what}: {last_line(done.stderr) or done.returncode}")


def last_line(text: str) -> str:
    """The last line that is not a hint, without the prefix `error: `."""
    lines = [re.sub(r"^error: ", "", line.strip()) for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith("hint:")]
    return (errors or lines or [""])[-1]
