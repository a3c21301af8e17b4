"""Reading the output of programs and the kernel's counters."""

import json
import os
import socket
import unittest
import unittest.mock
from pathlib import Path

from bench.side_by_side import host, measure, servers, tools
from bench.side_by_side.cases import CASES, CLOSE
from bench.side_by_side.entry import Setting, gcannon, wrk


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

    def test_the_failed_calls_in_the_report_of_zrk(self) -> None:
        record = {
            "requests": 90,
            "latency_us": {"p50": 251, "p99_9": 13364},
            "status_codes": {"1xx": 0, "2xx": 83, "3xx": 0, "4xx": 3, "5xx": 4},
            "errors": {"connect": 0, "read": 1, "write": 0, "timeout": 2, "deadline": 0, "non_2xx_3xx": 7},
        }
        self.assertEqual(self.own(record), {"own": {"failed_calls": 10}})

    def test_the_failed_calls_in_the_report_of_gcannon(self) -> None:
        record = {
            "requests": 92,
            "responses": 90,
            "latency_us": {"p50": 490, "p999": 4100, "samples": 90},
            "status": {"2xx": 83, "3xx": 0, "4xx": 3, "5xx": 4, "other": 0},
            "errors": {"connect": 0, "read": 1, "timeout": 2},
        }
        self.assertEqual(self.own(record), {"own": {"failed_calls": 10}})

    def own(self, record: dict) -> dict:
        return measure.own_account(measure.Finished([], 1, 1, 1, 1, json.dumps(record), []))

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
    def test_zrk_and_gcannon(self) -> None:
        def words(case: str, tool: str, **setting: Path) -> str:
            entries = next(found.entries for found in CASES if found.name == case)
            argv = next(entry.argv for entry in entries if entry.tool == tool)
            return " ".join(argv(Setting(8080, 5, **setting)))

        self.assertEqual(words("lateness-10k", "zrk"), "zrk -t1 -c10 -R10000 -d5s --format json http://127.0.0.1:8080/")
        self.assertIn(" -R1000000 -d5s -k ", words("tls-keep-alive", "zrk", authority=Path("certificate.pem")))
        url = "http://127.0.0.1:8080/"
        self.assertEqual(words("pipelined-nginx", "gcannon"), f"gcannon {url} -t 1 -c 64 -d 5s -p 16 --json")
        self.assertIn(" -r 1 --raw close.http ", words("new-connection", "gcannon"))

    def test_the_request_of_gcannon_has_the_header_of_the_other_generators(self) -> None:
        request = (measure.SCRIPTS / "close.http").read_bytes()
        self.assertTrue(request.endswith(f"\r\n{CLOSE}\r\n\r\n".encode()))
        self.assertEqual(request.count(b"\n"), request.count(b"\r\n"))

    def test_a_generator_does_not_get_the_variables_it_must_not_use(self) -> None:
        entry = gcannon(1)
        with unittest.mock.patch.dict(os.environ, {"HOME": "/home/user", "LANG": "C"}):
            self.assertEqual(measure.environment(entry, Setting(0, 1)).get("LANG"), "C")
            self.assertNotIn("HOME", measure.environment(entry, Setting(0, 1)))
            self.assertIn("HOME", measure.environment(wrk(1), Setting(0, 1)))
        secure = Setting(0, 1, authority=Path("certificate.pem"))
        self.assertEqual(measure.environment(entry, secure)["SSL_CERT_FILE"], "certificate.pem")

    def test_every_tool_is_known_and_has_a_complete_command_line(self) -> None:
        for case in CASES:
            for entry in case.entries:
                self.assertIn(entry.program, tools.KNOWN)
                argv = entry.argv(Setting(8080, 5, 100))
                self.assertTrue(all(isinstance(word, str) and "{" not in word for word in argv), argv)
            self.assertEqual(len({entry.tool for entry in case.entries}), len(case.entries))
            self.assertIn("auto", case.probe.argv(Setting(8080, 5, 100)))
