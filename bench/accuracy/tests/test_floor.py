"""The floor and the interval score, computed by hand."""

import math
import unittest

from bench.accuracy import floor, reading
from bench.accuracy.floor import Pair

from .made_up import comparison, level, repetition, survey


def pair(predicted: float, repeated: float, interval: tuple[float, float] | None = (0.5, 2)) -> Pair:
    """A pair at 80 % whose first measurement is 1 s."""
    return Pair("mix", 0.8, predicted, 1.0, repeated, interval)


class Floor(unittest.TestCase):
    def test_errors_and_floors_are_absolute_log_ratios(self) -> None:
        self.assertAlmostEqual(pair(2, 0.5).log_error(), math.log(2))
        self.assertAlmostEqual(pair(2, 0.5).floor(), math.log(2))
        self.assertAlmostEqual(pair(0.25, 1).log_error(), math.log(4))
        self.assertEqual(pair(0.25, 1).floor(), 0)

    def test_the_ratio_is_that_of_the_medians(self) -> None:
        # The errors are ln 2, ln 4, ln 8, with the median ln 4; the floors are ln 2, ln 2, ln 16, with the median ln 2.
        found = [pair(2, 2), pair(1 / 4, 1 / 2), pair(8, 16)]
        self.assertAlmostEqual(floor.over_floor(found), 2)
        self.assertIsNone(floor.over_floor([]))
        self.assertIsNone(floor.over_floor([pair(2, 1)]))

    def test_levels_in_doubt_or_without_a_repetition_are_no_pairs(self) -> None:
        def levels(made: dict, *repeats: dict) -> list[Pair]:
            return floor.pairs([reading.figures(made, repeats)])

        doubted = survey(level(0.7), level(0.8, valid=False))
        both = (repetition(0.7, 0.02), repetition(0.8, 0.02))
        self.assertEqual(levels(doubted, *both), [Pair("mix", 0.7, 0.010, 0.010, 0.02, (0.009, 0.011))])
        self.assertEqual(levels(survey(level(0.7)), repetition(0.7, 0.02, reasons=["generator_late"])), [])
        self.assertEqual(levels(survey(level(0.7)), {"workload": "mix", "fraction": 0.7, "error": "no"}), [])
        self.assertEqual(levels(survey(level(0.7))), [])
        bursts = level(0.7, workload="bursts")
        self.assertEqual(levels(survey(bursts), repetition(0.7, 0.02)), [])
        unpredicted = level(0.7, response_time_s=comparison(None, 1))
        self.assertEqual(levels(survey(unpredicted), repetition(0.7, 0.02)), [])

    def test_levels_are_in_the_order_of_their_load_with_the_mix_first(self) -> None:
        found = [Pair(name, load, 1, 1, 1, None) for name, load in (("bursts", 0.5), ("mix", 0.8), ("mix", 0.50001))]
        self.assertEqual(list(floor.by_level(found)), [("mix", 0.5), ("mix", 0.8), ("bursts", 0.5)])


class Score(unittest.TestCase):
    def test_the_interval_score_is_the_width_plus_a_penalty(self) -> None:
        self.assertAlmostEqual(floor.interval_score(1, 3, 2), 2)
        self.assertAlmostEqual(floor.interval_score(1, 3, 1), 2)
        # The score is the width 2 plus a penalty: the distance of the value from the interval times 2/α, which is 20
        # for α = 0.1.
        self.assertAlmostEqual(floor.interval_score(1, 3, 0.5), 2 + 20 * 0.5)
        self.assertAlmostEqual(floor.interval_score(1, 3, 3.1), 2 + 20 * 0.1)

    def test_the_half_width_is_a_floor_of_the_other_pairs(self) -> None:
        self.assertEqual(floor.repetition_half_width(list(range(1, 20))), 18)  # rank ⌈0.9 × 20⌉ = 18
        self.assertEqual(floor.repetition_half_width(list(range(9, 0, -1))), 9)  # rank ⌈0.9 × 10⌉ = 9
        self.assertEqual(floor.repetition_half_width([3, 1, 2]), 3)

    def test_the_survey_and_the_repetition_are_scored_on_the_same_pairs(self) -> None:
        # The floors are ln 2, ln 2, ln 2 and ln 4. So the interval of the last pair's repetition, which has the
        # half-width ln 2, misses the measurement by ln 2.
        found = [pair(1, 2), pair(1, 1 / 2), pair(1, 2), pair(1, 4, (2, 4))]
        scored = floor.scores(found)
        one = math.log(2)
        # Scores of the survey: three times the width ln 4, and once the width ln 2 plus the penalty 20 ln 2.
        self.assertAlmostEqual(scored.survey, (3 * 2 * one + one + 20 * one) / 4)
        # Scores of the repetition: three times the width 2 ln 4, and once the width 2 ln 2 plus the penalty 20 ln 2.
        self.assertAlmostEqual(scored.repetition, (3 * 4 * one + 2 * one + 20 * one) / 4)
        self.assertEqual((scored.pairs, scored.survey_holds, scored.repetition_holds), (4, 3, 3))

    def test_too_few_pairs_have_no_score(self) -> None:
        self.assertIsNone(floor.scores([pair(1, 2)] * 3))
        self.assertIsNone(floor.scores([pair(1, 2, None)] * 4))
        self.assertEqual(floor.scores([pair(1, 2, None), *[pair(1, 2)] * 3]).pairs, 3)


if __name__ == "__main__":
    unittest.main()
