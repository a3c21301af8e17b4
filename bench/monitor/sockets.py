"""One end of many connections: `sockets.py serve PORT NUMBER` and `sockets.py connect ADDRESS PORT NUMBER`.

Both print a line when all connections are established, and keep them open until their standard input ends.
"""

import resource
import socket
import sys


def main(role: str, *arguments: str) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = serve(*map(int, arguments)) if role == "serve" else connect(arguments[0], *map(int, arguments[1:]))
    print(f"{arguments[-1]} connections", flush=True)
    sys.stdin.read()
    for end in held:
        end.close()


def serve(port: int, number: int) -> list[socket.socket]:
    listener = socket.create_server(("", port), backlog=4096)
    print("listening", flush=True)
    # Return the listener too: otherwise, Python would close it.
    return [listener.accept()[0] for _ in range(number)] + [listener]


def connect(address: str, port: int, number: int) -> list[socket.socket]:
    return [socket.create_connection((address, port), timeout=30) for _ in range(number)]


if __name__ == "__main__":
    main(*sys.argv[1:])
