"""The frameworks: how each is started, and which cases it takes part in. Their programs are in servers/."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..accuracy.subjects import Place, Subject, asgi, go, java, on_nginx, program

SERVERS = Path(__file__).parent / "servers"
ITEMS = 50
# The workloads without JSON.
WITHOUT_JSON = ("root", "user", "post-user", "baseline", "pipelined", "upload")
# The workloads that nginx answers without an application.
FIXED = ("root", "user", "post-user", "pipelined")

NGINX = """\
default_type text/plain;
        location = / { return 200; }
        location = /user { return 200; }
        location ~ "^/user/(?<id>[^/]+)$" { return 200 $id; }
        location = /pipeline { return 200 ok; }"""


@dataclass(frozen=True)
class Framework(Subject):
    """A web framework, or the HTTP server of a language. It must answer GET / with status 200."""

    # Packages of npm that it needs in servers/node_modules.
    packages: tuple[str, ...] = ()
    # The workloads that it takes part in; all if there are none.
    workloads: tuple[str, ...] = ()
    min_bytes: int = 0

    def missing(self) -> str | None:
        absent = [package for package in self.packages if self._manifest(package) is None]
        found = [super().missing()]
        if absent:
            found.append(f"{', '.join(absent)} is missing: npm install --prefix bench/contest/servers")
        return "; ".join(filter(None, found)) or None

    def takes_part_in(self, workload: str) -> bool:
        return not self.workloads or workload in self.workloads

    def versions(self) -> dict[str, str]:
        """The versions of its packages of npm."""
        manifests = {package: self._manifest(package) for package in self.packages}
        return {package: manifest["version"] for package, manifest in manifests.items() if manifest}

    def _manifest(self, package: str) -> dict | None:
        path = SERVERS / "node_modules" / package / "package.json"
        return json.loads(path.read_text()) if path.exists() else None


def dataset(seed: int = 1) -> list[dict]:
    """Items like those of HttpArena's data set, drawn from the seed."""
    draw = random.Random(seed)
    tags = ["new", "sale", "heavy", "small", "outdoor", "wireless"]
    return [
        {
            "id": number,
            "name": f"item {number}",
            "category": draw.choice(["books", "garden", "kitchen", "tools"]),
            "price": draw.randint(1, 500),
            "quantity": draw.randint(1, 100),
            "active": draw.random() < 0.5,
            "tags": draw.sample(tags, draw.randint(2, 4)),
            "rating": {"score": draw.randint(1, 50), "count": draw.randint(1, 300)},
        }
        for number in range(1, ITEMS + 1)
    ]


def write_dataset(place: Place) -> str:
    return place.write("dataset.json", json.dumps(dataset()))


def on_node(script: str) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        # Frameworks skip work in production that helps developers only.
        node = ["env", "NODE_ENV=production", program("node"), str(SERVERS / script)]
        return [[*node, str(place.port), write_dataset(place)]]

    return commands


def on_asgi(script: str) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        write_dataset(place)
        return asgi(place, SERVERS / script)

    return commands


def on_go(place: Place) -> list[list[str]]:
    return [[go(SERVERS / "contest.go"), str(place.port), write_dataset(place)]]


def on_java(place: Place) -> list[list[str]]:
    return [[*java(SERVERS / "Contest.java"), str(place.port)]]


def without_application(place: Place) -> list[list[str]]:
    return on_nginx(place, NGINX)


ASGI = ("uvicorn", "httptools", "uvloop")

FRAMEWORKS = [
    Framework("nginx", "nginx without an application", ("nginx",), without_application, workloads=FIXED),
    Framework("go", "Go's net/http", ("go",), on_go),
    Framework("node", "Node's http", ("node",), on_node("node.js"), warm_up=15_000),
    Framework(
        "fastify", "Fastify on Node", ("node",), on_node("fastify.js"), warm_up=15_000,
        packages=("fastify", "@fastify/compress"),
    ),
    Framework(
        "express", "Express on Node", ("node",), on_node("express.js"), warm_up=15_000,
        packages=("express", "compression"),
    ),
    Framework("java", "the JDK's HTTP server with 8 threads", ("java", "javac"), on_java, warm_up=40_000,
              workloads=WITHOUT_JSON),
    Framework("uvicorn", "uvicorn without a framework", ASGI, on_asgi("asgi.py")),
    Framework("starlette", "Starlette on uvicorn", ("starlette", *ASGI), on_asgi("on_starlette.py")),
]  # fmt: skip
