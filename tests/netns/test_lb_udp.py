# SPDX-License-Identifier: Apache-2.0
"""UDP VIPs before real servers: by MAC address, in GUE that `ballast lb decap` opens, and by NAT,
IPv4 and IPv6."""

import os
import socket

import pytest

import test_lb_nat
from control import VIPS, add_web, build
from datagrams import PORT, Flow, inside, udp_echo
from harness import wait_until
from tunnels import Decap, balancer_words, take_off

WEBS = ("web0", "web1")
WAYS = ("l2", "gue", "nat")
FRAGMENTED = 4000  # bytes of a datagram: three packets


def udp_vip(address, forwarding, weights=(1, 1)):
    """Instances' addresses are of the VIP's family."""
    stem = "fd00::1" if ":" in address else "10.0.0.1"
    port = {"port": test_lb_nat.PORT} if forwarding == "nat" else {}
    return {"name": "dns6" if ":" in address else "dns", "address": address, "port": PORT,
            "protocol": "udp", "forwarding": forwarding, "scheduler": "static",
            "instance": [{"name": name, "address": stem + name[3:], "weight": weight, **port}
                         for name, weight in zip(WEBS, weights)]}


def vips(forwarding, weights=(1, 1)):
    return [udp_vip(address, forwarding, weights) for address in VIPS]


@pytest.fixture(name="serve")
def served(net, run):
    """Gives a way a network whose VIPs are served; `lb decap` processes end with the test."""
    decaps = []

    def start(forwarding):
        if forwarding == "nat":
            test_lb_nat.build_hosts(net)
            for name, addresses in zip(WEBS, test_lb_nat.INSTANCES):
                udp_echo(net, name, addresses, test_lb_nat.PORT)
        else:
            build(net, webs=0)
            for i, name in enumerate(WEBS):
                add_web(net, i, serve=False)
                udp_echo(net, name, VIPS)
                if forwarding == "gue":
                    take_off(net, name)
                    decaps.append(Decap(net, name, *balancer_words()))
        balancer = run(vips(forwarding))
        wait_until(lambda: all(each["weight"] for i in range(2)
                               for each in balancer.instances(i).values()), 10, "weights")
        return balancer

    yield start
    for one in decaps:
        one.close()


def wait_for_weights(balancer, *wanted):
    """Until all VIPs have instances with a weight (True) or none."""
    wait_until(lambda: all([each["weight"] > 0 for each in balancer.instances(i).values()] ==
                           list(wanted) for i in range(len(VIPS))), 5, "other weights")


@pytest.mark.parametrize("forwarding", WAYS)
def test_a_flow_stays_whatever_the_weights_become(net, serve, forwarding):
    balancer = serve(forwarding)
    flows = [Flow(net, address) for address in VIPS for _ in range(24)]
    names = [flow.ask() for flow in flows]
    for part in (names[:24], names[24:]):
        assert set(part) == set(WEBS), "both serve, and every datagram was answered"
    # Every second flow is known by more than one datagram before the weights change.
    assert [flow.ask() for flow in flows[::2]] == names[::2]
    for weights in ((1, 0), (0, 1), (1, 9)):
        balancer.apply(vips(forwarding, weights))
        wait_for_weights(balancer, *(weight > 0 for weight in weights))
        assert [flow.ask() for flow in flows] == names
        # They stay open: a port that is used again would be a flow that is known.
        flows += (fresh := [Flow(net, address) for address in VIPS for _ in range(12)])
        names += (chosen := [flow.ask() for flow in fresh])
        if 0 in weights:
            assert set(chosen) == {WEBS[weights.index(1)]}, "what is new follows the weights"
    counters = balancer.status()["counters"]
    assert counters["chosen"] == len(flows) == 48 + 3 * 24
    assert counters["opened"] == len(flows) - 24, "the last were asked once"
    assert counters["no_neighbour"] == 0
    assert (counters["answer"] > 0) == (forwarding == "nat")


@pytest.mark.parametrize("forwarding", ["l2", "nat"])
def test_large_datagrams_pass_in_fragments(net, serve, forwarding):
    balancer = serve(forwarding)
    data = os.urandom(FRAGMENTED)
    for address in VIPS:
        flows = [Flow(net, address) for _ in range(12)]
        names = [flow.ask(data) for flow in flows]
        assert set(names) == set(WEBS)
        assert [flow.ask(b"small") for flow in flows] == names, "by the same way as whole ones"
    counters = balancer.status()["counters"]
    assert counters["fragment"] >= 2 * len(VIPS) * 12
    assert counters["fragment_unknown"] == counters["too_big"] == 0


def test_a_tunnel_takes_fragments_that_fit_and_counts_the_others(net, serve):
    balancer = serve("gue")
    data = os.urandom(FRAGMENTED)
    for address in VIPS:
        before = balancer.status()["counters"]["too_big"]
        assert Flow(net, address, timeout_s=0.2).ask(data) is None
        # The two full ones of three; nobody may be told of a fragment.
        assert balancer.status()["counters"]["too_big"] == before + 2
    for address, gateway in zip(VIPS, ("10.0.0.2", "fd00::2")):
        net.inside("client", "ip", "route", "replace", address, "via", gateway, "mtu", "1400")
        flows = [Flow(net, address) for _ in range(12)]
        names = [flow.ask(data) for flow in flows]
        assert set(names) == set(WEBS)
        assert [flow.ask(b"small") for flow in flows] == names


def test_a_client_learns_what_fits_into_a_tunnel(net, serve):
    """A whole datagram as large as the network takes is answered with the MTU, and the client's
    kernel cuts the next one."""
    balancer = serve("gue")
    for address, headers in zip(VIPS, (28, 48)):
        before = balancer.status()["counters"]["too_big_answered"]
        flow = Flow(net, address, timeout_s=0.2)
        assert flow.ask(bytes(1500 - headers)) is None
        assert balancer.status()["counters"]["too_big_answered"] == before + 1
        flow.socket.settimeout(5)
        name = flow.ask(bytes(1500 - headers))
        assert name in WEBS
        assert flow.ask(bytes(1400)) == name


def test_flows_of_a_dead_instance_are_given_another_one(net, serve):
    balancer = serve("l2")
    checked = []
    for name in WEBS:
        with inside(net, name):
            checked.append(socket.create_server(("", PORT)))
    balancer.apply([{**vip, "health": "tcp"} for vip in vips("l2")[:1]])
    wait_until(lambda: all(each["up"] and each["health"]["checks"]
                           for each in balancer.instances().values()), 5, "both are up")
    flows = [Flow(net, VIPS[0]) for _ in range(24)]
    names = [flow.ask() for flow in flows]
    assert [flow.ask() for flow in flows] == names
    assert set(names) == set(WEBS)
    checked[1].close()
    balancer.wait_weights("web1 is out", web0=True, web1=False)
    assert [flow.ask() for flow in flows] == 24 * ["web0"]
    assert balancer.status()["counters"]["moved_from_down"] == names.count("web1")
    checked[0].close()
