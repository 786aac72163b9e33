# SPDX-License-Identifier: Apache-2.0
"""UDP flows from a host of a test network, and servers that answer each datagram with their name
and what it held."""

import contextlib
import ctypes
import os
import socket
import threading

from harness import wait_until
from network import family_of

PORT = 7000
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000

ECHO = """
import select, socket, sys
name, port, sockets = sys.argv[1].encode(), int(sys.argv[2]), []
for address in sys.argv[3:]:
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    sockets.append(socket.socket(family, socket.SOCK_DGRAM))
    sockets[-1].bind((address, port))
while True:
    for one in select.select(sockets, [], [])[0]:
        data, client = one.recvfrom(65536)
        one.sendto(name + b' ' + data, client)
"""


@contextlib.contextmanager
def inside(net, host):
    """What this thread opens meanwhile is the host's."""
    with open("/proc/thread-self/ns/net", "rb") as own, \
         open(f"/run/netns/{net.space(host)}", "rb") as other:
        if LIBC.setns(other.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {host}")
        try:
            yield
        finally:
            if LIBC.setns(own.fileno(), CLONE_NEWNET):
                os.abort()  # nothing after this would be where it should be


def udp_echo(net, host, addresses, port=PORT):
    net.start(host, "/usr/bin/python3", "-c", ECHO, host, port, *addresses)
    wait_until(lambda: net.inside(host, "ss", "-Huln").stdout.count(f":{port} ") == len(addresses),
               10, f"UDP echo on {host}")


class Flow:
    """One source address and port of a host's, one VIP. A host's first IPv6 packet waits until its
    link-local address may be used."""

    def __init__(self, net, vip, port=PORT, host="client", timeout_s=5):
        self.to = (vip, port)
        family = socket.AF_INET6 if family_of(vip) == 6 else socket.AF_INET
        with inside(net, host):
            self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.settimeout(timeout_s)

    def ask(self, data=b"?"):
        """The name of the server that answered; None if none did."""
        self.socket.sendto(data, self.to)
        try:
            answer, source = self.socket.recvfrom(65536)
        except TimeoutError:
            return None
        assert source[:2] == self.to, "the answer comes from the VIP"
        name, _, rest = answer.partition(b" ")
        assert rest == data, "and holds what was sent"
        return name.decode()

    def close(self):
        self.socket.close()


class Stream(threading.Thread):
    """Datagrams of one flow, each after the answer to the one before, or some time without."""

    def __init__(self, flow, patience_s=5):
        super().__init__()
        self.flow = flow
        self.flow.socket.settimeout(patience_s)
        self.asked = self.lost = 0
        self.is_ended = False
        self.start()

    def run(self):
        while not self.is_ended:
            self.lost += self.flow.ask(b"%d" % self.asked) is None
            self.asked += 1

    def wait_for(self, more):
        """Until so many more datagrams have gone out."""
        goal = self.asked + more
        wait_until(lambda: self.asked >= goal or not self.is_alive(), 20, f"{more} datagrams")
        assert self.is_alive(), "an answer was wrong"

    def close(self):
        self.is_ended = True
        self.join(10)
        self.flow.close()
