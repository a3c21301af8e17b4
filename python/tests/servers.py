"""The reference server on a free port."""

import contextlib
import subprocess
from collections.abc import Iterator

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
