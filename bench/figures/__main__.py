"""Measures the named figures (default: all), writes their tables and draws the pictures."""

import argparse
import contextlib
import datetime
import os
import platform
import re
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from . import counters, hosts, plots, servers, table, testbed
from .figures import FULL, QUICK, TABLES, Servers
from .measure import URL, Lab

HERE = Path(__file__).parent
FIGURES = {
    "fig5": "fig5",
    "fig6": "fig6-7",
    "fig7": "fig6-7",
    "fig8": "fig8",
    "httperf-fig2": "httperf-fig2",
    "client-hosts": "client-hosts",
    "syn-cost": "syn-cost",
    "wide": "wide",
}
# Limit of file descriptors. It suffices for the largest number of S-Clients, and for their responses in progress.
DESCRIPTORS = 70_000


def main():
    options = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not options.draw:
            measure(options)
        draw(options.out)
    except testbed.TestbedError as error:
        print(f"bench.figures: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    return 0


def parse():
    parser = argparse.ArgumentParser(prog="python3 -m bench.figures", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=f"{', '.join(FIGURES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="few points and short windows, about two minutes in all")
    parser.add_argument(
        "--draw", action="store_true", help="measure nothing; draw the pictures from the tables there are"
    )
    parser.add_argument(
        "--out", type=Path, help="directory to write to (default: bench/figures; with --quick: target/figures)"
    )
    parser.add_argument(
        "--brimful", type=Path, default=Path("target/release/brimful"), help="the binary (default: %(default)s)"
    )
    parser.add_argument("--server-cpu", type=int, default=0, help="the server's CPU (default: %(default)s)")
    parser.add_argument("--client-cpu", type=int, default=1, help="the generator's CPU (default: %(default)s)")
    parser.add_argument("--window", type=float, help="seconds that each point is measured for")
    parser.add_argument("--queue", type=int, help="Figures 7 and 8: length of the listen queue (default: 1024)")
    parser.add_argument("--period", type=float, help="Figure 8: seconds from burst to burst (default: 100)")
    parser.add_argument("--periods", type=int, help="Figure 8: bursts per point (default: 3)")
    options = parser.parse_args()
    unknown = set(options.figures) - set(FIGURES)
    if unknown:
        parser.error(f"there is no figure {', '.join(sorted(unknown))}; choose from {', '.join(FIGURES)}")
    options.out = options.out or (Path("target/figures") if options.quick else HERE)
    return options


def measure(options):
    """Measures one table after the other, and writes each when it is complete."""
    check(options)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    of_hosts = client_cpus(options.server_cpu, options.client_cpu)
    lab = Lab(options.brimful.resolve(), options.server_cpu, options.client_cpu, client_cpus=of_hosts)
    given = {name: getattr(options, name) for name in ("window", "queue", "period", "periods") if getattr(options, name)}
    plan = replace(QUICK if options.quick else FULL, **given)
    all_servers = Servers(lab, plan)
    (options.out / "data").mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(FIGURES[figure] for figure in options.figures or FIGURES):
        kind = TABLES[name]
        chosen = all_servers.like_paper(kind.servers) if kind.servers else []
        others = counters.busy(1)
        if others > 0.1:
            print(
                f"bench.figures: other programs use {others:.2f} CPUs, which will disturb the figures", file=sys.stderr
            )
        rows = list(kind.rows(lab, plan, chosen))
        drawn_figures = [figure for figure, table_name in FIGURES.items() if table_name == name]
        notes = [
            kind.title,
            f"python3 -m bench.figures {' '.join(drawn_figures)}: warm-up {plan.warm_up:g} s, window {plan.window:g} s",
            f"brimful load {kind.load.format(**vars(plan))} {URL}",
            *(f"{server.name}: {server.describe()}" for server in chosen),
            f"{machine(lab)}; other work before: {others:.2f} CPUs",
        ]
        table.write(options.out / "data" / f"{name}.tsv", notes, rows)


def client_cpus(server_cpu, client_cpu):
    """The CPUs of two client hosts: the generator's, and another one. With two CPUs in all, both hosts share one, which
    then limits them together."""
    others = sorted(os.sched_getaffinity(0) - {server_cpu, client_cpu})
    return (client_cpu, others[0] if others else client_cpu)


def check(options):
    """Raises TestbedError if the measurements lack a program or a CPU."""
    testbed.check(options.server_cpu, options.client_cpu)
    for path, remedy in (
        (options.brimful, "build it with make build, or name it with --brimful"),
        (Path(servers.APACHE), "apt install apache2-bin"),
        (Path(hosts.NGINX), "apt install nginx"),
    ):
        if not path.exists():
            raise testbed.TestbedError(f"{path} does not exist: {remedy}")


def machine(lab):
    """A description of the machine and the program versions, with the date."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    apache, brimful = (
        subprocess.run(command, capture_output=True, text=True).stdout
        for command in ([servers.APACHE, "-v"], [lab.brimful, "--version"])
    )
    return "; ".join(
        [
            f"{cpu[1] if cpu else platform.machine()}, server on CPU {lab.server_cpu}, client on CPU {lab.client_cpu}",
            f"Linux {platform.release()}",
            re.search(r"Apache/\S+", apache)[0],
            brimful.strip(),
            datetime.date.today().isoformat(),
        ]
    )


def draw(out):
    tables = {path.stem: table.read(path) for path in sorted((out / "data").glob("*.tsv"))}
    for name, svg in plots.pictures(tables):
        (out / f"{name}.svg").write_text(svg)
        print(out / f"{name}.svg")


if __name__ == "__main__":
    sys.exit(main())
