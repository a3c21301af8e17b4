"""Measures the cost and the accuracy of the Server Module in nginx and Apache; prints tables and stores the results.

python3 -m bench.server_module --help
"""

import argparse
import os
import tempfile
from pathlib import Path

from .. import command
from ..monitor import suite
from . import counts, demands, overhead, phases, sockets, vts, webstone
from .bed import Bed, find, own_network, versions

CASES = [
    overhead.NGINX,
    overhead.APACHE,
    overhead.NGINX_CLASSES,
    vts.CASE,
    sockets.CASE,
    webstone.NGINX,
    webstone.APACHE,
    webstone.KERNEL,
    counts.NGINX,
    counts.APACHE,
    phases.NGINX,
    phases.APACHE,
    demands.NGINX,
    demands.APACHE,
]
SECONDS, QUICK_SECONDS = 600, 15


def main() -> int:
    options = parse()
    if options.report:
        return suite.show(options.report, CASES)
    build = options.build.resolve()
    if find("brimful", build) is None:
        return command.missing("server-module", "brimful", options.build, "make build")
    if not own_network():
        command.say("server-module: a network namespace needs root: run this as root")
        return 3
    command.raise_descriptor_limit()
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    document = command.head("brimful.bench-server-module/1") | {
        "versions": versions(build),
        "settings": {
            "quick": options.quick,
            "seconds": seconds,
            "server_cpu": options.server_cpu,
            "generator_cpu": options.generator_cpu,
        },
        "cases": [],
    }
    out = options.out or (None if options.quick else command.RESULTS / "server-module.json")
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        os.chmod(directory, 0o755)
        bed = Bed(
            build, Path(directory), options.server_cpu, options.generator_cpu, options.quick, seconds, options.vts
        )
        # Leave out the case of nginx-module-vts, unless its sources are given or the case is named.
        cases = [case for case in CASES if case != vts.CASE or options.vts or vts.CASE.name in (options.case or ())]
        return suite.measure(document, cases, bed, options.case, out)


def parse() -> argparse.Namespace:
    parser = command.parser("server-module", __doc__, "brimful", "bench/results/server-module.json")
    command.add_choice(parser, "--case", [case.name for case in CASES])
    command.add_cpus(parser)
    parser.add_argument(
        "--quick", action="store_true", help="use short runs, only to check that the benchmark works; stores nothing"
    )
    parser.add_argument(
        "--seconds",
        type=command.positive,
        help=f"length of each case that toggles [default: {SECONDS}, quick {QUICK_SECONDS}]",
    )
    parser.add_argument(
        "--vts",
        type=Path,
        metavar="DIRECTORY",
        help="build nginx-module-vts from the sources in this directory, and measure its cost as well",
    )
    return parser.parse_args()


if __name__ == "__main__":
    command.run(main)
