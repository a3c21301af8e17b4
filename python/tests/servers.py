"""Runs the reference server on a free port, and waits for processes."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator

import brimful


@contextlib.contextmanager
def target(*flags: str) -> Iterator[str]:
    """Runs the server. Yields its URL."""
    command = [brimful.binary(), "target", "--listen", "127.0.0.1:0", "--with-parent", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1] + "/"
        finally:
            process.terminate()


def wait_until(condition: Callable[[], bool], limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"the condition was not met within {limit_s} s")
        time.sleep(0.05)
