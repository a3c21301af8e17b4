"""The cases of both contests: a Workload and the flags that a Workload cannot contain.

Sources, as of 2026-04-29: the-benchmarker/web-frameworks (CONTRIBUTING.md, Rakefile, .env) and MDA2AV/HttpArena
(site/content/docs/test-profiles/h1, scripts/lib/profiles.sh, scripts/lib/tools/gcannon.sh).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import contract
from .contract import Exchange

WORKLOADS = Path(__file__).parent / "workloads"
BENCHMARKER, ARENA = "the-benchmarker", "HttpArena"
# Requests that HttpArena's profile `pipelined` has in flight on each connection.
PIPELINE = 16
# Sizes of the bodies of HttpArena's profile `upload`, in bytes.
UPLOADS = (512_000, 2_097_152, 10_485_760, 20_971_520)
# With a new connection for every request, one address of the client has too few ports: a port can be used again only a
# minute later.
NEW_CONNECTIONS = ("--new-connection", "--source-ip", "127.20.0.0/28")


@dataclass(frozen=True)
class Case:
    """One case of a contest."""

    name: str
    contest: str
    workload: str
    exchanges: Callable[[], list[Exchange]]
    # The numbers of connections of the contest.
    connections: tuple[int, ...]
    flags: tuple[str, ...] = ()
    pipeline: int = 1
    # Maximum number of requests before the measurement. The framework states how many it needs.
    max_warm_up: int = 40_000

    @property
    def file(self) -> Path:
        return WORKLOADS / f"{self.workload}.toml"

    def load_flags(self, connections: int) -> list[str]:
        """The flags of `brimful load`. A client has one request in flight, so a connection has `pipeline` clients."""
        pipeline = ["--pipeline", str(self.pipeline)] if self.pipeline > 1 else []
        return ["--workload", str(self.file), "--clients", str(connections * self.pipeline), *pipeline, *self.flags]


ROUTES = (64, 256, 512)
MANY = (512, 4096)

CASES = [
    Case("root", BENCHMARKER, "root", contract.root, ROUTES, NEW_CONNECTIONS),
    Case("user", BENCHMARKER, "user", contract.user, ROUTES, NEW_CONNECTIONS),
    Case("post-user", BENCHMARKER, "post-user", contract.post_user, ROUTES, NEW_CONNECTIONS),
    Case("root-kept", BENCHMARKER, "root", contract.root, ROUTES),
    Case("user-kept", BENCHMARKER, "user", contract.user, ROUTES),
    Case("post-user-kept", BENCHMARKER, "post-user", contract.post_user, ROUTES),
    Case("baseline", ARENA, "baseline", contract.baseline, MANY),
    Case("pipelined", ARENA, "pipelined", contract.pipelined, MANY, pipeline=PIPELINE),
    Case("limited-conn", ARENA, "baseline", contract.baseline, MANY, ("--calls-per-connection", "10")),
    Case("json", ARENA, "json", contract.json_pages, (4096,), ("--calls-per-connection", "25")),
    Case("json-comp", ARENA, "json-comp", contract.compressed, MANY, ("--calls-per-connection", "25")),
    # The bodies are large: the default timeout of 5 s would abandon calls that the server still reads.
    Case("upload", ARENA, "upload", contract.upload, (32, 256), ("--calls-per-connection", "5", "--timeout", "60s"),
         max_warm_up=200),
]  # fmt: skip


def write_bodies(directory: Path) -> None:
    """Writes the bodies of the case `upload`. The Workload names them relative to the working directory."""
    for size in UPLOADS:
        (directory / f"upload-{size}.bin").write_bytes(contract.draw.randbytes(size))
