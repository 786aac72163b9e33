# SPDX-License-Identifier: Apache-2.0
"""`ballast lb decap` as a process: what it prints, how it leaves and is followed, whose tunnels it
opens, and what it refuses."""

import re
import socket
import struct
import subprocess

import pytest

from control import VIPS, add_web, build
from datagrams import PORT, Flow, Stream, inside, udp_echo
from harness import ballast_binary, wait_until
from holder import Holder, echo_servers, echo_vip
from network import ROOT
from test_lb_udp import udp_vip
from tunnels import Decap, PrivatePins, balancer_words, has_program, last_counts, take_off

GUE_PORT = 6080
SOURCE_PORT = 41000
WEBS = {4: "10.0.0.10", 6: "fd00::10"}
CLIENTS = {4: "10.0.0.3", 6: "fd00::3"}


@pytest.fixture(name="decap")
def decap_starter(net):
    """Starts `lb decap`; all have ended before the network does."""
    started = []

    def start(host, *options, **settings):
        started.append(Decap(net, host, *options, **settings))
        return started[-1]

    yield start
    for one in started:
        one.close()


def build_bare(net, webs=1):
    """Instances that open no tunnel yet and answer datagrams to the VIPs."""
    build(net, webs=0)
    for i in range(webs):
        add_web(net, i, serve=False)
        take_off(net, f"web{i}")
        udp_echo(net, f"web{i}", VIPS)


def gue_vips():
    return [udp_vip(VIPS[0], "gue"), echo_vip(forwarding="gue"),
            {**echo_vip(address=VIPS[1], family=6, forwarding="gue"), "name": "echo6"}]


def serve(net, run):
    balancer = run(gue_vips())
    wait_until(lambda: all(each["weight"] for i in range(3)
                           for each in balancer.instances(i).values()), 10, "weights")
    echo_servers(net, "web0", "web1")
    return balancer


def test_sigusr1_and_the_end_print_the_counts(net, run, decap):
    build_bare(net, webs=2)
    both = [decap(host, *balancer_words()) for host in ("web0", "web1")]
    serve(net, run)
    page = (ROOT / "docs/reference/lb-decap.md").read_text("utf-8")
    first = both[0].counts()
    assert sorted(first) == sorted(re.findall(r"^\| `(\w+)` \|", page, re.M))
    assert not any(first.values())
    flows = [Flow(net, VIPS[0]) for _ in range(20)]
    names = [flow.ask() for flow in flows]
    second = [one.counts() for one in both]
    assert [each["opened"] for each in second] == [names.count("web0"), names.count("web1")]
    assert [flow.ask() for flow in flows] == names
    assert both[0].counts() == {**second[0], "opened": 2 * second[0]["opened"]}
    both[0].stop()
    assert last_counts(both[0].output())["opened"] == 2 * second[0]["opened"]
    assert not has_program(net, "web0") and has_program(net, "web1")


def streams_to_both(net, patience_s=5):
    """One stream of datagrams to each instance."""
    found = {}
    for _ in range(100):
        flow = Flow(net, VIPS[0])
        found.setdefault(flow.ask(), flow)
        if set(found) == {"web0", "web1"}:
            return [Stream(flow, patience_s) for flow in found.values()]
    raise AssertionError(f"flows come to {set(found)} only")


def assert_open(holders, streams):
    for stream in streams:
        stream.wait_for(50)
    for one in holders:
        assert sorted(one.good()) == sorted(one.names)


def test_kept_tunnels_outlive_their_process_and_are_taken_over(net, run, decap):
    build_bare(net, webs=2)
    kept = [*balancer_words(), "--keep"]
    # Both interfaces have the same name, and so would their pins.
    pins = {host: PrivatePins(net) for host in ("web0", "web1")}
    ends = {host: decap(host, *kept, pins=own) for host, own in pins.items()}
    serve(net, run)
    holders = [Holder(net, 20), Holder(net, 20, VIPS[1])]
    assert all(set(one.names) == {"web0", "web1"} for one in holders)
    streams = streams_to_both(net)
    try:
        for how in ("stop", "kill", "stop"):
            for host, end in list(ends.items()):
                getattr(end, how)()
                assert has_program(net, host)
            assert_open(holders, streams)
            assert set(Holder(net, 20).names) == {"web0", "web1"}, "and new ones come"
            ends = {host: decap(host, *kept, pins=own) for host, own in pins.items()}
            assert_open(holders, streams)
            assert all(end.counts()["opened"] > 50 for end in ends.values()), "by the new program"
    finally:
        for stream in streams:
            stream.close()
    assert [stream.lost for stream in streams] == [0, 0]


def test_without_keep_the_tunnels_end_with_the_process(net, run, decap):
    build_bare(net, webs=2)
    ends = [decap(host, *balancer_words()) for host in ("web0", "web1")]
    serve(net, run)
    streams = streams_to_both(net, 1)
    try:
        for stream in streams:
            stream.wait_for(20)
        for host, end in zip(("web0", "web1"), ends):
            end.stop()
            assert not has_program(net, host)
        wait_until(lambda: all(stream.lost for stream in streams), 5, "lost datagrams")
    finally:
        for stream in streams:
            stream.close()


def datagram(family, data):
    """IP, UDP and data from the client to the VIP, as inside a tunnel."""
    addresses = [socket.inet_pton(socket.AF_INET if family == 4 else socket.AF_INET6, words)
                 for words in (CLIENTS[family], VIPS[0 if family == 4 else 1])]
    length = 8 + len(data)
    pseudo = b"".join(addresses) + struct.pack(">HH", 17, length)
    udp = struct.pack(">HHH", SOURCE_PORT, PORT, length)
    udp += struct.pack(">H", checksum(pseudo + udp + b"\0\0" + data)) + data
    if family == 6:
        return struct.pack(">IHBB", 6 << 28, length, 17, 64) + b"".join(addresses) + udp
    head = struct.pack(">BBHIBB", 0x45, 0, 20 + length, 0, 64, 17)
    return head + struct.pack(">H", checksum(head + b"".join(addresses))) + b"".join(addresses) + \
        udp


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def send_tunnelled(net, outer, is_gue, packet):
    """From the client, which is no balancer, to web0."""
    family = socket.AF_INET if outer == 4 else socket.AF_INET6
    protocol = socket.IPPROTO_IPIP if packet[0] >> 4 == 4 else socket.IPPROTO_IPV6
    with inside(net, "client"):
        out = (socket.socket(family, socket.SOCK_DGRAM) if is_gue else
               socket.socket(family, socket.SOCK_RAW, protocol))
    with out:
        out.sendto(packet, (WEBS[outer], GUE_PORT if is_gue else 0))


TUNNELS = [(outer, inner, is_gue) for outer in (4, 6) for inner in (4, 6)
           for is_gue in (False, True)]


def test_tunnels_of_strangers_are_not_opened(net, decap):
    """And the same ones are, once the client is named a balancer."""
    build_bare(net)
    flows = {family: Flow(net, vip) for family, vip in zip((4, 6), VIPS)}
    for family, flow in flows.items():
        flow.socket.bind((CLIENTS[family], SOURCE_PORT))
        flow.socket.settimeout(5)
    end = decap("web0", *balancer_words())
    for count, (outer, inner, is_gue) in enumerate(TUNNELS, 1):
        send_tunnelled(net, outer, is_gue, datagram(inner, b"stranger's"))
        wait_until(lambda count=count: end.counts()["stranger"] == count, 5, "a stranger")
    assert end.counts()["opened"] == 0
    end.stop()
    end = decap("web0", *balancer_words(*CLIENTS.values()))
    for outer, inner, is_gue in TUNNELS:
        send_tunnelled(net, outer, is_gue, datagram(inner, b"balancer's"))
        answer, source = flows[inner].socket.recvfrom(100)
        assert (answer, source[:2]) == (b"web0 balancer's", flows[inner].to)
    assert end.counts()["opened"] == len(TUNNELS)
    assert end.counts()["stranger"] == 0


def refused(net, *words):
    """Status and words of a `lb decap` that does not start."""
    done = subprocess.run(["nsenter", f"--net=/run/netns/{net.space('web0')}", ballast_binary(),
                           "lb", "decap", *words], capture_output=True, text=True, timeout=20,
                          check=False)
    return done.returncode, done.stderr


def test_what_is_wrong_is_named(net, decap):
    build_bare(net)
    good = ("--interface", "eth0", "--balancer", "10.0.0.2")
    for words, named in [
            (("--interface", "eth7", *good[2:]), 'there is no interface "eth7"'),
            (good + ("--interface", "eth7"), 'there is no interface "eth7"'),
            (good[:2] + ("--balancer", "10.0.0"), '"10.0.0"'),
            (good[:2] + ("--balancer", "balancer.example"), '"balancer.example"'),
            (good[:2] + ("--balancer", "fd00::g"), '"fd00::g"'),
            (good[:2], "--balancer: at least one"),
            (good[2:], "--interface: at least one"),
            (good + ("--colour",), "--colour")]:
        status, said = refused(net, *words)
        wanted = 1 if "interface \"" in named else 2
        assert status == wanted and named in said, (words, status, said)
        assert not has_program(net, "web0"), f"{words} leave nothing behind"
    end = decap("web0", *good[2:])
    status, said = refused(net, *good)
    assert status == 1 and "eth0: it has another XDP program" in said
    assert end.running() and has_program(net, "web0")
