"""The Workloads, the frameworks and the contracts, as far as they can be checked without a server."""

import contextlib
import json
import socket
import tempfile
import threading
import tomllib
import unittest
import unittest.mock
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.accuracy.subjects import Place
from bench.contest import __main__ as program
from bench.contest import cases, contract, frameworks
from bench.contest.cases import CASES, UPLOADS, WORKLOADS
from bench.contest.contract import Answer
from bench.contest.frameworks import FRAMEWORKS, Framework
from bench.side_by_side.tools import Failed


class Workloads(unittest.TestCase):
    def test_each_workload_has_classes_and_a_case(self) -> None:
        used = {case.workload for case in CASES}
        self.assertEqual({path.stem for path in WORKLOADS.glob("*.toml")}, used)
        for path in WORKLOADS.glob("*.toml"):
            for one in tomllib.loads(path.read_text())["class"]:
                self.assertEqual(one["expect"]["status"], 200, path.name)

    def test_a_case_of_one_request_expects_what_the_contract_requires(self) -> None:
        for case in CASES:
            classes = tomllib.loads(case.file.read_text())["class"]
            if len(classes) == 1 and "urls" not in classes[0]:
                exchange = case.exchanges()[0]
                self.assertEqual(exchange.method, classes[0].get("method", "GET"))
                self.assertEqual(exchange.path, classes[0]["path"])

    def test_a_client_is_one_request_in_flight(self) -> None:
        flags = {case.name: case.load_flags(512) for case in CASES}
        self.assertEqual(flags["pipelined"][2:], ["--clients", "8192", "--pipeline", "16"])
        self.assertEqual(flags["baseline"][2:], ["--clients", "512"])
        self.assertEqual(flags["limited-conn"][2:], ["--clients", "512", "--calls-per-connection", "10"])

    def test_the_bodies_of_an_upload_have_the_sizes_of_the_workload(self) -> None:
        named = [one["body_file"] for one in tomllib.loads((WORKLOADS / "upload.toml").read_text())["class"]]
        self.assertEqual(named, [f"upload-{size}.bin" for size in UPLOADS])
        with tempfile.TemporaryDirectory() as directory, unittest.mock.patch.object(cases, "UPLOADS", (5, 7)):
            cases.write_bodies(Path(directory))
            self.assertEqual((Path(directory) / "upload-7.bin").stat().st_size, 7)


class Frameworks(unittest.TestCase):
    def test_a_framework_takes_part_in_known_workloads_only(self) -> None:
        used = {case.workload for case in CASES}
        for framework in FRAMEWORKS:
            self.assertLessEqual(set(framework.workloads), used, framework.name)

    def test_a_missing_package_of_npm_is_reported_with_its_remedy(self) -> None:
        framework = Framework("x", "x", (), lambda _: [], packages=("no-such-package",))
        self.assertIn("npm install --prefix", framework.missing() or "")
        self.assertEqual(framework.versions(), {})

    def test_the_data_set_is_the_same_for_server_and_check(self) -> None:
        self.assertEqual(frameworks.dataset(), frameworks.dataset())
        self.assertEqual(len(frameworks.dataset()), 50)
        with tempfile.TemporaryDirectory() as directory:
            path = frameworks.write_dataset(Place(Path(directory), 1))
            self.assertTrue(Path(path).exists())

    def test_every_repetition_has_each_framework_in_the_cases_that_it_takes_part_in(self) -> None:
        plan = list(program.order(FRAMEWORKS, CASES, 2, seed=1))
        self.assertEqual(plan, list(program.order(FRAMEWORKS, CASES, 2, seed=1)))
        in_json = [framework.name for i, case, framework in plan if i == 0 and case.name == "json"]
        self.assertNotIn("nginx", in_json)
        self.assertEqual(len(in_json), len(set(in_json)))
        self.assertEqual(len([one for one in plan if one[2].name == "node"]), 2 * len(CASES))


class Contract(unittest.TestCase):
    def error_in(self, expected: Callable[[Answer], str | None]) -> str | None:
        """The error in a page of twelve items, multiplied by three."""
        items = [item | {"total": item["price"] * item["quantity"] * 3} for item in frameworks.dataset()[:12]]
        body = json.dumps({"items": items, "count": 12}).encode()
        return expected(Answer(200, {"content-type": "application/json; charset=utf-8"}, body))

    def test_a_page_must_have_the_items_and_their_totals(self) -> None:
        self.assertIsNone(self.error_in(contract.is_page(12, 3)))
        self.assertEqual(self.error_in(contract.is_page(12, 4)), "the items or their totals are wrong")
        self.assertEqual(self.error_in(contract.is_page(11, 3)), "the items or their totals are wrong")
        self.assertEqual(self.error_in(contract.is_page(12, 3, compressed=True)), "the content coding is ''")

    def test_a_text_must_be_exact(self) -> None:
        self.assertIsNone(contract.is_body("55")(Answer(200, {}, b"55")))
        self.assertEqual(contract.is_body("55")(Answer(200, {}, b"75\n")), "the answer is '75\\n', not '55'")

    def test_sums_are_drawn_for_every_check(self) -> None:
        paths = {exchange.path for _ in range(20) for exchange in contract.baseline()}
        self.assertGreater(len(paths), 10)
        self.assertEqual([exchange.chunked for exchange in contract.baseline()], [False, False, False, True])

    def test_answers_that_arrive_together_are_separated(self) -> None:
        ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        no = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"
        exchange = [contract.Exchange("GET", "/pipeline", contract.is_body("ok"), pipelined=3)]
        with answering(ok + chunked + ok) as port:
            contract.check("127.0.0.1", port, exchange)
        with answering(ok + ok + no) as port, self.assertRaisesRegex(Failed, "GET /pipeline: the answer is 'no'"):
            contract.check("127.0.0.1", port, exchange)


@contextlib.contextmanager
def answering(answers: bytes) -> Iterator[int]:
    """A server that sends these bytes on one connection. Yields its port."""

    def serve() -> None:
        connection = listener.accept()[0]
        with connection:
            connection.recv(65_536)
            connection.sendall(answers)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


if __name__ == "__main__":
    unittest.main()
