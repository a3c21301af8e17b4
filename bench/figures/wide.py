"""Two hosts with a wide area between them, made by `brimful testbed` (Banga & Druschel 1997, Figure 3).

`brimful testbed` runs a shell that waits for the end of its standard input, a pipe from this program. Servers and loads
start in the shell's mount and PID namespaces, on the hosts that `ip netns exec` knows there. The kernel ends them all
when the shell ends, and the shell ends with this program. /run is in memory there and private to the test bed.
"""

import contextlib
import signal
import subprocess
from pathlib import Path

from .testbed import FILES, TestbedError

# Further addresses of the client: a single address has too few free ports for tens of thousands of sockets.
SOURCES = "198.18.1.0/29"
HOLD = (
    f"mount --rbind /run/netns /mnt && mount -t tmpfs tmpfs {FILES} && mkdir /run/netns && "
    "mount --move /mnt /run/netns && echo ready && exec cat"
)


class WideHost:
    """One host of a test bed."""

    def __init__(self, name, inside, cpu):
        self.name, self.inside, self.cpu = name, inside, cpu
        # The process stays in this program's PID namespace, so that this program sees it in /proc.
        command = ["nsenter", f"--target={inside}", "--mount", "ip", "netns", "exec", name, "sh", "-c"]
        self.keeper = subprocess.Popen(
            [*command, "echo ready && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.keeper.stdout.readline()

    @property
    def pid(self):
        """The ID of a process in the network namespace."""
        return self.keeper.pid

    def start(self, command, **options):
        """Starts a command on the host's CPU. It ends at the latest with the test bed."""
        enter = ["nsenter", f"--target={self.inside}", "--mount", "--pid", "ip", "netns", "exec", self.name]
        return subprocess.Popen(
            [*enter, "taskset", "-c", str(self.cpu), *map(str, command)], start_new_session=True, **options
        )

    def write(self, name, content):
        """Writes a file that is visible only in the test bed; returns its path there."""
        (Path(f"/proc/{self.inside}/root") / FILES.relative_to("/") / name).write_text(content)
        return FILES / name

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait()
        self.keeper.stdout.close()


@contextlib.contextmanager
def wide(brimful, server_cpu, client_cpu, flags):
    """A server and a client in a test bed. `flags` of `brimful testbed` set the delays and losses between them."""
    cpus = ["--server-cpus", str(server_cpu), "--client-cpus", str(client_cpu)]
    command = [brimful, "testbed", "--quiet", "--seed", "1", *cpus, *flags, "--", "sh", "-c", HOLD]
    bed = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        if bed.stdout.readline() != b"ready\n":
            bed.stdin.close()
            raise TestbedError(f"brimful testbed failed: {bed.stderr.read().decode().strip()}")
        inside = child(child(bed.pid))
        with contextlib.ExitStack() as stack:
            hosts = (("server", server_cpu), ("client1", client_cpu))
            yield tuple(stack.enter_context(contextlib.closing(WideHost(name, inside, cpu))) for name, cpu in hosts)
    finally:
        bed.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            bed.wait(10)
        if bed.poll() is None:
            bed.send_signal(signal.SIGKILL)
            bed.wait()
        bed.stdout.close()
        bed.stderr.close()


def child(pid, proc=Path("/proc")):
    """The process ID of the only child of a process."""
    for status in proc.glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"\nPPid:\t{pid}\n" in status.read_text():
                return int(status.parent.name)
    raise TestbedError(f"process {pid} has no child")
