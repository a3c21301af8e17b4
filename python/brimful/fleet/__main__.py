"""`brimful fleet`: the fleet from the command line."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .. import _binary
from . import Figures, Outcome, open_places, run_command_line
from .survey_fleet import SurveyFleet, own_stdout, send
from .driver import progress_line

#: Flags of `brimful load` that the driver sets for each shard, so users must not set them.
DRIVER_FLAGS = (
    "--shard",
    "--start-at",
    "--clock-ahead",
    "--keep",
    "--until-stdin-ends",
    "--client-limit-only",
    "--client-max",
)


def main(arguments: list[str] | None = None) -> int:
    options, flags = _parser().parse_known_args(arguments)
    if options.command == "serve-survey":
        return _serve(options, flags)
    try:
        _refuse(flags)
        return _show(_run(options, flags), options)
    except _binary.Interrupted as interrupted:
        if isinstance(interrupted.result, Outcome):
            _show(interrupted.result, options)
        return 130
    except KeyboardInterrupt:
        return 130
    except _binary.BrimfulError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="brimful fleet", description="One load from many processes or machines.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    run = commands.add_parser(
        "run",
        help="generate one load with several shards, and write one Record",
        usage="brimful fleet run --shards N [--address ADDRESS] [--workload FILE] [OPTIONS] URL",
        description="Generates one load with several shards: processes of this machine, or actors of a Ray cluster.",
        epilog="All other flags are those of `brimful load`. They describe the whole load: --rate, --duration …",
        allow_abbrev=False,
    )
    # The URL is not an argument of this parser. It stays among the flags for `brimful load`, because only that command
    # knows which flags have a value.
    _add_shards(run)
    add = run.add_argument
    add("--workload", type=Path, metavar="FILE", help="local TOML file with the request classes and their mix")
    add("--seed", type=int, metavar="N", help="seed of all randomness [default: random; the Record has it]")
    add(
        "--slo",
        action="append",
        default=[],
        metavar="OBJECTIVE",
        help="objective of the whole load, like 'p99<50ms' (repeatable)",
    )
    add(
        "--keep",
        type=Path,
        metavar="DIR",
        help="keep each shard's own Record in this directory, during and after the load",
    )
    add("--json", action="store_true", help="print only the merged Record, as JSON")
    add("-o", "--out", type=Path, metavar="FILE", help="also write the merged Record to a file")
    add("-q", "--quiet", action="store_true", help="no progress on stderr")
    # `serve-survey` is a hidden command for `brimful survey --shards N`.
    _add_shards(commands.add_parser("serve-survey", allow_abbrev=False))
    return parser


def _add_shards(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--shards", type=int, required=True, metavar="N", help="number of shards that generate the load together")
    add("--address", help="Ray cluster on which they run: auto, HOST:6379 or ray://HOST:10001 [default: this machine]")
    add("--shards-per-node", type=int, default=1, metavar="N", help="with --address: shards on each node [default: 1]")
    add("--cpus-per-shard", type=float, default=1, metavar="N", help="with --address: CPUs of each shard [default: 1]")
    add("--scales", action="store_true", help="with --address: the cluster starts nodes on demand")
    add(
        "--source-ip",
        action="append",
        default=[],
        metavar="CIDR",
        help="source addresses, assigned to the shards in turn (repeatable)",
    )
    add("--cpus", type=cpu_list, default=[], metavar="LIST", help="CPUs, assigned to the shards in turn, like 1,3,5")
    add(
        "--lead",
        type=float,
        metavar="SECONDS",
        help="time between starting the shards and the start of the load [default: 1 + 0.1 per shard]",
    )


def _run(options: argparse.Namespace, flags: list[str]) -> Outcome:
    def on_second(figures: Figures, present: int) -> None:
        if not options.quiet:
            print(progress_line(figures, present, options.shards), file=sys.stderr)

    def note(text: str) -> None:
        if not options.quiet:
            print(text, file=sys.stderr)

    return run_command_line(
        flags,
        shards=options.shards,
        address=options.address,
        shards_per_node=options.shards_per_node,
        cpus_per_shard=options.cpus_per_shard,
        scales=options.scales,
        workload=options.workload,
        seed=options.seed,
        source_ips=options.source_ip,
        cpus=options.cpus,
        slo=options.slo,
        lead_s=options.lead,
        directory=options.keep,
        on_second=on_second,
        on_note=note,
    )


def _serve(options: argparse.Namespace, flags: list[str]) -> int:
    """Runs loads for a survey until stdin ends. Errors, also those at the start, are answers on stdout."""
    answers = own_stdout()
    try:
        with open_places(
            options.address, options.shards, options.shards_per_node, options.cpus_per_shard, options.scales
        ) as places:
            fleet = SurveyFleet(places, flags, source_ips=options.source_ip, cpus=options.cpus, lead_s=options.lead)
            fleet.serve(sys.stdin, answers)
    except _binary.BrimfulError as error:
        send(answers, {"error": str(error), "usage": error.exit_code == 2})
    except BrokenPipeError:
        return 1
    return 0


def _refuse(flags: list[str]) -> None:
    for word in flags:
        flag = word.partition("=")[0]
        if flag in DRIVER_FLAGS:
            raise _binary.UsageError(
                f"{flag} is for one process: leave it out, because a fleet sets it for each shard", 2
            )


def _show(outcome: Outcome, options: argparse.Namespace) -> int:
    record = outcome.record
    if options.out is not None:
        try:
            record.save(options.out)
        except OSError as error:
            raise _binary.HostError(
                f"cannot write {options.out}: {error.strerror}: choose another place with --out", 3
            ) from error
    print(json.dumps(record.source) if options.json else record.text, end="\n" if options.json else "")
    return record.exit_code


def cpu_list(text: str) -> list[int]:
    """Parses a list like `1,3-5`."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


if __name__ == "__main__":
    sys.exit(main())
