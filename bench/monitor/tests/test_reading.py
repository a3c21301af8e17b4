import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from bench.monitor import bpf, brimful, clock, peers, syns
from bench.monitor.bed import Running, helper
from bench.side_by_side.tools import Failed

SAR = """\
Linux 6.18.44 (vm)  11/22/26  _x86_64_  (2 CPU)

02:59:08        CPU      %usr     %nice      %sys   %iowait    %steal      %irq     %soft    %guest    %gnice     %idle
02:59:09        all     11.00      0.00      3.00      0.00      0.00      0.00      0.00      0.00      0.00     86.00

Average:        CPU      %usr     %nice      %sys   %iowait    %steal      %irq     %soft    %guest    %gnice     %idle
Average:        all     97.00      0.00      3.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00
Average:          1     98.00      0.00      2.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00

Average:       proc/s   cswch/s
Average:        16.00    651.00

Average:         INTR       all      CPU0      CPU1
Average:          sum   1898.00    940.00    958.00

Average:        IFACE   rxpck/s   txpck/s    rxkB/s    txkB/s   rxcmp/s   txcmp/s  rxmcst/s   %ifutil
Average:           lo    812.50      0.00      0.00      0.00      0.00      0.00      0.00      0.00
"""
PIDSTAT = """\
Average:      UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command
Average:        0      4711    1.00    2.50    0.00    0.00    3.50     -  nginx
Average:       33      4712   10.00   20.00    0.00    0.00   30.00     -  nginx

Average:      UID       PID  minflt/s  majflt/s     VSZ     RSS   %MEM  Command
Average:        0      4711      0.00      0.00   53048   21328   0.09  nginx
"""
VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 6  0      0 13075592  19792 10942404    0    0  3255  1661 1385 2487 34 16 45  4  0
 5  2      0 13075592  19792 10942404    0    0 163664 297624 2428 2718 69 31  0  0  1
"""
METRICS = """\
# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 10522.28
node_cpu_seconds_total{cpu="0",mode="user"} 8525.13
node_forks_total 560096
node_netstat_Tcp_InSegs 4.15372846e+08
"""


class Tools(unittest.TestCase):
    def test_sars_averages_are_found_by_column_and_row(self) -> None:
        found = peers.averages(SAR)
        self.assertEqual(found["%usr"], {"all": 97, "1": 98})
        self.assertEqual((found["proc/s"][""], found["all"]["sum"], found["rxpck/s"]["lo"]), (16, 1898, 812.5))

    def test_pidstats_averages_are_found_by_pid(self) -> None:
        found = peers.averages(PIDSTAT)
        self.assertEqual(found["%CPU"], {"4711": 3.5, "4712": 30})
        self.assertEqual(found["RSS"], {"4711": 21328})

    def test_vmstats_last_line_counts(self) -> None:
        found = peers.vmstat_line(VMSTAT)
        self.assertEqual((found["cs"], found["us"], found["st"]), (2718, 69, 1))

    def test_prometheuss_text_format(self) -> None:
        found = peers.metrics(METRICS)
        self.assertEqual(found["node_forks_total"], {"": 560096})
        self.assertEqual(found["node_cpu_seconds_total"]['cpu="0",mode="user"'], 8525.13)
        self.assertEqual(found["node_netstat_Tcp_InSegs"][""], 415372846)

    def test_brimfuls_document(self) -> None:
        server = {"intervals": [{"length_s": 1.5}, {"length_s": 0.5}]}
        self.assertEqual(brimful.seconds(brimful.server(json.dumps(server))), 2)
        with self.assertRaisesRegex(Failed, "no document"):
            brimful.server("brimful: cannot\n")


class Kernel(unittest.TestCase):
    def test_run_counts_of_a_program(self) -> None:
        info = "pos:\t0\nprog_type:\t26\nprog_id:\t7\nrun_time_ns:\t900\nrun_cnt:\t3\nrecursion_misses:\t0\n"
        self.assertEqual(bpf.runs_in(info), (3, 900))
        with self.assertRaisesRegex(Failed, "Linux 5.8"):
            bpf.runs_in("prog_id:\t7\n")

    def test_a_process_without_ebpf_programs(self) -> None:
        self.assertEqual(bpf.programs([os.getpid()]), set())

    def test_cpu_time_and_memory_of_a_process_and_its_children(self) -> None:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            self.assertIn(child.pid, clock.family(os.getpid()))
            before = clock.process_cpu_s(os.getpid())
            sum(range(1_000_000))
            self.assertGreater(clock.process_cpu_s(os.getpid()), before)
            self.assertGreater(clock.resident_kib(os.getpid()), clock.resident_kib(child.pid))
        finally:
            child.communicate(b"\n")


class Accounts(unittest.TestCase):
    def test_the_cpu_time_of_a_command_that_has_ended(self) -> None:
        work = "sum(range(10_000_000))"
        with Running(helper("account.py", sys.executable, "-c", work)) as running:
            self.assertGreater(json.loads(running.finish(60))["cpu_us"], 50_000)

    def test_a_command_that_fails_says_why(self) -> None:
        with Running([sys.executable, "-c", "import sys; sys.exit('error: no such flag')"]) as running:
            with self.assertRaisesRegex(Failed, "exit 1: error: no such flag"):
                running.finish(60)

    def test_a_command_is_paused_and_ended_with_its_children(self) -> None:
        with Running(["sh", "-c", "sleep 100 & echo $!; wait"]) as running:
            while len(running.pids) < 2:
                running.check()
            pids = running.pids
            running.pause()
            # Wait until the processes have stopped: signals are delivered with a delay.
            while any(Path(f"/proc/{pid}/stat").read_text().split()[2] != "T" for pid in pids):
                running.check()
            running.resume()
        self.assertFalse(Path(f"/proc/{pids[0]}").exists())


class Packets(unittest.TestCase):
    def frame(self, port: int, flags: int, options: int = 0) -> bytes:
        head = (
            bytes([0x45 + options, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]) + bytes([127, 0, 0, 1]) * 2 + bytes(4 * options)
        )
        segment = (40000).to_bytes(2) + port.to_bytes(2) + bytes(8) + bytes([0x50, flags]) + bytes(6)
        return bytes(12) + b"\x08\x00" + head + segment

    def test_only_syns_to_the_port_count(self) -> None:
        self.assertTrue(syns.is_syn(self.frame(80, 0x02), 80))
        self.assertTrue(syns.is_syn(self.frame(80, 0xC2, options=2), 80), "a SYN with ECN flags and IP options")
        self.assertFalse(syns.is_syn(self.frame(80, 0x12), 80), "a SYN-ACK")
        self.assertFalse(syns.is_syn(self.frame(80, 0x10), 80))
        self.assertFalse(syns.is_syn(self.frame(81, 0x02), 80))

    def test_truncated_and_other_packets_do_not_count(self) -> None:
        whole = self.frame(80, 0x02)
        for length in range(len(whole) - 7):
            self.assertFalse(syns.is_syn(whole[:length], 80), length)
        udp = bytearray(whole)
        udp[14 + 9] = 17
        self.assertFalse(syns.is_syn(bytes(udp), 80))
