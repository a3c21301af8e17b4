"""Measures the cost and the accuracy of watching, compared with other monitors; prints tables and stores the results.

python3 -m bench.monitor --help
"""

import argparse
import os
import tempfile
from pathlib import Path

from .. import command
from . import lookup, minute, overflow, overhead, sample, states, suite, upkeep
from .bed import Bed
from .tools import Programs

CASES = [
    sample.CASE,
    states.CASE,
    lookup.CASE,
    upkeep.CASE,
    overflow.CASE,
    minute.MEMORY,
    minute.AGREEMENT,
    overhead.CASE,
]
OVERHEAD_S, QUICK_OVERHEAD_S = 600, 80


def main() -> int:
    options = parse()
    if options.report:
        return suite.show(options.report, CASES)
    programs = Programs.find(options.build.resolve())
    for name, remedy in (("brimful", "make build"), ("probe", "make bench-monitor")):
        if programs.path(name) is None:
            return command.missing("monitor", name, options.build, remedy)
    if os.geteuid() != 0:
        command.say("monitor: namespaces, eBPF and other users' processes need root: run this as root")
        return 3
    command.raise_descriptor_limit()
    overhead_s = options.overhead_seconds or (QUICK_OVERHEAD_S if options.quick else OVERHEAD_S)
    document = command.head("brimful.bench-monitor/1") | {
        "versions": programs.versions(),
        "settings": {
            "quick": options.quick,
            "overhead_seconds": overhead_s,
            "server_cpu": options.server_cpu,
            "generator_cpu": options.generator_cpu,
        },
        "cases": [],
    }
    out = options.out or (None if options.quick else command.RESULTS / "monitor.json")
    with tempfile.TemporaryDirectory(prefix="brimful-bench-") as directory:
        bed = Bed(programs, Path(directory), options.server_cpu, options.generator_cpu, options.quick, overhead_s)
        return suite.measure(document, CASES, bed, options.case, out)


def parse() -> argparse.Namespace:
    parser = command.parser("monitor", __doc__, "brimful and the probe", "bench/results/monitor.json")
    command.add_choice(parser, "--case", [case.name for case in CASES])
    command.add_cpus(parser)
    parser.add_argument(
        "--quick", action="store_true", help="use short runs, only to check that the benchmark works; stores nothing"
    )
    parser.add_argument(
        "--overhead-seconds",
        type=int,
        help=f"length of the case overhead [default: {OVERHEAD_S}, quick {QUICK_OVERHEAD_S}]",
    )
    return parser.parse_args()


if __name__ == "__main__":
    command.run(main)
