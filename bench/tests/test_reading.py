"""Reading the output of programs and the kernel's counters."""

import json
import os
import socket
import unittest

from bench.side_by_side import host, measure, servers, tools
from bench.side_by_side.cases import CASES
from bench.side_by_side.entry import Setting


class Reading(unittest.TestCase):
    def test_nginx_status(self) -> None:
        page = (
            "Active connections: 2 \nserver accepts handled requests\n 17 17 4711 \nReading: 0 Writing: 1 Waiting: 1 \n"
        )
        self.assertEqual(servers.status(page), servers.Counted(17, 4711))

    def test_versions(self) -> None:
        versions = {
            "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer": "4.1.0-3+b2",
            "h2load nghttp2/1.52.0": "1.52.0",
            "nginx version: nginx/1.22.1": "1.22.1",
            "k6 v1.8.1 (go1.26.8, linux/amd64)": "1.8.1",
            "Version: \nCommit: \nRuntime: go1.26.8 linux/amd64\n": None,
        }
        for text, version in versions.items():
            self.assertEqual(tools.version_in(text), version)

    def test_the_error_line_of_an_output(self) -> None:
        self.assertEqual(
            measure.complaint("warning: x\nerror: no such flag\nFor more, try --help.\n\n"), "error: no such flag"
        )
        self.assertEqual(measure.complaint("a\n b \n"), "b")
        self.assertEqual(measure.complaint(""), "it printed nothing")

    def test_brimfuls_own_report(self) -> None:
        def finished(output: str) -> measure.Finished:
            return measure.Finished([], 1, 1, 1, 1, output, [])

        self.assertEqual(measure.own_account(finished("Requests/sec: 5")), {})
        self.assertEqual(measure.own_account(finished("[1]")), {})
        record = {
            "counts": {"sent": 5, "reset": 0, "status": {"2xx": 5}},
            "lateness_us": {"p50": 0.3, "p99": 7, "max": 9, "mean": 1},
            "generator": {"engine": "epoll"},
            "verdict": {"valid": False, "reasons": [{"code": "generator_late", "message": "…"}]},
        }
        own = measure.own_account(finished(json.dumps(record)))["own"]
        self.assertEqual((own["counts"], own["engine"], own["verdict"]), ({"sent": 5}, "epoll", ["generator_late"]))

    def test_the_kernels_counters(self) -> None:
        before = host.connection_attempts()
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        self.assertGreater(host.connection_attempts(), before)
        self.assertGreaterEqual(host.ignored_attempts(), 0)
        self.assertGreater(host.cpu_busy_s(0), 0)
        now, peak = host.memory_kib(os.getpid())
        self.assertTrue(0 < now <= peak)
        self.assertEqual(host.memory_kib(2**22 + 1), (0, 0))


class CommandLines(unittest.TestCase):
    def test_every_tool_is_known_and_has_a_complete_command_line(self) -> None:
        for case in CASES:
            for entry in case.entries:
                self.assertIn(entry.program, tools.KNOWN)
                argv = entry.argv(Setting(8080, 5, 100))
                self.assertTrue(all(isinstance(word, str) and "{" not in word for word in argv), argv)
            self.assertEqual(len({entry.tool for entry in case.entries}), len(case.entries))
            self.assertIn("auto", case.probe.argv(Setting(8080, 5, 100)))
