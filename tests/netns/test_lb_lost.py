# SPDX-License-Identifier: Apache-2.0
"""One of two balancers is lost: the client's packets take the way by the other one, which knows
none of the open connections. docs/design/lb-lost-balancer.md."""

import signal
import subprocess

import pytest

import holder
from control import VIPS, ballast_binary, build
from harness import wait_until

WEBS = ("web0", "web1", "web2")
BALANCERS = ("10.0.0.2", "10.0.0.4")
# Weight times capacity is an instance's place in the ring, weight its share of new connections.
RING = (4, 2, 1)
COUNT = 700
EQUAL = (1, 1, 1)
RING_ALONE = 1 - (4 / 7 - 1 / 3)  # of the connections that were given out evenly


def echo(weights, forwarding):
    of = holder.echo_vip(names=WEBS, forwarding=forwarding, scheduler="static")
    for instance, weight, place in zip(of["instance"], weights, RING):
        instance.update(weight=weight, capacity=place / weight)
    return of


def open_tunnels(net):
    """`ballast lb decap` on every instance; its process by host."""
    processes = {}
    for host in WEBS:
        net.inside(host, "ip", "link", "set", "dev", "eth0", "xdpdrv", "off")
        net.pass_through("switch", f"p-{host}")
        words = [word for address in BALANCERS for word in ("--balancer", address)]
        processes[host] = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{net.space(host)}", ballast_binary(), "lb", "decap",
             "--interface", "eth0", *words], stdout=subprocess.PIPE, text=True)
        net.processes.append(processes[host])
        wait_until(lambda host=host: "xdp" in net.inside(host, "ip", "link", "show", "eth0").stdout,
                   10, f"decap on {host}")
    return processes


def counted(process):
    """Ends `lb decap`; what it printed."""
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=10)[0]
    assert process.returncode == 0
    return {line.split()[0]: int(line.split()[1]) for line in said.splitlines()}


# The second balancer has its own view of the load: the same as the first's, or another one.
@pytest.mark.parametrize("forwarding, weights, least, most", [
    ("gue", EQUAL, 1, 1),
    ("gue", RING, RING_ALONE + 0.03, 1),
    ("ipip", RING, RING_ALONE - 0.06, RING_ALONE + 0.06),
], ids=["gue", "gue-other-load", "ipip-ring-alone"])
def test_connections_outlive_their_balancer(net, run, forwarding, weights, least, most):
    build(net, webs=3, hosts=("lb", "lb2"))
    decaps = open_tunnels(net)
    holder.echo_servers(net, *WEBS)
    run([echo(EQUAL, forwarding)]).wait_weights("the first's", web0=True, web1=True, web2=True)
    run([echo(weights, forwarding)], host="lb2").wait_weights("the second's", web0=True, web1=True,
                                                              web2=True)
    held = holder.Holder(net, COUNT)
    for host in WEBS:
        assert held.names.count(host) > COUNT / 4, "new connections have the wanted shares"
    assert len(held.good()) == COUNT
    net.inside("client", "ip", "route", "replace", VIPS[0], "via", BALANCERS[1])
    kept = len(held.good()) / COUNT
    counts = {host: counted(process) for host, process in decaps.items()}
    print(f"{forwarding}, weights {weights}: kept {kept:.3f}, the ring alone {RING_ALONE:.3f}")
    assert least <= kept <= most
    handed_on = sum(of["handed_on"] for of in counts.values())
    assert (handed_on > 0) == (forwarding == "gue")
