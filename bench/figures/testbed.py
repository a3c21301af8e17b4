"""Two hosts on one machine: a server and a client, joined by a veth pair, each on its own CPU.

A host is a network, mount and PID namespace without a name. It exists as long as a process that waits for the end of
its standard input, a pipe from this program. However this program ends, the pipe closes and the waiting process ends.
That process is the first of its PID namespace, so the kernel then kills all other processes there and removes the
network.

A veth pair processes a received packet on the sender's CPU. Receive packet steering
(Documentation/networking/scaling.rst) is therefore set on both ends: the server's CPU does the server's receive work,
so that a dropped SYN costs the server and not the client, and vice versa.
"""

import contextlib
import subprocess
from pathlib import Path

# An address in the network 198.18.0.0/15, which RFC 2544 reserves for benchmarks.
SERVER_ADDRESS = "198.18.0.1"
CLIENT_ADDRESS = "198.18.0.2"
PREFIX = 15
# Further addresses of the client: a single address has too few free ports for tens of thousands of sockets.
SOURCES = "198.18.16.0/29"
PORTS = "1024 65535"

# Directory for the server's files on a host. It is in memory, only visible on the host, and removed with it.
FILES = Path("/run")
HOLD = f"mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs {FILES} && ip link set lo up && echo ready && exec cat"


class TestbedError(Exception):
    """The test bed cannot be made; the message says what to do."""


class Host:
    """One host: its namespaces and the processes in them."""

    def __init__(self, cpu):
        self.cpu = cpu
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "sh", "-c", HOLD]
        # The process runs in a session of its own, so that Ctrl-C reaches only this program, which then closes the
        # pipes in order.
        self.holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        if self.holder.stdout.readline() != b"ready\n":
            reason = self.holder.stderr.read().decode().strip()
            self.close()
            raise TestbedError(f"cannot make a network namespace ({reason}): run as root, with util-linux and iproute2")

    @property
    def pid(self):
        """The ID of a process in the network namespace."""
        return self.holder.pid

    def run(self, *command):
        """Runs a short command in the network and mount namespaces, and waits for its end."""
        done = subprocess.run(
            [*self.enter(), *map(str, command)], capture_output=True, text=True, start_new_session=True
        )
        if done.returncode:
            raise TestbedError(f"{' '.join(map(str, command))} failed: {done.stderr.strip() or done.stdout.strip()}")

    def start(self, command, **options):
        """Starts a command on the host's CPU. It ends at the latest when the host is closed."""
        enter = [*self.enter(), f"--pid=/proc/{self.pid}/ns/pid_for_children", "taskset", "-c", str(self.cpu)]
        return subprocess.Popen([*enter, *map(str, command)], start_new_session=True, **options)

    def enter(self):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt"]

    def write(self, name, content):
        """Writes a file that is visible only in this host; returns its path there."""
        self.outside(name).write_text(content)
        return FILES / name

    def outside(self, name):
        """The path by which this program reaches the host's file."""
        return Path(f"/proc/{self.pid}/root") / FILES.relative_to("/") / name

    def sysctl(self, name, value):
        """Sets a sysctl of this network namespace only."""
        self.run("sh", "-c", f'echo "{value}" > /proc/sys/{name.replace(".", "/")}')

    def close(self):
        """Ends the host and everything in it."""
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()


@contextlib.contextmanager
def testbed(server_cpu, client_cpu, server_sysctls=None, client_sysctls=None, steered=True):
    """A server and a client that can reach only each other."""
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


def steer(host, device="wire"):
    """Makes the host's CPU do the receive work of its end of the veth pair."""
    host.run("sh", "-c", f"echo {1 << host.cpu:x} > /sys/class/net/{device}/queues/rx-0/rps_cpus")


def check(server_cpu, client_cpu, cpus=Path("/sys/devices/system/cpu/online")):
    """Raises TestbedError unless both CPUs are online and differ."""
    online = cpu_list(cpus.read_text())
    if server_cpu == client_cpu or not {server_cpu, client_cpu} <= online:
        raise TestbedError(
            f"server and client need two different CPUs of {sorted(online)}, not {server_cpu} and {client_cpu}: "
            "choose them with --server-cpu and --client-cpu"
        )


def cpu_list(text):
    """The CPUs of a kernel list such as 0-1,4."""
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
