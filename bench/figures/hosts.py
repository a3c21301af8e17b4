"""The rule of one client host against two, at nginx (Banga & Druschel 1997, §4.3).

A client host is not the limit up to the request rate at which the throughput of the server is the same whether one host
or two generate the requests. The hosts are network namespaces with a CPU each. S-Clients follow a schedule of evenly
spaced attempts (`--s-clients D -R RATE`). Two hosts make the two shards of one schedule (`--shard 1/2`), with half of
the S-Clients each, so that the server gets the same attempts.
"""

import contextlib
import math
import subprocess
import time
from dataclasses import dataclass

from .counters import between, snapshot
from .measure import END_TIMEOUT_S, SPARE_S, completed, finish, listening, verdict
from .servers import PORT
from .testbed import FILES, SERVER_ADDRESS, Host, steer

NGINX = "/usr/sbin/nginx"
CONFIGURATION = """daemon off;
user www-data;
worker_processes 1;
pid {dir}/server.pid;
error_log {dir}/error.log warn;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    scgi_temp_path {dir}/scgi;
    uwsgi_temp_path {dir}/uwsgi;
    keepalive_timeout 0;
    server {{
        listen {address}:{port} backlog=1024;
        location = /page {{ return 200 "{page}"; }}
    }}
}}
"""
# Timeout of an attempt, in seconds. If the server accepts no connections, RATE × ATTEMPT_S S-Clients make RATE
# attempts/s.
ATTEMPT_S = 0.5
# Maximum relative difference of the throughputs for which two curves are regarded as equal.
SAME = 0.05


@dataclass(frozen=True)
class Nginx:
    """nginx with one worker, which closes each connection after its response of `size` bytes."""

    size: int
    name: str = "nginx"

    def describe(self):
        return f"nginx, one worker, backlog 1024, {self.size} B, a connection for each request"

    def start(self, host):
        """Starts nginx in a host."""
        values = {"dir": FILES, "address": SERVER_ADDRESS, "port": PORT, "page": "x" * self.size}
        config = host.write("server.conf", CONFIGURATION.format(**values))
        return host.start([NGINX, "-e", FILES / "error.log", "-c", config])


@contextlib.contextmanager
def testbed_of_clients(server_cpu, client_cpus):
    """A server, and a client on each of these CPUs, with a link of its own to the server. Yields the server and the
    list of the clients."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(Host(server_cpu)))
        server.run("ip", "address", "add", SERVER_ADDRESS, "dev", "lo")
        clients = []
        for number, cpu in enumerate(client_cpus, 1):
            client = stack.enter_context(contextlib.closing(Host(cpu)))
            device, network = f"wire{number}", f"198.18.{number}"
            client.run("ip", "link", "add", "wire", "type", "veth", "peer", "name", device, "netns", server.pid)
            client.run("ip", "address", "add", f"{network}.2/24", "dev", "wire")
            client.run("ip", "link", "set", "wire", "up")
            client.run("ip", "route", "add", SERVER_ADDRESS, "dev", "wire")
            client.run("ip", "route", "add", "local", f"{network}.16/29", "dev", "lo")
            client.sysctl("net.ipv4.ip_local_port_range", "1024 65535")
            server.run("ip", "link", "set", device, "up")
            server.run("ip", "route", "add", f"{network}.0/24", "dev", device)
            steer(client)
            steer(server, device)
            clients.append(client)
        yield server, clients


def load_of_host(lab, rate, host, hosts, seconds):
    """The command line of one host's share of the load."""
    clients = math.ceil(rate * ATTEMPT_S / hosts)
    arguments = ["--s-clients", clients, "--connect-timeout", f"{ATTEMPT_S:g}s", "-R", rate]
    arguments += ["--source-ip", f"198.18.{host}.16/29"]
    if hosts > 1:
        # Each shard is given the number of all S-Clients, and generates its share.
        arguments[1] = clients * hosts
        arguments += ["--shard", f"{host}/{hosts}"]
    url = f"http://{SERVER_ADDRESS}:{PORT}/page"
    return [lab.brimful, "load", *arguments, "--seed", "1", "-d", f"{seconds:g}s", "--json", "--quiet", url]


def rows(lab, server, client_cpus, rates, warm_up, window, say):
    """One row per request rate and number of hosts."""
    for rate in rates:
        for hosts in (1, 2):
            say(f"{server.name}: {rate} attempts/s of {hosts} client host(s)")
            with testbed_of_clients(lab.server_cpu, client_cpus[:hosts]) as (server_host, clients):
                listening(server.start(server_host), server_host)
                seconds = warm_up + window + SPARE_S
                limited = ["timeout", "--foreground", "--signal=INT", "--preserve-status", f"{seconds + END_TIMEOUT_S:g}"]
                loads = [
                    client.start(
                        [*limited, *load_of_host(lab, rate, number, hosts, seconds)],
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                    )
                    for number, client in enumerate(clients, 1)
                ]
                time.sleep(warm_up)
                before = [snapshot(server_host.pid, client.pid) for client in clients]
                time.sleep(window)
                after = [snapshot(server_host.pid, client.pid) for client in clients]
                records = [finish(load) for load in loads]
            parts = [
                between(*pair, lab.server_cpu, client.cpu) for pair, client in zip(zip(before, after), clients)
            ]
            replies = sum(
                completed(record, first.at_ns, last.at_ns) / part["seconds"]
                for record, first, last, part in zip(records, before, after, parts)
            )
            valid = ", ".join(dict.fromkeys(verdict(record) for record in records))
            yield {
                "server": server.name,
                "series": "one host" if hosts == 1 else "two hosts",
                "offered": rate,
                "syn": sum(part["syn"] for part in parts),
                "replies": replies,
                "server_busy": parts[0]["server_busy"],
                "client_busy": max(part["client_busy"] for part in parts),
                "valid": valid,
            }


def raw_request_rate(one, two):
    """The maximum raw request rate of a client host (§4.3): the highest offered rate up to which one host and two hosts
    get the same throughput. 0 if they differ from the first rate on. `one` and `two` map rates to throughputs."""
    agreed = 0
    for rate in sorted(one.keys() & two.keys()):
        if abs(one[rate] - two[rate]) > SAME * two[rate]:
            break
        agreed = rate
    return agreed
