"""Runs a command, lets nobody see what it prints, and prints what it has cost, as JSON: `account.py COMMAND…`.

For commands that are over before anyone could look at their clock. It is a program of its own, so that nothing else is
in the kernel's account of finished children, and so that it can be run where the command is to run.
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
