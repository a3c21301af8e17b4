import tempfile
import unittest
from pathlib import Path

from bench.figures import counters

SNMP = "Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens\nTcp: 1 -1 {active} {passive}\n"
NETSTAT = (
    "TcpExt: SyncookiesSent ListenDrops TCPSynRetrans\nTcpExt: 0 {drops} {repeated}\nIpExt: InNoRoutes\nIpExt: 0\n"
)
STAT = (
    "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {user} 0 10 500 5 0 {softirq} {steal} 0 0\ncpu1 1 0 1 900 0 0 0 0 0 0\nintr 5 1\n"
)
SOFTIRQS = (
    "                    CPU0       CPU1\n          HI:          1          0\n      NET_RX:       {rx}        70\n"
)
SOFTNET = "{packets:08x} 00000002 0 0 0 0 0 0 0 0 0 0 00000000 0 0\n00000010 0 0 0 0 0 0 0 0 0 0 0 00000001 0 0\n"


def proc(root, **values):
    """A fake /proc with one process, 7, whose namespace is both the server's and the client's."""
    (root / "7" / "net").mkdir(parents=True, exist_ok=True)
    (root / "net").mkdir(exist_ok=True)
    for name, text in {
        "7/net/snmp": SNMP,
        "7/net/netstat": NETSTAT,
        "stat": STAT,
        "softirqs": SOFTIRQS,
        "net/softnet_stat": SOFTNET,
    }.items():
        (root / name).write_text(text.format(**values))
    return root


class Parsing(unittest.TestCase):
    def test_values_are_paired_with_their_names(self):
        found = counters.paired_lines(NETSTAT.format(drops=3, repeated=4))
        self.assertEqual(found["TcpExt"], {"SyncookiesSent": 0, "ListenDrops": 3, "TCPSynRetrans": 4})
        self.assertEqual(found["IpExt"], {"InNoRoutes": 0})

    def test_stolen_and_idle_time_is_not_busy(self):
        found = counters.stat_ticks(STAT.format(user=100, softirq=20, steal=7))
        self.assertEqual(found, {0: (130, 20, 7), 1: (2, 0, 0)})

    def test_an_offline_cpu_leaves_a_gap_in_the_columns(self):
        text = "                    CPU0       CPU3\n      NET_RX:         11         33\n"
        self.assertEqual(counters.softirqs(text, "NET_RX"), {0: 11, 3: 33})

    def test_a_missing_line_is_named(self):
        with self.assertRaisesRegex(ValueError, "NET_RX"):
            counters.softirqs("  CPU0\n HI: 1\n", "NET_RX")

    def test_softnet_is_hexadecimal_and_names_its_cpu(self):
        self.assertEqual(counters.softnet(SOFTNET.format(packets=31)), {0: (31, 2), 1: (16, 0)})


class Between(unittest.TestCase):
    def test_rates_are_differences_over_time(self):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            proc(root, active=10, passive=5, drops=0, repeated=1, user=100, softirq=0, steal=0, rx=50, packets=100)
            before = counters.snapshot(7, 7, root)
            proc(
                root, active=110, passive=25, drops=200, repeated=21, user=150, softirq=50, steal=10, rx=90, packets=400
            )
            after = counters.snapshot(7, 7, root)
        after = counters.Snapshot(before.at_ns + 2_000_000_000, after.server, after.client, after.cpus)
        row = counters.between(before, after, server_cpu=0, client_cpu=1)
        self.assertEqual(row["seconds"], 2)
        self.assertEqual(row["syn"], 60, "100 first SYNs and 20 repeated ones in 2 s")
        self.assertEqual((row["syn_repeated"], row["accepted"], row["dropped"]), (10, 10, 100))
        self.assertEqual((row["server_net_rx"], row["client_net_rx"]), (20, 0))
        self.assertEqual((row["server_packets"], row["packets_lost"]), (150, 0))
        share = 100 / counters.TICKS_PER_S
        self.assertAlmostEqual(row["server_busy"], 0.5 * share)
        self.assertAlmostEqual(row["server_softirq"], 0.25 * share)
        self.assertAlmostEqual(row["steal"], 0.05 * share)


if __name__ == "__main__":
    unittest.main()
