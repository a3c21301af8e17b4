"""Runs a command, discards its output and prints its CPU time as JSON: `account.py COMMAND…`.

This is for commands that end before their CPU clock could be read. It is a separate program so that the kernel's
account of finished children contains only the command, and so that it can run in another namespace.
"""

import json
import resource
import subprocess
import sys


def main(command: list[str]) -> int:
    code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"cpu_us": 1e6 * (usage.ru_utime + usage.ru_stime)}))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
