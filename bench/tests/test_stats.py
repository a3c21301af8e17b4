import random
import unittest

from bench.side_by_side import stats


class Percentile(unittest.TestCase):
    def test_nearest_rank(self) -> None:
        ordered = list(range(1, 101))
        self.assertEqual([stats.percentile(ordered, p) for p in (0, 1, 50, 99, 100)], [1, 1, 50, 99, 100])
        self.assertEqual(stats.percentile([3], 99.9), 3)


class Slope(unittest.TestCase):
    def test_a_line_is_found_exactly(self) -> None:
        b, half_width = stats.slope([(x, 5 + 2 * x) for x in range(240)])
        self.assertAlmostEqual(b, 2)
        self.assertAlmostEqual(half_width, 0)

    def test_the_interval_covers_the_truth_about_as_often_as_it_says(self) -> None:
        rng = random.Random(1)
        covered = 0
        for _ in range(400):
            b, half_width = stats.slope([(x, x + rng.gauss(0, 100)) for x in range(120)])
            covered += abs(b - 1) <= half_width
        self.assertTrue(364 <= covered <= 394, covered)

    def test_few_readings_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            stats.slope([(x, x) for x in range(2 * stats.BLOCKS - 1)])
