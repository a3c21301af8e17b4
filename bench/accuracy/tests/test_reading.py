"""The figures that are read from a survey document, and those that are left out."""

import unittest

from bench.accuracy import reading
from bench.side_by_side.tools import Failed

from .made_up import comparison, level, survey


class Errors(unittest.TestCase):
    def test_each_column_shows_its_own_level(self) -> None:
        slow = [level(f, response_time_s=comparison(f, 1.0)) for f in (0.3, 0.5, 0.7, 0.8, 0.9)]
        slow[3]["response_time_s"] = comparison(0.8, 1.0, given_host=1.1)
        drifted = comparison(1000, 1000, given_host=1020)
        found = reading.figures(survey(*slow, saturation_rate=drifted))["errors"]
        for fraction in (0.5, 0.7, 0.8, 0.9):
            self.assertAlmostEqual(found[f"response_{fraction * 100:.0f}"], fraction - 1)
        self.assertAlmostEqual(found["saturation"], 0)
        self.assertAlmostEqual(found["saturation_drift_corrected"], 0.02)
        self.assertAlmostEqual(found["response_given_host"], 0.1)

    def test_figures_missing_in_the_document_are_absent(self) -> None:
        found = reading.figures(survey(level(0.8)))
        self.assertIsNone(found["errors"]["saturation_drift_corrected"])
        self.assertIsNone(found["errors"]["response_given_host"])
        self.assertIsNone(found["errors"]["response_50"])
        self.assertEqual(found["host_speed"], [])
        self.assertNotIn("seconds", found)

    def test_levels_of_other_workloads_are_ignored(self) -> None:
        bursts = level(0.5, workload="bursts", response_time_s=comparison(9, 1))
        found = reading.figures(survey(bursts, level(0.5, response_time_s=comparison(2, 1))))
        self.assertAlmostEqual(found["errors"]["response_50"], 1)

    def test_null_is_absent_too(self) -> None:
        nothing = dict.fromkeys(("response_percentiles_s", "host_speed", "utilization"))
        undrifted = comparison(1, 1) | {"error_drift": None, "interval90": None}
        found = reading.figures(survey(level(0.8, response_time_s=undrifted, **nothing), elapsed_s=None))
        self.assertIsNone(found["utilization"])
        self.assertIsNone(found["errors"]["response_given_host"])

    def test_the_duration_in_the_document_is_used(self) -> None:
        self.assertEqual(reading.figures(survey(elapsed_s=140.5))["seconds"], 140.5)

    def test_the_utilization_error_is_the_worst_of_the_valid_held_out_levels(self) -> None:
        def used(fraction: float, predicted: float, **more: object) -> dict:
            return level(fraction, utilization=comparison(predicted, fraction), **more)

        levels = [
            used(0.3, 0.31),
            used(0.5, 0.47),
            used(0.6, 0.9, role="calibration"),
            used(0.8, 0.1, valid=False),
            used(1.1, 0.9, role="past_saturation"),
        ]
        found = reading.figures(survey(*levels))
        self.assertAlmostEqual(found["utilization"], 0.03)
        self.assertEqual(found["levels_in_doubt"], 1)

    def test_another_document_is_refused(self) -> None:
        with self.assertRaises(Failed):
            reading.figures({"schema": "brimful.record/1"})


class Intervals(unittest.TestCase):
    def test_every_figure_with_an_interval_counts_once(self) -> None:
        percentiles = {name: comparison(2, 2.1, (1, 3)) for name in ("p50", "p95")} | {"p99": None}
        slow = comparison(0.010, 0.012, (0.009, 0.011))
        outside = level(0.5, response_time_s=slow, response_percentiles_s=percentiles)
        saturated = level(1.0, role="past_saturation", clients=32, response_time_s=comparison(None, 0.03))
        saturated["throughput"] = comparison(1000, 1000, (950, 1050))
        saturated["utilization"] = comparison(1.0, 0.9, (0.97, 1.0))
        fitted = level(0.4, role="calibration", response_time_s=comparison(1, 1, (1, 1)))
        found = reading.figures(survey(level(0.3), outside, saturated, fitted))
        self.assertEqual(
            found["intervals"],
            {"saturation": [1, 1], "response": [1, 2], "percentile": [2, 2], "utilization": [0, 1]},
        )

    def test_invalid_levels_do_not_count_for_intervals(self) -> None:
        wrong = level(0.5, valid=False, response_time_s=comparison(1, 9, (1, 1)))
        self.assertEqual(reading.figures(survey(wrong))["intervals"], {"saturation": [1, 1]})

    def test_an_interval_contains_its_bounds(self) -> None:
        self.assertTrue(reading.Predicted("response", "50 %", 9, 10, 11, 9, 10).holds())
        self.assertFalse(reading.Predicted("response", "50 %", 9, 10, 11, 8.9, 10).holds())

    def test_each_side_of_an_interval_is_doubled_separately(self) -> None:
        def doubled(measured: float) -> bool:
            return reading.Predicted("response", "50 %", 9, 10, 13, measured, 10).holds_twice()

        self.assertEqual([doubled(measured) for measured in (7.9, 8.1, 15.9, 16.1)], [False, True, True, False])
        # The measurement 21 is not in the doubled interval around the prediction 10, but in the one around the
        # corrected prediction 20.
        self.assertTrue(reading.Predicted("response", "50 %", 9, 10, 13, 21, 20).holds_twice())

    def test_only_valid_surveys_list_figures_beyond_twice_their_interval(self) -> None:
        rate = comparison(1000, 1200, (950, 1050))
        self.assertEqual(
            reading.figures(survey(saturation_rate=rate))["valid_beyond_twice"], [["saturation", ""]]
        )
        refuted = reading.figures(survey(saturation_rate=rate, reasons=("model_refuted",)))
        self.assertEqual(refuted["valid_beyond_twice"], [])


class Verdict(unittest.TestCase):
    def test_a_survey_that_refutes_its_model_was_measured_well(self) -> None:
        found = reading.figures(survey(reasons=("model_refuted",)))
        self.assertEqual((found["valid"], found["measured_well"], found["client_limited"]), (False, True, False))

    def test_a_client_limited_survey_was_not_measured_well(self) -> None:
        stopped = {"level": "50 %", "reason": "the client is the limit"}
        nothing = comparison(52000, None)
        found = reading.figures(survey(reasons=("beyond_client_max",), stopped=stopped, saturation_rate=nothing))
        self.assertEqual((found["measured_well"], found["client_limited"]), (False, True))
        self.assertIsNone(found["errors"]["saturation"])
        self.assertEqual(found["stopped"], "the client is the limit")


if __name__ == "__main__":
    unittest.main()
