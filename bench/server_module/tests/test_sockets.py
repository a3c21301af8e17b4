import unittest

from ...monitor.case import Outcome
from ..sockets import ATTACH_MARGIN_S, Reading, Span, between, judge, quartets, slices

# Times in milliseconds: the starts of the slices, the length of a slice, and the interval between readings.
BEGINS = [400, 1400, 2100, 3700, 4400, 5500]
LENGTH, STEP = 200, 4


def readings(loss: float) -> list[Reading]:
    """A server that sends 10^6 bytes/s, and less by this share while programs are attached."""
    found, done = [], 0.0
    for at in range(0, 6600, STEP):
        attached = any(begin <= at < begin + LENGTH for begin in BEGINS)
        found.append(Reading(at / 1000, attached, round(done)))
        done += 1000 * STEP * (1 - (loss if attached else 0))
    return found


class SocketsTest(unittest.TestCase):
    def test_slices_include_attaching_and_detaching(self) -> None:
        found = slices(readings(0.04))
        self.assertEqual(len(found), len(BEGINS))
        for begin, span in zip(BEGINS, found):
            self.assertAlmostEqual(span.begins, (begin - STEP) / 1000 - ATTACH_MARGIN_S)
            self.assertAlmostEqual(span.ends, (begin + LENGTH) / 1000 + ATTACH_MARGIN_S)

    def test_a_slice_observed_only_in_part_is_ignored(self) -> None:
        self.assertEqual(slices([Reading(at, at != 2, 0) for at in range(5)]), [])

    def test_spans_close_to_another_slice_are_left_out(self) -> None:
        seen = readings(0.04)
        taken = [Span(1, 1.2), Span(1.25, 1.45), Span(3, 3.2)]
        self.assertEqual(len(quartets(seen, taken, taken)), 1)
        self.assertEqual(len(quartets(seen, [Span(0, 0.2), Span(6.5, 6.7)], taken)), 0)
        self.assertEqual([(span.begins, span.ends) for span in between([Span(1, 2), Span(4, 5)])], [(2.5, 3.5)])

    def test_the_loss_is_measured_and_the_control_shows_none(self) -> None:
        outcome = Outcome()
        judge(outcome, readings(0.04), 0.18, 0.99)
        whole = outcome.measured["throughput"]
        # The loss is 4 % during six slices of 200 ms, in a total time of 6.6 s.
        self.assertAlmostEqual(whole.value, 4 * 6 * 0.2 / 6.6, delta=0.05)
        self.assertLess(whole.low, whole.value)
        (attached, nothing) = outcome.tables[0]["rows"]
        self.assertEqual(attached[0], "attached")
        self.assertAlmostEqual(float(nothing[2].split()[0]), 0, delta=0.01)
        self.assertEqual(outcome.notes, ["nginx used 99.0 % of its CPU"])


if __name__ == "__main__":
    unittest.main()
