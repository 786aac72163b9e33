# SPDX-License-Identifier: Apache-2.0
"""`ballast lb run` and `lb decap` with no more of root's rights than their units leave them."""

import re
import shutil

import pytest

from control import VIPS, Balancer, add_web, build, vip
from datagrams import Flow, udp_echo
from harness import HarnessError, wait_until
from network import ROOT
from test_lb_udp import udp_vip
from tunnels import Decap, PrivatePins, balancer_words, has_program, take_off

# Numbers of linux/capability.h.
NUMBERS = {"net_admin": 12, "perfmon": 38, "bpf": 39}
REFUSED = r"(?s)status 1 before it was ready.*(Operation not permitted|Permission denied)"


def rights_of(unit):
    """The capabilities that a unit file leaves, as setpriv names them."""
    text = (ROOT / "packaging" / unit).read_text("utf-8")
    bound = re.search(r"^CapabilityBoundingSet=(.*)$", text, re.M)[1].lower().split()
    ambient = re.search(r"^AmbientCapabilities=(.*)$", text, re.M)[1].lower().split()
    assert bound == ambient and "NoNewPrivileges=yes" in text
    return [word.removeprefix("cap_") for word in bound]


def with_rights(rights):
    """What runs a program as root with these capabilities only."""
    if not shutil.which("setpriv"):
        pytest.skip("there is no setpriv")
    only = ",".join(["-all", *(f"+{right}" for right in rights)])
    return ["setpriv", "--no-new-privs", "--inh-caps", only, "--ambient-caps", only,
            "--bounding-set", only]


def held_by(pid):
    """The capabilities in force, as a set of bits."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"^CapEff:\s*(\w+)$", status.read(), re.M)[1], 16)


def bits(rights):
    return sum(1 << NUMBERS[right] for right in rights)


class Limited(Balancer):
    """`lb run` with these capabilities."""

    def __init__(self, net, vips, rights, **settings):
        self.rights = rights
        super().__init__(net, vips, **settings)

    def argv(self):
        words = super().argv()
        return [*words[:2], *with_rights(self.rights), *words[2:]]


def build_with_servers(net, webs=2):
    build(net, webs=0)
    for i in range(webs):
        add_web(net, i)
        udp_echo(net, f"web{i}", VIPS)


def assert_served(net, balancer, names):
    wait_until(lambda: all(each["weight"] for each in balancer.instances().values()), 10, "weights")
    assert {Flow(net, VIPS[0]).ask() for _ in range(16)} == set(names)


def test_the_balancer_needs_no_more_than_its_unit_leaves(net):
    rights = rights_of("ballast-lb.service")
    build_with_servers(net)
    vips = [{**udp_vip(VIPS[0], "l2"), "health": "http", "health_path": "/name",
             "health_port": 80}]
    with Limited(net, vips, rights, keep=True) as balancer:
        assert held_by(balancer.pid) == bits(rights)
        assert balancer.status()["interfaces"][0]["mode"] == "native"
        assert_served(net, balancer, ("web0", "web1"))
        changes = balancer.apply([{**vips[0], "instance": vips[0]["instance"][:1]}])
        assert changes == ["vip dns: - instance web1 (10.0.0.11)"]
        wait_until(lambda: list(balancer.instances()) == ["web0"], 5, "web1 is gone")
        assert_served(net, balancer, ("web0",))
        flow = Flow(net, VIPS[0])
        assert flow.ask() == flow.ask() == "web0"
        balancer.stop()
        assert flow.ask() == "web0", "the packet path goes on"
        balancer.start()
        assert balancer.status()["interfaces"][0]["taken_over"]
        assert_served(net, balancer, ("web0", "web1"))
        assert flow.ask() == "web0"
        assert balancer.status()["control"]["write_errors"] == 0


def test_tunnel_ends_need_no_more_than_their_unit_leaves(net, run):
    rights = rights_of("ballast-lb-decap.service")
    build_with_servers(net)
    pins = PrivatePins(net)
    take_off(net, "web0")
    words = [*balancer_words(), "--keep"]
    balancer = run([udp_vip(VIPS[0], "gue")])
    before = with_rights(rights)
    with Decap(net, "web0", *words, before=before, pins=pins) as end:
        assert held_by(end.pid) == bits(rights)
        assert_served(net, balancer, ("web0", "web1"))
        assert end.counts()["opened"] > 0
        end.stop()
        assert has_program(net, "web0")
    with Decap(net, "web0", *words, before=before, pins=pins) as end:
        assert_served(net, balancer, ("web0", "web1"))
        assert end.counts()["opened"] > 0


@pytest.mark.parametrize("missing", sorted(NUMBERS))
def test_each_of_the_rights_is_needed(net, missing):
    """And what refuses says so, with a status that is not a mistaken configuration's."""
    build(net, webs=1)
    take_off(net, "web0")
    rights = [right for right in NUMBERS if right != missing]
    with pytest.raises(HarnessError, match=REFUSED):
        Decap(net, "web0", *balancer_words(), before=with_rights(rights)).close()
    with pytest.raises(HarnessError, match=REFUSED):
        Limited(net, [vip(names=("web0",))], rights).close()
    assert not has_program(net, "web0") and not has_program(net, "lb")
