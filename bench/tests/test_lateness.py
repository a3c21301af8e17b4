import random
import struct
import tempfile
import unittest
from pathlib import Path

from bench.side_by_side import lateness
from bench.side_by_side.stats import percentile

SECOND = 1_000_000_000


def schedule(rate: float, seconds: float, begun: int = 7 * SECOND) -> list[int]:
    return [begun + round(k * 1e9 / rate) for k in range(round(rate * seconds))]


class AgainstSchedule(unittest.TestCase):
    def test_a_punctual_generator_is_not_late_whatever_its_offset(self) -> None:
        found = lateness.against_schedule(schedule(1000, 3, begun=123_456_789), 1000)
        self.assertEqual(len(found), 2000)
        self.assertLess(max(map(abs, found)), 0.002)

    def test_the_first_second_is_ignored(self) -> None:
        arrivals = schedule(1000, 3)
        arrivals[3:5] = [at + 300_000 for at in arrivals[3:5]]
        self.assertLess(max(lateness.against_schedule(arrivals, 1000)), 0.002)

    def test_known_delays_are_measured(self) -> None:
        # Exponential delays, whose median is the mean times ln 2. The mean is so small that requests keep their order.
        rng = random.Random(1)
        arrivals = [at + int(rng.expovariate(1 / 50_000)) for at in schedule(1000, 11)]
        found = sorted(lateness.against_schedule(sorted(arrivals), 1000))
        self.assertAlmostEqual(percentile(found, 50), 34.7 - 0.5, delta=2)
        self.assertAlmostEqual(percentile(found, 99), 230, delta=25)

    def test_one_early_arrival_does_not_move_the_schedule(self) -> None:
        arrivals = schedule(1000, 3)
        arrivals[1500] -= 900_000
        self.assertLess(percentile(sorted(lateness.against_schedule(arrivals, 1000)), 50), 0.002)

    def test_all_requests_due_during_a_stall_are_late(self) -> None:
        arrivals = schedule(1000, 3)
        resumed = arrivals[1600]
        arrivals[1500:1600] = [resumed] * 100
        found = sorted(lateness.against_schedule(arrivals, 1000))
        self.assertEqual(sum(late > 1 for late in found), 100)
        self.assertAlmostEqual(found[-1], 100_000, delta=1)

    def test_requests_after_a_gap_remain_late(self) -> None:
        arrivals = schedule(1000, 4)
        del arrivals[2000:2500]
        found = lateness.against_schedule(arrivals, 1000)
        self.assertAlmostEqual(found[-1], 500_000, delta=1)


class Measure(unittest.TestCase):
    def measure(self, arrivals: list[tuple[int, int]], *arguments: float | None) -> dict[str, float]:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"".join(struct.pack("<QQ", *arrival) for arrival in arrivals))
            file.flush()
            return lateness.measure(Path(file.name), *arguments)

    def test_each_connection_is_measured_against_its_own_schedule(self) -> None:
        # Ten connections start 5.3 ms apart, as in wrk2. The arrivals are exactly on time by the ten schedules of the
        # connections, but not by a single schedule.
        arrivals = sorted((at, c) for c in range(10) for at in schedule(100, 5, begun=SECOND + c * 5_300_000))
        apart = self.measure(arrivals, 1000, 10, 5)
        self.assertLess(apart["lateness_max_us"], 0.002)
        self.assertEqual(apart["missing"], 0)
        together = self.measure(arrivals, 1000, None, 5)
        self.assertGreater(together["lateness_p50_us"], 100)

    def test_missing_requests_are_counted(self) -> None:
        arrivals = [(at, 0) for at in schedule(1000, 3)][:-7]
        self.assertEqual(self.measure(arrivals, 1000, None, 3)["missing"], 7)

    def test_too_few_arrivals_have_no_lateness(self) -> None:
        self.assertEqual(self.measure([], 1000, None, 1), {})
        self.assertEqual(self.measure([(5, 0)], 1000, None, 1), {})
