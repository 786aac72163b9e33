# SPDX-License-Identifier: Apache-2.0
"""curl through a VIP to a real nginx that knows nothing of it: NAT, the answers coming back through
the balancer, IPv4 and IPv6."""

import re
import struct

from harness import wait_until
from holder import Holder, echo_servers
from network import ROOT, address_bytes, family_of
from test_lb import TCP, VIPS, counters, curl, dispatch_table, instance

NAT = 3
PORT = 8080
INSTANCES = (("10.0.0.10", "fd00::10"), ("10.0.0.11", "fd00::11"))


def counter_names():
    header = (ROOT / "src/wire/lb.h").read_text("utf-8")
    names = header[header.index("#define BL_DROP_REASONS"):header.index("#define BL_DROP_COUNTER")]
    return re.findall(r"X\((\w+), \"", names)


def put_instance(net, index, address, vip, macs):
    made = instance(NAT, address, "::" if ":" in address else "0.0.0.0", macs, 0)
    net.put("lb", "instances", struct.pack("=I", index), made[:-2] + struct.pack(">H", PORT))
    source = address_bytes(address) + struct.pack(">HBB", PORT, TCP, family_of(address))
    net.put("lb", "nat_sources", source,
            address_bytes(vip) + struct.pack("=I", index) + struct.pack(">HH", 80, 0))


def build_hosts(net):
    """The client and the instances are of different networks, and the balancer is the way; gives
    the balancer's MAC address and those of the instances."""
    net.host("client", "10.1.0.3/24", "fd01::3/64")
    balancer = net.host("lb", "10.0.0.2/24", "10.1.0.2/24", "fd00::2/64", "fd01::2/64")
    net.load("decap")
    macs = []
    for i, addresses in enumerate(INSTANCES):
        name = f"web{i}"
        macs.append(net.host(name, f"{addresses[0]}/24", f"{addresses[1]}/64"))
        for gateway in ("10.0.0.2", "fd00::2"):
            net.inside(name, "ip", "route", "add", "default", "via", gateway)
        net.nginx(name, [f"{addresses[0]}:{PORT}", f"[{addresses[1]}]:{PORT}"])
    for setting in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"):
        net.inside("lb", "sh", "-c", f"echo 1 > /proc/sys/{setting}")
    for vip, gateway in zip(VIPS, ("10.1.0.2", "fd01::2")):
        net.inside("client", "ip", "route", "add", vip, "via", gateway)
    net.attach("switch", "p-lb", "decap")
    return balancer, macs


def build(net):
    """With the packet path's maps written by the test."""
    balancer, macs = build_hosts(net)
    net.load("lb")
    for i, (addresses, mac) in enumerate(zip(INSTANCES, macs)):
        for j, (address, vip) in enumerate(zip(addresses, VIPS)):
            put_instance(net, 2 * j + i, address, vip, (mac, balancer))
    for j, vip in enumerate(VIPS):
        table = dispatch_table([2 * j, 2 * j + 1])
        net.put("lb", "dispatch_tables", struct.pack("=I", 2 * j), table)
        for port, protocol in ((80, TCP), (0, 0)):
            key = address_bytes(vip) + struct.pack(">HBB", port, protocol, family_of(vip))
            net.put("lb", "vips", key, struct.pack("=II", j, 2 * j))
    net.attach("lb", "eth0", "lb")


def nat_vip(family):
    return {"name": f"web{family}", "address": VIPS[0 if family == 4 else 1], "port": 80,
            "forwarding": "nat", "health": "tcp",
            "instance": [{"name": f"web{i}", "address": addresses[0 if family == 4 else 1],
                          "port": PORT} for i, addresses in enumerate(INSTANCES)]}


def test_nat_by_the_balancers_process(net, run):
    """Its own health checks, of the same address and port, are not mistaken for a client's."""
    build_hosts(net)
    balancer = run([nat_vip(4), nat_vip(6)])
    for i in range(2):
        wait_until(lambda i=i: all(each["weight"] for each in balancer.instances(i).values()), 10,
                   "weights")
    for host in (VIPS[0], f"[{VIPS[1]}]"):
        names = {curl(net, f"http://{host}/name") for _ in range(16)}
        assert names == {"web0", "web1"}
        sizes = curl(net, f"http://{host}/large", "-o", "/dev/null", "-w", "%{size_download}")
        assert sizes == str(1 << 20)
    assert balancer.status()["counters"]["answer"] > 200
    assert all(each["up"] for each in balancer.instances(0).values())


def test_open_connections_stay_when_their_vip_moves(net, run):
    """To all ports, to another port, to another address."""
    build_hosts(net)
    echo_servers(net, "web0", "web1")
    net.inside("client", "ip", "route", "add", "192.0.2.99", "via", "10.1.0.2")

    def echo(address, port):
        instances = [{"name": f"web{i}", "address": addresses[0]} | ({"port": 7000} if port else {})
                     for i, addresses in enumerate(INSTANCES)]
        return [{"name": "echo", "address": address, "port": port, "forwarding": "nat",
                 "instance": instances}]

    balancer = run(echo(VIPS[0], 7000))
    balancer.wait_weights("both are up", web0=True, web1=True)
    for address, port in ((VIPS[0], 0), ("192.0.2.99", 0), ("192.0.2.99", 7001)):
        holder = Holder(net, 20, balancer.get("/v1/config")["vip"][0]["address"])
        balancer.apply(echo(address, port))
        balancer.wait_weights("both are up", web0=True, web1=True)
        assert sorted(holder.good()) == sorted(holder.names), (address, port)
        assert set(Holder(net, 20, address, port or 7000).names) == {"web0", "web1"}


def test_curl_through_nat_and_back(net):
    build(net)
    for host in (VIPS[0], f"[{VIPS[1]}]"):
        names = {curl(net, f"http://{host}/name") for _ in range(16)}
        assert names == {"web0", "web1"}, "both instances serve"
        sizes = curl(net, f"http://{host}/large", "-o", "/dev/null", "-w", "%{size_download}")
        assert sizes == str(1 << 20)
        upload = net.folder / "upload"
        upload.write_bytes(bytes(2_000_000))
        sent = curl(net, f"http://{host}/name", "-o", "/dev/null", "-H", "Expect:", "-w",
                    "%{size_upload}", "--data-binary", f"@{upload}")
        assert sent == "2000000"
    seen = counters(net, "lb", "counters", counter_names())
    assert seen["answer"] > 500
    assert seen["answer_by_kernel"] < 20, "the kernel forwards until it knows the client's MAC"
    assert seen["opened"] >= 36


def test_the_instance_itself_is_still_reached(net):
    """As a health check does, from the balancer's own address, past the VIP."""
    build(net)
    for address in INSTANCES[0]:
        host = f"[{address}]" if ":" in address else address
        done = net.inside("lb", "curl", "-sS", "--globoff", "--max-time", "5",
                          f"http://{host}:{PORT}/name")
        assert done.stdout == "web0"


def test_a_segment_that_is_too_long_on_the_way_back_is_answered(net):
    build(net)
    for client in ("10.1.0.3", "fd01::3"):
        net.inside("lb", "ip", "route", "add", client, "dev", "eth0", "mtu", "lock",
                   "1300")
    for host in (VIPS[0], f"[{VIPS[1]}]"):
        sizes = curl(net, f"http://{host}/large", "-o", "/dev/null", "-w", "%{size_download}")
        assert sizes == str(1 << 20)
    seen = counters(net, "lb", "counters", counter_names())
    assert seen["too_big_answered"] >= 2 and seen["too_big"] == 0
