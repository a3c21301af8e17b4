"""The contracts: requests and the answers that a framework must give before it is measured.

Numbers are drawn for every check, so that fixed answers do not pass.
"""

import contextlib
import gzip
import http.client
import json
import random
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from ..side_by_side.tools import Failed
from .frameworks import ITEMS, dataset

TIMEOUT_S = 10
draw = random.Random()


@dataclass(frozen=True)
class Answer:
    """An answer of a server."""

    status: int
    headers: dict[str, str]
    body: bytes

    def header(self, name: str) -> str:
        return self.headers.get(name, "")


@dataclass(frozen=True)
class Exchange:
    """A request, and a function that returns the error in its answer, or None."""

    method: str
    path: str
    error_in: Callable[[Answer], str | None]
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    chunked: bool = False
    # How many of these requests are sent at once on one connection.
    pipelined: int = 1


def check(host: str, port: int, exchanges: Sequence[Exchange]) -> None:
    """Raises Failed if an answer is not as the contract requires."""
    for exchange in exchanges:
        try:
            answers = pipelined_answers(host, port, exchange) if exchange.pipelined > 1 else [ask(host, port, exchange)]
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"{exchange.method} {exchange.path}: {error or type(error).__name__}") from None
        for answer in answers:
            error = f"status {answer.status}" if answer.status != 200 else exchange.error_in(answer)
            if error:
                raise Failed(f"{exchange.method} {exchange.path}: {error}")


def ask(host: str, port: int, exchange: Exchange) -> Answer:
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)) as connection:
        body = iter([exchange.body]) if exchange.chunked else exchange.body
        # Without this header, http.client would send `Accept-Encoding: identity`.
        headers = {"Accept-Encoding": "", **exchange.headers}
        connection.request(exchange.method, exchange.path, body, headers, encode_chunked=exchange.chunked)
        return read(connection.getresponse())


def read(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def pipelined_answers(host: str, port: int, exchange: Exchange) -> list[Answer]:
    """Sends all requests in one write, and reads as many answers."""
    request = f"{exchange.method} {exchange.path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.sendall(request * exchange.pipelined)
        file = connection.makefile("rb")
        return [read(Shared(file)) for _ in range(exchange.pipelined)]


class Shared(http.client.HTTPResponse):
    """One of several responses in a file. It must neither read ahead nor close the file."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(Unclosed(file))
        self.begin()


class Unclosed:
    """Stands for the socket of a response. Its file is a shared one, and stays open."""

    def __init__(self, file: BinaryIO) -> None:
        self.read, self.readline, self.readinto, self.peek = file.read, file.readline, file.readinto, file.peek

    def makefile(self, _mode: str) -> "Unclosed":
        return self

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def is_body(expected: str) -> Callable[[Answer], str | None]:
    def error_in(answer: Answer) -> str | None:
        found = answer.body[:40].decode(errors="replace")
        return None if answer.body == expected.encode() else f"the answer is {found!r}, not {expected!r}"

    return error_in


def is_page(count: int, factor: int, compressed: bool = False) -> Callable[[Answer], str | None]:
    """The answer is JSON: the first `count` items, each with its total."""
    items = [item | {"total": item["price"] * item["quantity"] * factor} for item in dataset()[:count]]

    def error_in(answer: Answer) -> str | None:
        coding = answer.header("content-encoding")
        if coding != ("gzip" if compressed else ""):
            return f"the content coding is {coding!r}"
        if not answer.header("content-type").startswith("application/json"):
            return f"the content type is {answer.header('content-type')!r}"
        try:
            found = json.loads(gzip.decompress(answer.body) if compressed else answer.body)
        except (ValueError, OSError) as error:
            return str(error)
        return None if found == {"items": items, "count": count} else "the items or their totals are wrong"

    return error_in


def number() -> int:
    return draw.randint(100, 999)


def root() -> list[Exchange]:
    return [Exchange("GET", "/", is_body(""))]


def user() -> list[Exchange]:
    ids = ["0", str(number()), f"u{number()}"]
    return [Exchange("GET", f"/user/{text}", is_body(text)) for text in ids]


def post_user() -> list[Exchange]:
    return [Exchange("POST", "/user", is_body(""))]


def baseline() -> list[Exchange]:
    a, b, one, two, three = (number() for _ in range(5))
    path = f"/baseline11?a={a}&b={b}"
    return [
        Exchange("GET", path, is_body(str(a + b))),
        Exchange("POST", path, is_body(str(a + b + one)), str(one).encode()),
        Exchange("POST", path, is_body(str(a + b + two)), str(two).encode(), {"Content-Type": "text/plain"}),
        Exchange("POST", path, is_body(str(a + b + three)), str(three).encode(), chunked=True),
    ]


def pipelined() -> list[Exchange]:
    return [Exchange("GET", "/pipeline", is_body("ok"), pipelined=16)]


def json_pages() -> list[Exchange]:
    return [json_page(count) for count in (12, 22, 31, ITEMS)]


def compressed() -> list[Exchange]:
    pages = [json_page(count, compressed=True) for count in (25, 40, ITEMS)]
    return [*pages, json_page(ITEMS)]


def json_page(count: int, compressed: bool = False) -> Exchange:
    factor = draw.randint(2, 9)
    headers = {"Accept-Encoding": "gzip"} if compressed else {}
    return Exchange("GET", f"/json/{count}?m={factor}", is_page(count, factor, compressed), headers=headers)


def upload() -> list[Exchange]:
    sizes = [17, number(), 2_000_000 + number()]
    octets = {"Content-Type": "application/octet-stream"}
    bodies = [(size, draw.randbytes(size)) for size in sizes]
    return [
        *(Exchange("POST", "/upload", is_body(str(size)), body, octets) for size, body in bodies),
        Exchange("POST", "/upload", is_body(str(sizes[1])), bodies[1][1], octets, chunked=True),
    ]
