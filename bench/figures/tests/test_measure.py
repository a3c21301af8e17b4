import tempfile
import unittest
from pathlib import Path

from bench.figures import figures, hosts, measure, syncost, testbed, wide
from bench.figures.counters import Snapshot
from bench.figures.servers import Apache

S = 1_000_000_000


class Measure(unittest.TestCase):
    record = {
        "started_monotonic_ns": 100 * S,
        "intervals": [{"t_s": t, "length_s": 1.0, "completed": n} for t, n in enumerate((10, 100, 200, 50))],
        "verdict": {"reasons": [{"code": "interrupted"}]},
        "counts": {"scheduled": 400, "completed": 360},
    }

    def test_replies_are_counted_from_instant_to_instant(self):
        self.assertEqual(measure.completed(self.record, 101 * S, 103 * S), 300)
        self.assertEqual(measure.completed(self.record, 100 * S + S // 2, 102 * S + S // 2), 5 + 100 + 100)
        self.assertEqual(measure.completed(self.record, 0, 1000 * S), 360, "the whole run")

    def test_a_client_host_is_good_for_the_rates_at_which_two_get_no_more(self):
        one = {100: 100, 200: 199, 400: 390, 800: 500}
        self.assertEqual(hosts.raw_request_rate(one, {100: 100, 200: 200, 400: 400, 800: 700}), 400)
        self.assertEqual(hosts.raw_request_rate(one, {100: 150, 200: 200}), 0)

    def test_two_hosts_make_the_attempts_of_one(self):
        lab = measure.Lab(Path("brimful"), 0, 1)
        one, two = (" ".join(map(str, hosts.load_of_host(lab, 100, 1, n, 5))) for n in (1, 2))
        self.assertIn("--s-clients 50 --connect-timeout 0.5s -R 100 --source-ip 198.18.1.16/29 --seed 1", one)
        self.assertIn("--s-clients 50 --connect-timeout 0.5s -R 100 --source-ip 198.18.1.16/29 --shard 1/2", two)

    def test_an_interrupted_run_is_valid(self):
        self.assertEqual(measure.verdict(self.record), "yes")
        late = {"verdict": {"reasons": [{"code": "generator_late"}, {"code": "interrupted"}]}}
        self.assertEqual(measure.verdict(late), "generator_late")

    def test_errors_are_the_share_of_calls_without_a_response(self):
        self.assertAlmostEqual(figures.errors(self.record), 10)

    def test_a_connection_on_a_port_is_not_a_listener(self):
        header = "  sl  local_address rem_address   st\n"
        listening = header + "   0: 010012C6:0050 00000000:0000 0A 00000000\n"
        connected = header + "   0: 010012C6:0050 020012C6:9C40 01 00000000\n"
        self.assertTrue(measure.listens(listening, 80))
        self.assertFalse(measure.listens(listening, 8080))
        self.assertFalse(measure.listens(connected, 80))

    def test_a_child_is_found_by_its_parent(self):
        with tempfile.TemporaryDirectory() as directory:
            for pid, parent in ((7, 1), (71, 7), (8, 71)):
                (Path(directory) / str(pid)).mkdir()
                (Path(directory) / str(pid) / "status").write_text(f"Name:\tsh\nPPid:\t{parent}\nUid:\t0\n")
            self.assertEqual(wide.child(wide.child(7, Path(directory)), Path(directory)), 8)
            with self.assertRaises(testbed.TestbedError):
                wide.child(8, Path(directory))

    def test_cpu_lists(self):
        self.assertEqual(testbed.cpu_list("0-1,4,6-7\n"), {0, 1, 4, 6, 7})


class Fluid(unittest.TestCase):
    server = Apache(workers=8, backlog=128, size=1)

    def test_a_burst_that_fits_into_the_queue_loses_nothing(self):
        self.assertEqual(figures.fluid(self.server, 40, 3, 0.05, 10), 40)

    def test_a_burst_that_overflows_the_queue_loses_the_excess_once_per_period(self):
        # For half a second, 600/s exceed the capacity by (600 - 130)·0.5 = 235 calls, of which 137 fit into the queue.
        # The others are lost, once in each period of 10 s.
        self.assertAlmostEqual(figures.fluid(self.server, 100, 6, 0.05, 10), 100 - (235 - 137) / 10)


class SynCost(unittest.TestCase):
    def at(self, seconds):
        return Snapshot(round(seconds * S), {}, {}, {})

    def test_the_slope_recovers_the_cost(self):
        points = [(s, 130 * (1 - 3e-6 * s)) for s in (1000, 5000, 30000)]
        x0, cost = syncost.slope(points)
        self.assertAlmostEqual(x0, 130)
        self.assertAlmostEqual(cost, 3)

    def test_a_stretch_is_compared_with_the_quiet_before_and_after(self):
        # The speed of the spinner changes even without SYNs, and some softirq time is used without SYNs. Neither may
        # count as a cost of SYNs.
        before, after = {"rounds": 100, "server_softirq": 0.02}, {"rounds": 120, "server_softirq": 0.04}
        found = syncost.costs(before, {"rounds": 88, "server_softirq": 0.13, "syn": 10_000}, after)
        self.assertAlmostEqual(found["work"], 0.8)
        self.assertAlmostEqual(found["cost_by_work"], 20)
        self.assertAlmostEqual(found["cost_by_softirq"], 10)

    def test_rounds_are_counted_from_instant_to_instant(self):
        samples = [(0, 0), (10 * S, 1000), (20 * S, 1800)]
        self.assertAlmostEqual(syncost.rounds(samples, self.at(5), self.at(15)), (1400 - 500) / 10)

    def test_an_incomplete_last_line_is_ignored(self):
        self.assertEqual(syncost.read_spins("1000 1\n2000 2\n30"), [(1000, 1), (2000, 2)])

    def test_time_without_samples_is_an_error(self):
        with self.assertRaises(ValueError):
            syncost.rounds_at([(1000, 1), (2000, 2)], 3000)


if __name__ == "__main__":
    unittest.main()
