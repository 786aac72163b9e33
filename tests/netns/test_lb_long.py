# SPDX-License-Identifier: Apache-2.0
"""Ten thousand open connections, and everything a day may bring: none of them moves."""

import json
import random
import subprocess
import threading
import time

from control import VIPS, build
from holder import Holder, echo_servers, echo_vip

CONNECTIONS = 10_000
SYNS = 1_000_000
ROUND_S = 0.1

# First packets of connections from all over a network, as fast as they go out.
FLOOD = """
import os, random, socket, struct, sys
target, gateway, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(('eth0', 0))
head = bytes.fromhex(gateway) + out.getsockname()[4] + bytes([8, 0])
def summed(data):
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
to = socket.inet_aton(target)
sent = 0
for _ in range(count):
    source = struct.pack('>I', 0xc6120000 | random.getrandbits(17))
    port = random.getrandbits(16) | 1
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 40, 1, 0x4000, 64, 6, 0, source, to)
    ip = ip[:10] + struct.pack('>H', summed(ip)) + ip[12:]
    tcp = struct.pack('>HHIIBBHHH', port, 7000, 1, 0, 0x50, 2, 1024, 0, 0)
    pseudo = source + to + struct.pack('>HH', 6, 20)
    tcp = tcp[:16] + struct.pack('>H', summed(pseudo + tcp)) + tcp[18:]
    try:
        out.send(head + ip + tcp)
        sent += 1
    except OSError:
        pass
print(sent)
"""


class Flood:
    """A million SYNs to the VIP, in processes of their own."""

    def __init__(self, net, count=SYNS, senders=2):
        link = json.loads(net.inside("lb", "ip", "-j", "link", "show", "eth0").stdout)
        gateway = link[0]["address"].replace(":", "")
        self.processes = [subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{net.space('client')}", "/usr/bin/python3", "-c", FLOOD,
             VIPS[0], gateway, str(count // senders)], stdout=subprocess.PIPE, text=True)
                          for _ in range(senders)]
        net.processes.extend(self.processes)

    def wait(self):
        return sum(int(one.communicate(timeout=300)[0]) for one in self.processes)


class Changes(threading.Thread):
    """Other weights every tenth of a second, an instance that drains and comes back, and one that
    comes and goes."""

    def __init__(self, balancer):
        super().__init__()
        self.balancer, self.stopped, self.rounds, self.random = balancer, False, 0, random.Random(7)
        self.lock = threading.Lock()

    def next(self):
        names = ["web0", "web1", "web2"] if self.rounds % 20 < 10 else ["web0", "web1"]
        changed = echo_vip(names=names, scheduler="static")
        for instance in changed["instance"]:
            instance["weight"] = self.random.choice([0.5, 1, 2, 3])
        if self.rounds % 30 >= 20:
            changed["instance"][1]["operation"] = "drain"
        return changed

    def run(self):
        while not self.stopped:
            with self.lock:
                self.balancer.apply([self.next()])
            self.rounds += 1
            time.sleep(ROUND_S)


def test_ten_thousand_connections_stay(net, run):
    build(net, webs=3)
    echo_servers(net, "web0", "web1", "web2")
    balancer = run([echo_vip(names=("web0", "web1"), scheduler="static")], keep=True)
    balancer.wait_weights("weights", web0=True, web1=True)
    holder = Holder(net, CONNECTIONS)
    changes = Changes(balancer)
    changes.start()
    try:
        flood = Flood(net)
        for end in (balancer.stop, balancer.kill, balancer.stop):
            assert len(holder.good()) == CONNECTIONS
            with changes.lock:
                end()
                balancer.api.unlink(missing_ok=True)
                balancer.start()
            time.sleep(3)
        assert flood.wait() > 0.9 * SYNS
        assert len(holder.good()) == CONNECTIONS
    finally:
        changes.stopped = True
        changes.join()
    assert changes.rounds > 50
    counters = balancer.status()["counters"]
    assert counters["chosen"] > 0.9 * SYNS, "the flood passed the balancer"
    assert counters["table_full"] == 0
