#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of the load balancer's packet path by BPF test-run: nanoseconds a packet, the harness and
the restoring of the packet taken off, beside the bare parse. One instance and VIP, then a thousand
of each; an empty connection table, then one with a million."""

import json
import pathlib
import re
import statistics
import struct
import sys
import tempfile

import common

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/netns"))
from network import Network, Unavailable, address_bytes, bpftool  # noqa: E402
from test_lb import IPIP, L2, TCP, dispatch_table, instance  # noqa: E402

ROUNDS = 7
REPEAT = 1_000_000
CONNECTIONS = 1 << 20  # BL_CONNECTIONS
MACS = (b"\2\0\0\0\1\0", b"\2\0\0\0\0\1")
VIP = "192.0.2.1"
SYN, ACK = 2, 16


def packet(flags):
    """Ethernet, IPv4 and TCP, 64 bytes."""
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 50, 7, 0x4000, 64, 6, 0)
    addresses = address_bytes("198.51.100.7")[:4] + address_bytes(VIP)[:4]
    tcp = struct.pack(">HHIIBBHHH", 40000, 80, 0, 0, 0x50, flags, 1024, 0, 0)
    return b"".join(MACS) + b"\x08\0" + ip + addresses + tcp + bytes(10)


def measure(net, program, flags, repeat=REPEAT):
    """Mean nanoseconds of one run; the program says XDP_TX or something went wrong."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(packet(flags))
        file.flush()
        said = bpftool("prog", "run", "pinned", net.pins / "bench" / program, "data_in", file.name,
                       "repeat", str(repeat))
    action, duration = re.search(r"Return value: (\d+), duration.*: (\d+)ns", said).groups()
    if action != "3":
        raise RuntimeError(f"{program}: action {action}")
    return int(duration)


def set_method(net, method):
    net.put("bench", "instances", struct.pack("=I", 0),
            instance(method, "10.0.0.1", "10.0.0.2", MACS))


def known(net, program, method):
    set_method(net, method)
    measure(net, program, SYN, 1)
    measure(net, program, ACK, 1)
    return measure(net, program, ACK)


def measure_all(net, name=""):
    return {"nothing": measure(net, "nothing", ACK),
            "tap_off": measure(net, "tap_off", ACK),
            "parse": measure(net, "parse", ACK),
            "restore": measure(net, "restore", ACK),
            "restore_ipip": measure(net, "restore_ipip", ACK),
            "known_l2" + name: known(net, "balance", L2),
            "known_ipip" + name: known(net, "balance_ipip", IPIP),
            "new_l2" + name: (set_method(net, L2), measure(net, "balance_new", SYN))[1]}


def fill_small(net):
    net.put("bench", "dispatch_tables", struct.pack("=I", 0), dispatch_table([0]))
    net.put("bench", "vips", address_bytes(VIP) + struct.pack(">HBB", 80, TCP, 4), bytes(8))


def fill_large(net):
    """A thousand VIPs, the first of a thousand instances."""
    made = instance(L2, "10.0.0.1", "10.0.0.2", MACS)
    net.put_many("bench", "instances", [(struct.pack("=I", i), made) for i in range(1000)])
    net.put("bench", "dispatch_tables", struct.pack("=I", 0), dispatch_table(range(1000)))
    net.put_many("bench", "vips", [
        (address_bytes(f"198.18.{i // 250}.{i % 250}") + struct.pack(">HBB", 80, TCP, 4), bytes(8))
        for i in range(999)])


def fill_ring(net, count):
    """The first VIP chooses by a ring of its size; half of the flows are drawn anew. 0: no ring."""
    size = {0: 0, 1: 251, 1000: 65521}[count]
    pages = -(-size // 256)
    net.put_many("bench", "ring_pages", [
        (struct.pack("=I", page), b"".join(struct.pack("=HH", slot * 7919 % count, 0)
                                           for slot in range(page * 256, page * 256 + 256)))
        for page in range(pages)])
    members = b"".join(struct.pack("=IIHH", 1 << 30, 1 << 30, (i + 1) % count, i)
                       for i in range(count))
    coupling = struct.pack("=II256H", size, count, *range(pages), *[0] * (256 - pages))
    net.put("bench", "couplings", struct.pack("=I", 0), (coupling + members).ljust(12808, b"\0"))


def new_by_ring(net, count):
    fill_ring(net, count)
    ns = statistics.median(measure(net, "balance_new", SYN) for _ in range(ROUNDS))
    fill_ring(net, 0)
    return ns


def fill_connections(net):
    """A million connections, all but the few of the rounds before; how many there are."""
    measure(net, "balance_open", ACK, 2 * (CONNECTIONS - 64))
    return CONNECTIONS - 64


def bytes_of_map(net, name):
    return json.loads(bpftool("-j", "map", "show", "pinned",
                              net.pins / "bench" / name))["bytes_memlock"]


def rounds_of(net, name=""):
    rounds = [measure_all(net, name) for _ in range(ROUNDS)]
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def measure_sizes(net):
    """Medians of raw nanoseconds by name."""
    fill_small(net)
    raw = rounds_of(net)
    raw["new_l2_ring"] = new_by_ring(net, 1)
    fill_large(net)
    raw["new_l2_ring_thousand"] = new_by_ring(net, 1000)
    raw |= {key: ns for key, ns in rounds_of(net, "_thousand").items() if key.endswith("thousand")}
    fill_connections(net)
    full = [(measure(net, "balance", ACK), measure(net, "balance_any", ACK),
             measure(net, "balance_new", SYN)) for _ in range(ROUNDS)]
    for name, values in zip(("known_l2_million", "any_l2_million", "new_l2_million"), zip(*full)):
        raw[name] = statistics.median(values)
    return raw


def main():
    options = common.parser(__doc__).parse_args()
    try:
        net = Network()
    except Unavailable as reason:
        print(f"SKIP {reason}", file=sys.stderr)
        return 0
    try:
        net.load("bench")
        raw = measure_sizes(net)
        table = bytes_of_map(net, "connections") / CONNECTIONS
    finally:
        net.close()
    parse = raw["parse"] - raw["nothing"]
    cost = {"parse": parse, "tap_off": raw["tap_off"] - raw["nothing"]}
    for name, ns in raw.items():
        if "_l2" in name or "known_ipip" in name:
            cost[name] = ns - raw["restore_ipip" if "ipip" in name else "restore"]
    text = "\n".join(f"{name:<20} {ns:6.0f} ns   {ns / max(parse, 1):5.1f} x parse"
                     for name, ns in cost.items())
    text += f"\n{table:.0f} bytes a connection in a table of {CONNECTIONS:,}\n"
    text += "median of 7 runs of a million packets, net of " + ", ".join(
        f"{name} {raw[name]:.0f} ns" for name in ("nothing", "restore", "restore_ipip"))
    return common.finish(options, {"net_ns": cost, "raw_ns": raw, "bytes_a_connection": table},
                         text, True)


if __name__ == "__main__":
    sys.exit(main())
