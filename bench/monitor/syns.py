"""Overflows a listener's accept queue and counts the SYNs, in a network namespace: `syns.py full|drained BACKLOG
CONNECTS SECONDS`.

It prints the port, waits for a line on its standard input, begins CONNECTS connections to a listener that accepts none
of them (`full`), or once, half-way, all that wait (`drained`). For SECONDS it lets the kernel repeat the SYNs of those
that were dropped, then gives up and prints what it counted as JSON.

SYNs are counted by a packet socket as they arrive, which is independent of everything that TCP counts. Loopback hands
each packet to such a socket twice, once leaving and once arriving (packet(7), sll_pkttype): only arrivals count.
Connections are begun one after the other on one thread, so that no two handshakes are under way at a time. When a queue
has been drained, the next SYNs come in one burst, from timers: all of their handshakes begin, most find the queue full
again at their end, and the kernel counts as dropped what were no SYNs.
"""

import json
import socket
import sys
import threading
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4
ETHERNET_BYTES = 14
SYN, ACK = 0x02, 0x10


class Counter:
    """Counts SYNs to a port as they arrive."""

    def __init__(self, port: int) -> None:
        self.syns = 0
        self._port = port
        self._packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._packets.bind(("lo", 0))
        self._packets.settimeout(0.1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._count)
        self._thread.start()

    def _count(self) -> None:
        while not self._stop.is_set():
            try:
                packet, address = self._packets.recvfrom(128)
            except TimeoutError:
                continue
            self.syns += address[2] != PACKET_OUTGOING and is_syn(packet, self._port)

    def finish(self) -> int:
        """The number so far, once everything that has arrived is counted."""
        time.sleep(0.3)
        self._stop.set()
        self._thread.join()
        return self.syns


def is_syn(frame: bytes, port: int) -> bool:
    """Whether an Ethernet frame has an IPv4 TCP segment that asks a port for a connection (RFC 791, RFC 9293)."""
    packet = frame[ETHERNET_BYTES:]
    if len(packet) < 20 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
        return False
    segment = packet[(packet[0] & 15) * 4 :]
    if len(segment) < 14:
        return False
    return int.from_bytes(segment[2:4]) == port and segment[13] & (SYN | ACK) == SYN


def main(kind: str, backlog: int, connects: int, seconds: float) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
    listener.setblocking(False)
    address = listener.getsockname()
    counter = Counter(address[1])
    print(address[1], flush=True)
    sys.stdin.readline()
    clients = []
    for _ in range(connects):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(address)
        clients.append(client)
    time.sleep(seconds / 2)
    taken = take(listener) if kind == "drained" else 0
    time.sleep(seconds / 2)
    for client in clients:
        client.close()
    taken += take(listener)
    print(json.dumps({"syns": counter.finish(), "accepted": taken}), flush=True)
    # The listener stays for the monitor's last sample.
    sys.stdin.read()


def take(listener: socket.socket) -> int:
    """Accepts what waits; how much that was."""
    taken = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return taken
        taken += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
