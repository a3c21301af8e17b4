"""Reads and writes a file and starts processes at a steady rate, for the counters of both: `churn.py DIRECTORY
SECONDS`."""

import mmap
import os
import sys
import time
from pathlib import Path

BLOCK_BYTES = 64 * 1024
BLOCKS = 64
PERIOD_S = 0.02


def main(directory: Path, seconds: float) -> None:
    # Bypass the page cache, so that the disk is really written to. O_DIRECT needs memory that is aligned to a page.
    block = mmap.mmap(-1, BLOCK_BYTES)
    descriptor = os.open(directory / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    begun = time.monotonic()
    turn = 0
    while (due := begun + turn * PERIOD_S) < begun + seconds:
        time.sleep(max(0, due - time.monotonic()))
        at = turn % BLOCKS * BLOCK_BYTES
        os.pwrite(descriptor, block, at)
        os.preadv(descriptor, [block], at)
        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)
        turn += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
