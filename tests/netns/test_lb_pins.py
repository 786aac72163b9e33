# SPDX-License-Identifier: Apache-2.0
"""What is pinned for an interface is taken over for that interface only, and by a start that
succeeds."""

import pytest

from control import Balancer, build, vip
from harness import HarnessError
from tunnels import Decap, PrivatePins, has_program, take_off

KEPT = ("--balancer", "10.0.0.2", "--keep")


@pytest.fixture(name="pins")
def private_pins(net):
    return PrivatePins(net)


def start_or_refuse(net, host, pins, *options):
    """A `lb decap` that ends at once, or None; what it said if it refused with status 1 or 2."""
    try:
        with Decap(net, host, *options, pins=pins) as end:
            assert has_program(net, host), "it says that tunnels are opened"
            end.stop()
    except HarnessError as refusal:
        assert "\nballast lb decap: " in str(refusal), refusal
        return str(refusal)
    return None


def program_on(net, host):
    """The identity of the XDP program on eth0."""
    words = net.inside(host, "ip", "-d", "link", "show", "eth0").stdout.split()
    return words[words.index("prog/xdp") + 2]


def test_a_start_that_fails_leaves_nothing(net, pins):
    net.host("web0", "10.0.0.10/24")
    assert start_or_refuse(net, "web0", pins, *KEPT, "--interface", "eth7")
    assert not has_program(net, "web0")


def test_a_start_that_fails_changes_nothing(net, pins):
    net.host("web0", "10.0.0.10/24")
    assert start_or_refuse(net, "web0", pins, *KEPT) is None
    before = program_on(net, "web0")
    assert start_or_refuse(net, "web0", pins, "--balancer", "10.0.0.9", "--keep", "--interface",
                           "eth7")
    assert program_on(net, "web0") == before


def test_an_interface_of_the_same_name_elsewhere_is_another_one(net, pins):
    """Containers share the machine's BPF file system, and each has its eth0."""
    for i in range(2):
        net.host(f"web{i}", f"10.0.0.1{i}/24")
    assert start_or_refuse(net, "web0", pins, *KEPT) is None
    before = program_on(net, "web0")
    start_or_refuse(net, "web1", pins, *KEPT)
    assert program_on(net, "web0") == before


def test_an_interface_that_was_renamed_is_another_one(net, pins):
    net.host("web0", "10.0.0.10/24")
    assert start_or_refuse(net, "web0", pins, *KEPT) is None
    for words in (("set", "eth0", "down"), ("set", "eth0", "name", "old0"),
                  ("add", "eth0", "type", "veth", "peer", "name", "eth9")):
        net.inside("web0", "ip", "link", *words)
    start_or_refuse(net, "web0", pins, *KEPT)


def test_tunnels_that_were_kept_can_be_closed(net, pins):
    """By a start without --keep, as the balancer's, or as the refusal says."""
    net.host("web0", "10.0.0.10/24")
    assert start_or_refuse(net, "web0", pins, *KEPT) is None
    refusal = start_or_refuse(net, "web0", pins, *KEPT[:2])
    if refusal and "ip link set eth0 xdp off" in refusal:
        take_off(net, "web0")
    assert not has_program(net, "web0")


def test_the_balancer_takes_over_its_own_interface_only(net):
    build(net, webs=1, hosts=("lb", "lb2"))
    settings = {"keep": True, "pins": str(net.pins / "shared")}
    with Balancer(net, [vip(names=("web0",))], **settings):
        before = program_on(net, "lb")
        try:
            with Balancer(net, [vip(names=("web0",))], host="lb2", **settings):
                assert has_program(net, "lb2")
        except HarnessError as refusal:
            assert "status 1 " in str(refusal), refusal
        assert program_on(net, "lb") == before


def test_the_mode_is_that_of_the_interface(net):
    """Not the one that would be tried first."""
    net.host("lb", "10.0.0.2/24")
    with Balancer(net, [vip(names=("web0",))], attach="generic", keep=True) as balancer:
        assert balancer.status()["interfaces"][0]["mode"] == "generic"
        balancer.stop()
        balancer.settings["attach"] = "auto"
        balancer.configure([vip(names=("web0",))])
        balancer.api.unlink(missing_ok=True)
        balancer.start()
        is_generic = "xdpgeneric" in net.inside("lb", "ip", "link", "show", "eth0").stdout
        assert balancer.status()["interfaces"][0]["mode"] == ("generic" if is_generic else "native")
