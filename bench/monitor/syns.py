"""Overflows a listener's accept queue and counts the SYNs, in a network namespace: `syns.py full|drained BACKLOG
CONNECTS SECONDS`.

It prints the port, waits for a line on its standard input, and begins CONNECTS connections. With `full`, the listener
accepts no connection. With `drained`, it accepts all waiting connections after half of the time. For SECONDS the kernel
repeats the SYNs that were dropped. Then the program closes the connections and prints its counts as JSON.

A packet socket counts SYNs as they arrive, independently of TCP's counters. On loopback such a socket receives each
packet twice, leaving and arriving (packet(7), sll_pkttype); only arrivals count. One thread begins the connections one
after the other, so that handshakes do not overlap. After the queue has been drained, timers send the next SYNs in one
burst. All of their handshakes begin, but for most of them the queue is full again when the final ACK arrives. The
kernel counts these ACKs as drops too.
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
        """Stops counting, and returns the number of SYNs that have arrived."""
        time.sleep(0.3)
        self._stop.set()
        self._thread.join()
        return self.syns


def is_syn(frame: bytes, port: int) -> bool:
    """Whether an Ethernet frame is an IPv4 TCP SYN to a port (RFC 791, RFC 9293)."""
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
    accepted = accept_waiting(listener) if kind == "drained" else 0
    time.sleep(seconds / 2)
    for client in clients:
        client.close()
    accepted += accept_waiting(listener)
    print(json.dumps({"syns": counter.finish(), "accepted": accepted}), flush=True)
    # Keep the listener open until the monitor has taken its last sample.
    sys.stdin.read()


def accept_waiting(listener: socket.socket) -> int:
    """Accepts and closes all waiting connections; returns their number."""
    accepted = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return accepted
        accepted += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
