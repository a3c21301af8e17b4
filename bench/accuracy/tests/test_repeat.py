"""The loads that repeat a survey's levels, and the figures that are read from their Records."""

import json
import tempfile
import unittest
from pathlib import Path

from bench.accuracy import repeat

from .made_up import comparison, level, record, survey


class Loads(unittest.TestCase):
    def test_a_load_has_the_planned_rate_the_length_and_the_pool_of_its_level(self) -> None:
        one = level(0.8, window_s=4.0, offered=813.0)
        self.assertEqual(
            repeat.level_flags(survey(one, connections={"most": 32}), one),
            ["--rate", "800.000", "--arrivals", "poisson", "--duration", "4s", "--max-connections", "32"],
        )

    def test_connections_are_unlimited_without_a_pool(self) -> None:
        one = level(0.8, workload="bursts", window_s=2.1)
        flags = repeat.level_flags(survey(one), one)
        self.assertEqual(flags[2:], ["--arrivals", "mmpp:1.6,50%,200ms", "--duration", "2.1s"])

    def test_the_rate_is_a_share_of_the_predicted_saturation_rate_without_a_predicted_throughput(self) -> None:
        one = level(0.8, throughput=comparison(None, 790))
        made = survey(one, saturation_rate=comparison(2000, None))
        self.assertAlmostEqual(repeat.planned_rate(made, one), 1600)
        self.assertIsNone(repeat.planned_rate(survey(one, saturation_rate=comparison(None, None)), one))

    def test_a_level_of_unknown_arrivals_is_not_repeated(self) -> None:
        one = level(0.6, workload="unseen mix", window_s=2.0)
        found = repeat.repeat([], survey(one), 0, 1, Path())
        self.assertEqual([one["error"] for one in found], ["its arrivals or its rate are unknown"])

    def test_the_bursts_are_those_of_surveys(self) -> None:
        source = Path(repeat.__file__).parents[2] / "crates" / "survey" / "src" / "predictions.rs"
        self.assertIn(f'ON_OFF: &str = "{repeat.ARRIVALS["bursts"]}"', source.read_text())


class Records(unittest.TestCase):
    def test_times_are_in_seconds(self) -> None:
        found = repeat.figures(record(), 0)
        self.assertEqual(found["response_time_s"], {"mean": 0.012, "p50": 0.010, "p95": 0.030, "p99": 0.040})
        self.assertEqual((found["offered"], found["reasons"]), (801.0, []))

    def test_a_record_without_responses_has_no_times(self) -> None:
        self.assertEqual(set(repeat.figures(record(None), 0)["response_time_s"].values()), {None})

    def test_the_doubts_are_those_of_a_level(self) -> None:
        self.assertEqual(repeat.figures(record(1, "generator_late"), 0)["reasons"], ["generator_late"])
        # Other programs use 1 − 0.19 (idle) − 0.65 (server) = 16 % of the CPU, which exceeds the limit of 15 %.
        self.assertEqual(repeat.figures(record(1, idle=0.19), 0)["reasons"], ["other_work"])
        self.assertEqual(repeat.figures(record(1, idle=0.21), 0)["reasons"], [])
        self.assertEqual(repeat.figures(record(1, error_share=0.01), 0)["reasons"], ["server_errors"])
        self.assertIsNone(repeat.other_work(record() | {"server": None}, 0))


class Runs(unittest.TestCase):
    """Repetitions by a program that stands in for `brimful load`."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)

    def client(self, *records: dict, code: int = 0) -> list[str]:
        """A program that logs its arguments and, for each load with `--out`, copies the next of the records."""
        for i, one in enumerate(records):
            (self.place / f"{i}.json").write_text(json.dumps(one))
        script = self.place / "load"
        script.write_text(
            f'cd "{self.place}"\necho "$*" >> log\n'
            'for last; do :; done\ncase "$*" in *--out*) set -- ?.json; mv "$1" "$last";; esac\n'
            f"echo 'error: no' >&2\nexit {code}\n"
        )
        return ["sh", str(script)]

    def test_every_level_is_repeated_after_a_closed_load(self) -> None:
        levels = [level(fraction, window_s=2.0) for fraction in (0.7, 0.5)]
        found = repeat.repeat(
            self.client(record(1000), record(2000)), survey(*levels, connections={"most": 8}), 0, 7, self.place
        )
        means = [(one["fraction"], one["response_time_s"]["mean"]) for one in found]
        self.assertEqual(means, [(0.5, 0.001), (0.7, 0.002)])
        log = (self.place / "log").read_text().splitlines()
        loads = ["--clients 8", "--rate 500.000", "--clients 8", "--rate 700.000"]
        self.assertEqual([line.split(" --")[0] for line in log], loads)
        self.assertIn("--seed 7 ", log[1])
        self.assertIn("--seed 8 ", log[3])

    def test_a_disturbed_repetition_is_made_once_more(self) -> None:
        def repeated(*records: dict) -> dict:
            return repeat.repeat(self.client(*records), survey(level(0.5, window_s=2.0)), 0, 7, self.place)[0]

        found = repeated(record(1, "generator_late"), record(2000))
        self.assertEqual((found["reasons"], found["response_time_s"]["mean"]), ([], 0.002))
        self.assertEqual(repeated(*[record(1, "generator_late")] * 2)["reasons"], ["generator_late"])

    def test_a_failed_load_is_an_error_of_its_level(self) -> None:
        found = repeat.repeat(self.client(code=3), survey(level(0.5, window_s=2.0)), 0, 7, self.place)
        self.assertEqual(found[0]["error"], "load before a repetition: no")

    def test_a_missing_client_or_record_is_an_error_of_its_level(self) -> None:
        for command in (["/no/such/program"], ["true"]):
            found = repeat.repeat(command, survey(level(0.5, window_s=2.0)), 0, 7, self.place)
            self.assertIn("cannot be read: FileNotFoundError", found[0]["error"])


if __name__ == "__main__":
    unittest.main()
