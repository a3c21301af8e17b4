"""The comparison of predictions with measurements, and the tables."""

import tomllib
import unittest

from bench.calibration import measure, report
from bench.calibration.subjects import SUBJECTS
from bench.side_by_side.tools import Failed

MODEL = {
    "stations": [{"name": "sda", "background": 0.5}, {"name": "cpu", "background": 0.1}],
    "classes": [{"name": "large"}, {"name": "page"}],
    "demands": [[0.0, 0.0], [0.004, 0.001]],
}


def reached(rate: float, cores: float) -> dict:
    return {"rates": {"completed": rate}, "server": {"process": [{"cores": cores}]}}


class Compare(unittest.TestCase):
    def test_saturation_is_the_free_share_of_the_cpu_over_the_demand(self) -> None:
        found = measure.compare({"model": MODEL}, {"page": 2.0, "large": 1.0}, [reached(400, 0.9), reached(500, 1.0)])
        # Expected capacity: (1 - 0.1) / (2/3 · 1 ms + 1/3 · 4 ms) = 450/s.
        self.assertAlmostEqual(found["predicted"], 450)
        self.assertAlmostEqual(found["ratio"], 1)
        self.assertAlmostEqual(found["ratio_per_cpu_second"], 450 / (900 / 1.9))

    def test_a_class_that_costs_nothing_is_no_result(self) -> None:
        free = MODEL | {"demands": [[0.0, 0.0], [0.004, 0.0]]}
        with self.assertRaises(Failed):
            measure.compare({"model": free, "left_out": ["late"]}, {"page": 1.0, "large": 0.0}, [reached(1, 1)])

    def test_demands_are_compared_with_the_servers_own_account(self) -> None:
        calibration = {"model": MODEL, "uncertainty": [[{"ci95": {"low": 0.0035, "high": 0.0041}}, {"ci95": None}]]}
        model = calibration["model"] | {"demands": [MODEL["demands"][1]]}
        before = {name: {"cpu_s": 1.0, "requests": 100} for name in ("large", "page")}
        after = {"large": {"cpu_s": 1.4, "requests": 200}, "page": {"cpu_s": 1.2, "requests": 200}}
        found = measure.demands(calibration | {"model": model}, before, after)
        self.assertAlmostEqual(found["large"]["ratio"], 1)
        self.assertAlmostEqual(found["page"]["ratio"], 0.5)
        self.assertEqual([found[name]["covered"] for name in ("large", "page")], [True, False])

    def test_intervals_are_compared_with_the_rate_per_cpu_second(self) -> None:
        self.assertTrue(report.holds({"low": 95, "high": 105}, {"measured": 50, "busy": 0.5}))
        self.assertFalse(report.holds({"low": 95, "high": 105}, {"measured": 50, "busy": 1.0}))
        self.assertFalse(report.holds(None, {"measured": 50, "busy": 1.0}))


class Subjects(unittest.TestCase):
    def test_every_workload_parses_and_every_mix_has_all_classes(self) -> None:
        for subject in SUBJECTS:
            classes = tomllib.loads(subject.workload())["class"]
            self.assertEqual([kind["name"] for kind in classes], list(subject.classes))
            for shares in subject.mixes().values():
                self.assertAlmostEqual(sum(shares.values()), 1)
                self.assertEqual(set(shares), set(subject.classes))


class Report(unittest.TestCase):
    def test_medians_are_shown_with_extremes_and_failures_are_named(self) -> None:
        def repetition(ratio: float) -> dict:
            found = {
                "predicted": 100 * ratio,
                "measured": 100,
                "busy": 1,
                "ratio": ratio,
                "ratio_per_cpu_second": ratio,
            }
            interval = {"low": 90, "high": 104}
            return {"server": "nginx", "mixes": {"mix": found}, "interval": interval}

        document = {
            "date": "today",
            "commit": "abc",
            "host": {"cpu": "fast", "cores": 2},
            "repetitions": [
                *map(repetition, (0.9, 1.1, 1.0)),
                {"server": "apache-event", "error": "apache2 is absent"},
            ],
        }
        text = report.text(document)
        self.assertIn("1.000 (0.900–1.100)", text)
        self.assertIn("3 of 3 intervals", text)
        self.assertIn("apache-event: apache2 is absent", text)


if __name__ == "__main__":
    unittest.main()
