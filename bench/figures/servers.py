"""The servers under test, slow enough that one client CPU overloads them far beyond their capacity.

Apache prefork runs a fixed number of steps of a Lua loop for each request. The number is fitted to the wanted capacity
by two measurements. `brimful target` does a fixed amount of work (`work:TIME`), which takes that time on a CPU without
other work. Past saturation, both are slowed down by the work on dropped SYNs. A target that burns CPU *time* would not
be: a kernel without CONFIG_IRQ_TIME_ACCOUNTING charges an interrupt's time to the thread that it interrupts.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .testbed import FILES, SERVER_ADDRESS

PORT = 80
APACHE = "/usr/sbin/apache2"
MODULES = "/usr/lib/apache2/modules"

LUA = """local page = string.rep("x", {size} - 1) .. "\\n"
function handle(r)
  local x = 1
  for _ = 1, {steps} do x = (x * 1103515245 + 12345) % 2147483648 end
  r.content_type = "text/plain"
  r:puts(page)
  return apache2.OK
end
"""

CONFIGURATION = """ServerRoot "{dir}"
ServerName localhost
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule lua_module {modules}/mod_lua.so
ServerLimit {workers}
StartServers {workers}
MinSpareServers {workers}
MaxSpareServers {most}
MaxRequestWorkers {workers}
User www-data
Group www-data
Listen {address}:{port}
ListenBacklog {backlog}
DefaultRuntimeDir "{dir}"
PidFile "{dir}/server.pid"
ErrorLog "{dir}/error.log"
LogLevel warn
DocumentRoot "{dir}"
KeepAlive Off
LuaMapHandler /page "{dir}/page.lua" handle
"""


@dataclass(frozen=True)
class Apache:
    """Apache with one process per connection. All processes start at once."""

    workers: int
    backlog: int
    size: int
    steps: int = 0
    name: str = "apache"

    def describe(self):
        return (
            f"apache2 prefork, {self.workers} processes, ListenBacklog {self.backlog}, "
            f"{self.size} B after {self.steps} steps of a Lua loop"
        )

    def room(self):
        """Number of connections in the server and its full queue; the next SYN is dropped."""
        return self.backlog + 1 + self.workers

    def start(self, host):
        """Starts Apache in a host."""
        values = dict(vars(self), dir=FILES, modules=MODULES, most=self.workers + 1, address=SERVER_ADDRESS, port=PORT)
        host.write("page.lua", LUA.format(**values))
        return host.start([APACHE, "-f", host.write("server.conf", CONFIGURATION.format(**values)), "-DFOREGROUND"])


@dataclass(frozen=True)
class Target:
    """The reference server, one worker."""

    brimful: Path
    demand: str
    backlog: int
    size: int
    name: str = "target"

    def arguments(self):
        service = f"page={self.demand}/{self.size}"
        return ["target", "--service", service, "--workers", "1", "--backlog", str(self.backlog)]

    def describe(self):
        return "brimful " + " ".join(self.arguments())

    def room(self):
        """Number of connections in the server and its full queue. The worker accepts the whole queue at once, so two
        queues fit."""
        return 2 * (self.backlog + 1)

    def start(self, host):
        """Starts the target in a host."""
        command = [self.brimful, *self.arguments(), "--listen", f"{SERVER_ADDRESS}:{PORT}"]
        return host.start(command, stdout=subprocess.DEVNULL)


@dataclass(frozen=True)
class NeverAccepting:
    """A listener that never accepts: when its queue is full, every further SYN is dropped."""

    backlog: int

    def start(self, host):
        """Starts the listener in a host."""
        listen = f"socket.create_server(({SERVER_ADDRESS!r}, {PORT}), backlog={self.backlog})"
        return host.start([sys.executable, "-c", f"import signal, socket; kept = {listen}; signal.pause()"])
