import math
import random
import unittest

from bench.monitor import stats
from bench.monitor.stats import Estimate


class Quartets(unittest.TestCase):
    def test_a_steady_drift_has_no_effect(self) -> None:
        self.assertAlmostEqual(stats.effect([math.exp(x) for x in (1, 2, 3, 4)]), 0)

    def test_an_effect_is_relative_to_the_level(self) -> None:
        found = stats.change_percent([[level, 0.99 * level, 0.99 * level, level] for level in (10, 1000, 70)])
        self.assertAlmostEqual(found.value, -1)
        self.assertAlmostEqual(found.low, -1)
        self.assertEqual((found.of, found.interval), (3, True))

    def test_one_quartet_has_no_interval(self) -> None:
        with self.assertRaisesRegex(ValueError, "measure longer"):
            stats.change_percent([[1, 1, 1, 1]])


class TrimmedMean(unittest.TestCase):
    def test_few_values_have_students_interval(self) -> None:
        found = stats.trimmed_mean([1, 2, 3])
        self.assertAlmostEqual(found.value, 2)
        self.assertAlmostEqual(found.high - found.value, 4.303 / math.sqrt(3))

    def test_extreme_values_are_trimmed(self) -> None:
        calm = [0.0, 1.0] * 9
        self.assertAlmostEqual(stats.trimmed_mean([*calm, -1e9, 1e9]).value, 0.5)

    def test_the_interval_covers_the_truth_about_as_often_as_it_says(self) -> None:
        rng = random.Random(1)
        for number, scale in ((5, 0), (30, 0), (30, 10)):
            covered = 0
            for _ in range(1000):
                # In 5 % of the slices, a disturbance adds to the value.
                values = [rng.gauss(1, 1) + (rng.gauss(0, scale) if rng.random() < 0.05 else 0) for _ in range(number)]
                found = stats.trimmed_mean(values)
                covered += found.low <= 1 <= found.high
            self.assertTrue(925 <= covered <= 975, (number, scale, covered))


class Students(unittest.TestCase):
    def test_t_by_degrees_of_freedom(self) -> None:
        for freedom, expected in ((1, 12.706), (10, 2.228), (11, 2.201), (30, 2.042), (1000, 1.962)):
            self.assertAlmostEqual(stats.t_95(freedom), expected, delta=0.001)


class Spread(unittest.TestCase):
    def test_medians_and_means(self) -> None:
        values = [5.0, 1.0, 3.0, 100.0]
        self.assertEqual(Estimate.spread(values), Estimate(4, 1, 100, 4))
        self.assertEqual(Estimate.mean(values), Estimate(27.25, 1, 100, 4))
        self.assertEqual(Estimate.exact(2), Estimate(2, 2, 2, 1))
