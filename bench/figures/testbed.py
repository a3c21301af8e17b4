"""Two hosts on one machine: a server and a client, joined by a veth pair, each on a CPU of its own.

A host is a network, mount and PID namespace without a name. It lives as long as a process that waits for the end of its
standard input, which is ours: however this program ends, the pipe closes, the waiting process ends, and because it is
the first of its PID namespace the kernel kills everything else in it and takes the network down. Nothing is left behind
and nothing else is touched.

A veth pair hands a packet to the receiving side on the sender's CPU. Both ends are therefore steered (receive packet
steering, Documentation/networking/scaling.rst): the server's receive work is done by the server's CPU, so that a
dropped SYN costs the server and not the client, and the other way round.
"""

import contextlib
import subprocess
from pathlib import Path

# RFC 2544 keeps 198.18.0.0/15 for benchmarks.
SERVER_ADDRESS = "198.18.0.1"
CLIENT_ADDRESS = "198.18.0.2"
PREFIX = 15
# The client's as well: tens of thousands of sockets leave too few ports of one address to find a free one quickly.
SOURCES = "198.18.16.0/29"
PORTS = "1024 65535"

# Where a host keeps its servers' files: in memory, seen by nobody else, gone with the host.
FILES = Path("/run")
HOLD = f"mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs {FILES} && ip link set lo up && echo ready && exec cat"


class TestbedError(Exception):
    """The machine does not allow the test bed; the message says what to do."""


class Host:
    """One namespace and what runs in it."""

    def __init__(self, cpu):
        self.cpu = cpu
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "sh", "-c", HOLD]
        # Its own session: Ctrl-C reaches this program alone, which then closes the pipes in order.
        self.holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        if self.holder.stdout.readline() != b"ready\n":
            reason = self.holder.stderr.read().decode().strip()
            self.close()
            raise TestbedError(f"cannot make a network namespace ({reason}): run as root, with util-linux and iproute2")

    @property
    def pid(self):
        """A process in the network namespace."""
        return self.holder.pid

    def run(self, *command):
        """Runs a short command in the namespaces of network and mounts, and waits for its end."""
        done = subprocess.run(
            [*self.enter(), *map(str, command)], capture_output=True, text=True, start_new_session=True
        )
        if done.returncode:
            raise TestbedError(f"{' '.join(map(str, command))} failed: {done.stderr.strip() or done.stdout.strip()}")

    def start(self, command, **options):
        """Starts a command on the host's CPU; it runs until it ends by itself or the host is closed."""
        enter = [*self.enter(), f"--pid=/proc/{self.pid}/ns/pid_for_children", "taskset", "-c", str(self.cpu)]
        return subprocess.Popen([*enter, *map(str, command)], start_new_session=True, **options)

    def enter(self):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt"]

    def write(self, name, content):
        """Writes a file that only this host sees; returns its path there."""
        self.outside(name).write_text(content)
        return FILES / name

    def outside(self, name):
        """The path by which this program reaches the host's file."""
        return Path(f"/proc/{self.pid}/root") / FILES.relative_to("/") / name

    def sysctl(self, name, value):
        """Sets a sysctl of this network namespace, and of no other."""
        self.run("sh", "-c", f'echo "{value}" > /proc/sys/{name.replace(".", "/")}')

    def close(self):
        """Ends the host and everything in it."""
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()


@contextlib.contextmanager
def testbed(server_cpu, client_cpu, server_sysctls=None, client_sysctls=None, steered=True):
    """A server and a client that reach each other and nothing else."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(Host(server_cpu)))
        client = stack.enter_context(contextlib.closing(Host(client_cpu)))
        client.run("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", server.pid)
        for host, address in ((server, SERVER_ADDRESS), (client, CLIENT_ADDRESS)):
            host.run("ip", "address", "add", f"{address}/{PREFIX}", "dev", "wire")
            host.run("ip", "link", "set", "wire", "up")
            if steered:
                steer(host)
        client.run("ip", "route", "add", "local", SOURCES, "dev", "lo")
        client.sysctl("net.ipv4.ip_local_port_range", PORTS)
        for host, sysctls in ((server, server_sysctls), (client, client_sysctls)):
            for name, value in (sysctls or {}).items():
                host.sysctl(name, value)
        yield server, client


def steer(host):
    """Has the host's CPU do the receive work of its end of the wire."""
    host.run("sh", "-c", f"echo {1 << host.cpu:x} > /sys/class/net/wire/queues/rx-0/rps_cpus")


def check(server_cpu, client_cpu, cpus=Path("/sys/devices/system/cpu/online")):
    """Refuses CPUs that are not there, or the same for both."""
    online = cpu_list(cpus.read_text())
    if server_cpu == client_cpu or not {server_cpu, client_cpu} <= online:
        raise TestbedError(
            f"server and client need two CPUs of {sorted(online)}, not {server_cpu} and {client_cpu}: "
            "choose them with --server-cpu and --client-cpu"
        )


def cpu_list(text):
    """The CPUs of a list like 0-1,4."""
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
