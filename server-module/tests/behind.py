"""What the tests of both modules put behind and beside a server: a server of many threads, and a port for each."""

import http.server
import socket
import socketserver


class Threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
