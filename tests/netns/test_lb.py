# SPDX-License-Identifier: Apache-2.0
"""curl through a VIP to a real nginx: L2, IP in IP and GUE, IPv4 and IPv6, answers going straight
back to the client."""

import shutil
import struct

import pytest

from network import address_bytes, family_of

VIPS = ("192.0.2.1", "2001:db8:1::1")
L2, IPIP, GUE = 0, 1, 2
UP = 1
TCP = 6


def instance(method, tunnel, own, macs, mtu=1500):
    """A struct bl_instance. `macs`: the next hop's, the balancer's."""
    tunnel_bytes = address_bytes(tunnel) + address_bytes(own)
    return tunnel_bytes + struct.pack("=IHBB6s6sB3x", 0, mtu, method, family_of(tunnel), *macs, UP)


def dispatch_table(members):
    """All of one weight: one class."""
    head = struct.pack("=IIIII", len(members), 1, len(members), 0, len(members))
    table = head.ljust(8 + 64 * 12, b"\0")
    return (table + struct.pack(f"={len(members)}I", *members)).ljust(8 + 64 * 12 + 4096, b"\0")


def counters(net, program, table, names):
    values = {}
    for entry, name in zip(net.entries(program, table), names):
        values[name] = sum(int.from_bytes(bytes(int(byte, 16) for byte in cpu["value"]), "little")
                           for cpu in entry["values"])
    return values


def fill_maps(net, balancer_mac, macs, method, family):
    own, tunnel = {4: ("10.0.0.2", "10.0.0.1{}"), 6: ("fd00::2", "fd00::1{}")}[family]
    for i, mac in enumerate(macs):
        net.put("lb", "instances", struct.pack("=I", i),
                instance(method, tunnel.format(i), own, (mac, balancer_mac)))
    net.put("lb", "dispatch_tables", struct.pack("=I", 0), dispatch_table(range(len(macs))))
    for vip in VIPS:
        for port, protocol in ((80, TCP), (0, 0)):
            key = address_bytes(vip) + struct.pack(">HBB", port, protocol, family_of(vip))
            net.put("lb", "vips", key, struct.pack("=II", 0, 0))


def build(net, method, family):
    """A client, a balancer and two instances on one switch."""
    net.host("client", "10.0.0.3/24", "fd00::3/64")
    balancer = net.host("lb", "10.0.0.2/24", "fd00::2/64")
    macs = []
    net.load("lb")
    net.load("decap")
    net.put("decap", "balancers", address_bytes("10.0.0.2") + bytes([4, 0, 0, 0]), b"\1")
    net.put("decap", "balancers", address_bytes("fd00::2") + bytes([6, 0, 0, 0]), b"\1")
    for i in range(2):
        name = f"web{i}"
        macs.append(net.host(name, f"10.0.0.1{i}/24", f"fd00::1{i}/64"))
        for vip in VIPS:
            net.inside(name, "ip", "address", "add", vip, "dev", "lo",
                       *(["nodad"] if ":" in vip else []))
        net.attach(name, "eth0", "decap")
        net.nginx(name, [f"{VIPS[0]}:80", f"[{VIPS[1]}]:80"])
    fill_maps(net, balancer, macs, method, family)
    net.pass_through("switch", "p-lb")
    net.attach("lb", "eth0", "lb")
    for vip, gateway in zip(VIPS, ("10.0.0.2", "fd00::2")):
        net.inside("client", "ip", "route", "add", vip, "via", gateway)


def curl(net, url, *options):
    done = net.inside("client", "curl", "-sS", "--globoff", "--max-time", "10", *options, url,
                      check=False, timeout_s=20)
    assert done.returncode == 0, f"{url}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("method, family", [(L2, 4), (IPIP, 4), (IPIP, 6), (GUE, 4), (GUE, 6)],
                         ids=["l2", "ipip", "ip6ip6", "gue", "gue6"])
def test_curl_through_the_vip(net, method, family):
    build(net, method, family)
    for host in (VIPS[0], f"[{VIPS[1]}]"):
        names = {curl(net, f"http://{host}/name") for _ in range(16)}
        assert names == {"web0", "web1"}, "both instances serve"
        sizes = curl(net, f"http://{host}/large", "-o", "/dev/null", "-w", "%{size_download}")
        assert sizes == str(1 << 20)
    listing = counters(net, "decap", "decap_counters", ["opened", "stranger", "malformed"])
    assert (listing["opened"] > 0) == (method != L2)


def test_an_upload_through_a_tunnel_learns_the_mtu(net):
    """Full segments do not fit once wrapped: the balancer says so, and the upload goes on."""
    build(net, IPIP, 4)
    for host in (VIPS[0], f"[{VIPS[1]}]"):
        upload = net.folder / "upload"
        upload.write_bytes(bytes(2_000_000))
        done = net.inside("client", "curl", "-sS", "--globoff", "--max-time", "20", "-o",
                          "/dev/null", "-H", "Expect:", "-w", "%{size_upload}", "--data-binary",
                          f"@{upload}", f"http://{host}/name", check=False, timeout_s=30)
        assert done.stdout == "2000000", done.stderr
    names = ["malformed", "fragment_unknown", "extension_header", "no_instance", "no_neighbour",
             "too_big", "too_big_answered"]
    seen = counters(net, "lb", "counters", names)
    assert seen["too_big_answered"] > 0 and seen["too_big"] == 0


def test_ping_and_requests_past_the_vip(net):
    build(net, L2, 4)
    if not shutil.which("ping"):
        pytest.skip("there is no ping")
    done = net.inside("client", "ping", "-c", "2", "-W", "2", VIPS[0], check=False)
    assert done.returncode == 0, done.stdout
    own = net.inside("client", "ping", "-c", "1", "-W", "2", "10.0.0.2", check=False)
    assert own.returncode == 0, "what is not for a VIP reaches the balancer's kernel"
