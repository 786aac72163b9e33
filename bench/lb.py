#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of the load balancer's packet path by BPF test-run: nanoseconds a packet, the harness and
the restoring of the packet taken off, beside the bare parse."""

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


def measure_all(net):
    return {"nothing": measure(net, "nothing", ACK),
            "parse": measure(net, "parse", ACK),
            "restore": measure(net, "restore", ACK),
            "restore_ipip": measure(net, "restore_ipip", ACK),
            "known_l2": known(net, "balance", L2),
            "known_ipip": known(net, "balance_ipip", IPIP),
            "new_l2": (set_method(net, L2), measure(net, "balance_new", SYN))[1]}


def main():
    options = common.parser(__doc__).parse_args()
    try:
        net = Network()
    except Unavailable as reason:
        print(f"SKIP {reason}", file=sys.stderr)
        return 0
    try:
        net.load("bench")
        net.put("bench", "dispatch_tables", struct.pack("=I", 0), dispatch_table([0]))
        net.put("bench", "vips", address_bytes(VIP) + struct.pack(">HBB", 80, TCP, 4), bytes(8))
        rounds = [measure_all(net) for _ in range(ROUNDS)]
    finally:
        net.close()
    raw = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    parse = raw["parse"] - raw["nothing"]
    cost = {"parse": parse, "known_l2": raw["known_l2"] - raw["restore"],
            "known_ipip": raw["known_ipip"] - raw["restore_ipip"],
            "new_l2": raw["new_l2"] - raw["restore"]}
    text = "\n".join(f"{name:<12} {ns:6.0f} ns   {ns / max(parse, 1):5.1f} x parse"
                     for name, ns in cost.items())
    text += "\nmedian of 7 runs of a million packets, net of " + ", ".join(
        f"{name} {raw[name]:.0f} ns" for name in ("nothing", "restore", "restore_ipip"))
    return common.finish(options, {"net_ns": cost, "raw_ns": raw}, text, True)


if __name__ == "__main__":
    sys.exit(main())
