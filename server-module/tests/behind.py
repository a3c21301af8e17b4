"""Helpers for the tests of the nginx and the Apache module: an upstream server with many threads, and free ports."""

import http.server
import socket
import socketserver


class Threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
