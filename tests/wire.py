# SPDX-License-Identifier: Apache-2.0
"""A bare Redis-protocol connection: what it sends and gets is exactly what the test says.

Client libraries hide packets, order and pushes; tests about those use this.
"""

import socket

from harness import encode


class ReplyError(Exception):
    """An error reply; the text is the server's."""


class Push(list):
    """A RESP3 push, told apart from an array."""


class Wire:
    """One connection; deadlines on everything."""

    def __init__(self, port, timeout_s=10.0, host="127.0.0.1"):
        self.link = socket.create_connection((host, port), timeout=timeout_s)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.link.makefile("rb", buffering=1 << 16)

    def send(self, *words):
        self.link.sendall(encode(*words))

    def send_bytes(self, data):
        self.link.sendall(data)

    def ask(self, *words):
        """Sends one command and reads one reply; an error reply is raised."""
        self.send(*words)
        return self.read()

    def read(self):
        """One reply or push: bytes, int, float, bool, None, list, dict, Push; errors raised."""
        value = self.read_value()
        if isinstance(value, ReplyError):
            raise value
        return value

    def read_value(self):
        """As read(), but an error reply is returned."""
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError(f"connection closed after {line!r}")
        kind, rest = line[:1], line[1:-2]
        if kind in (b"+",):
            return rest
        if kind in (b"-", b"!"):
            return ReplyError((rest if kind == b"-" else self._bulk(int(rest))).decode("latin-1"))
        if kind in (b":", b"("):
            return int(rest)
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b"_":
            return None
        if kind == b"$":
            return None if rest == b"-1" else self._bulk(int(rest))
        if kind == b"=":
            return self._bulk(int(rest))[4:]
        return self._aggregate(kind, int(rest))

    def _bulk(self, size):
        data = self.reader.read(size + 2)
        if len(data) != size + 2 or data[-2:] != b"\r\n":
            raise ConnectionError("connection closed inside a string, or no CR LF after it")
        return data[:-2]

    def _aggregate(self, kind, count):
        if count == -1:
            return None
        if kind == b"*":
            return [self.read_value() for _ in range(count)]
        if kind == b">":
            return Push(self.read_value() for _ in range(count))
        if kind == b"~":
            return [self.read_value() for _ in range(count)]
        if kind == b"%":
            return {_hashable(self.read_value()): self.read_value() for _ in range(count)}
        if kind == b"|":
            for _ in range(count * 2):
                self.read_value()
            return self.read_value()
        raise ConnectionError(f"not a reply: {kind!r}")

    def silent(self, seconds):
        """True if nothing arrives for that long."""
        before = self.link.gettimeout()
        self.link.settimeout(seconds)
        try:
            return not self.link.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.link.settimeout(before)

    def closed_by_peer(self):
        """True once the peer has closed; False after the connection's deadline without it."""
        try:
            return self.reader.read(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def close(self):
        self.reader.close()
        self.link.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value
