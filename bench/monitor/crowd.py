"""A server of many idle tasks that listens on a port: `crowd.py threads|processes NUMBER`.

It prints the port when all tasks exist, and ends when its standard input ends. A monitor reads sleeping tasks at the
same cost as running ones, and sleeping tasks do not disturb the measurement.
"""

import ctypes
import os
import signal
import socket
import sys
import threading

NAME = "brimful-crowd"
PR_SET_NAME, PR_SET_PDEATHSIG = 15, 1


def main(shape: str, number: int) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NAME, NAME.encode(), 0, 0, 0)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.stack_size(64 * 1024)
    for _ in range(number - 1):
        if shape == "threads":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        elif os.fork() == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            while True:
                signal.pause()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
