# SPDX-License-Identifier: Apache-2.0
"""`ballast lb run` before real servers: it serves, follows health and neighbours, changes by its
HTTP interface, and comes back after a restart, while open connections stay where they are."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from control import SECRET, VIPS, add_web, build, vip
from control_group import ControlGroup
from harness import ballast_binary, wait_until
from holder import Holder, echo_servers, echo_vip
from network import bpftool

def name_at(net, host=VIPS[0], seconds=3):
    """Which instance answers a request to the VIP; None if none does."""
    done = net.inside("client", "curl", "-s", "--globoff", "--max-time", str(seconds),
                      f"http://{host}/name", check=False, timeout_s=20)
    return done.stdout if done.returncode == 0 else None


def names_at(net, count=24, host=VIPS[0]):
    return [name_at(net, host) for _ in range(count)]


def test_both_families_are_served_and_status_says_so(net, run):
    build(net)
    balancer = run([vip(), vip(VIPS[1], family=6)])
    balancer.wait_weights("weights", web0=True, web1=True)
    assert set(names_at(net)) == {"web0", "web1"}
    assert set(names_at(net, host=f"[{VIPS[1]}]")) == {"web0", "web1"}
    status = balancer.status()
    assert status["interfaces"][0]["mode"] == "native"
    assert [each["name"] for each in status["vips"]] == ["web", "web6"]
    wait_until(lambda: balancer.status()["vips"][0]["flows"] >= 24, 5, "flows are counted")
    assert status["counters"]["no_neighbour"] == 0, "no first packet was lost to a neighbour"


@pytest.mark.parametrize("forwarding", ["ipip", "gue"])
def test_tunnels_reach_their_instances(net, run, forwarding):
    build(net)
    run([vip(forwarding=forwarding), vip(VIPS[1], family=6, forwarding=forwarding)])
    for host in (VIPS[0], f"[{VIPS[1]}]"):
        wait_until(lambda host=host: name_at(net, host, 1), 5, "an answer")
        assert set(names_at(net, host=host)) == {"web0", "web1"}


def test_a_dead_instance_is_left_within_two_seconds(net, run):
    build(net, webs=1)
    add_web(net, 1, serve=False)
    net.nginx("web1", [f"{VIPS[0]}:80", "10.0.0.11:80"])
    web1 = net.processes[-1]
    balancer = run([vip(health="http", health_path="/name")])
    balancer.wait_weights("both are up", web0=True, web1=True)
    web1.send_signal(signal.SIGKILL)
    begun = time.monotonic()
    balancer.wait_weights("web1 is out", web0=True, web1=False)
    assert time.monotonic() - begun < 2.0
    assert set(names_at(net)) == {"web0"}
    assert "refused" in balancer.instances()["web1"]["health"]["cause"]
    shutil.rmtree(net.folder / "web1")
    net.nginx("web1", [f"{VIPS[0]}:80", "10.0.0.11:80"])
    balancer.wait_weights("web1 is back", web0=True, web1=True)
    assert set(names_at(net)) == {"web0", "web1"}


def test_connections_of_a_dead_instance_are_reset(net, run):
    """A host that goes silent: its connections are given to another one, which resets them."""
    build(net)
    echo_servers(net, "web0", "web1")
    balancer = run([echo_vip(health="tcp")])
    balancer.wait_weights("both are up", web0=True, web1=True)
    holder = Holder(net, 20)
    assert set(holder.names) == {"web0", "web1"}
    net.inside("web1", "ip", "link", "set", "eth0", "down")
    balancer.wait_weights("web1 is out", web0=True, web1=False)
    begun = time.monotonic()
    assert sorted(holder.good()) == sorted(name for name in holder.names if name == "web0")
    assert time.monotonic() - begun < 2.0, "they were reset, not waited for"


def test_a_neighbour_is_found_late_and_followed(net, run):
    """An instance that is not there yet, then comes, then gets another network card."""
    build(net, webs=1)
    balancer = run([vip()])
    balancer.wait_weights("web0 is up", web0=True, web1=False)
    assert balancer.instances()["web1"]["reason"] == "no next hop"
    assert set(names_at(net)) == {"web0"}
    add_web(net, 1)
    balancer.wait_weights("web1 is found", 10, web1=True)
    assert set(names_at(net)) == {"web0", "web1"}
    net.inside("web1", "ip", "link", "set", "eth0", "address", "02:00:00:00:77:01")
    net.inside("web1", "ip", "address", "replace", "10.0.0.11/24", "dev", "eth0")
    # Its own question for a neighbour says so.
    net.inside("web1", "ping", "-c", "1", "-W", "1", "10.0.0.2")
    wait_until(lambda: balancer.instances()["web1"]["next_hop"]["mac"] == "02:00:00:00:77:01", 60,
               "the new address")
    assert set(names_at(net)) == {"web0", "web1"}
    assert balancer.status()["counters"]["no_neighbour"] == 0


def test_draining_and_leaving_keep_open_connections(net, run):
    build(net, webs=3)
    echo_servers(net, "web0", "web1", "web2")
    balancer = run([echo_vip(names=("web0", "web1"))])
    balancer.wait_weights("both are up", web0=True, web1=True)
    holder = Holder(net, 40)
    all_names = sorted(holder.names)
    assert set(all_names) == {"web0", "web1"}
    draining = echo_vip(names=("web0", "web1", "web2"))
    draining["instance"][1]["operation"] = "drain"
    changes = balancer.apply([draining])
    assert changes == ["vip echo: instance web1: operation up -> drain",
                       "vip echo: + instance web2 (10.0.0.12)"]
    balancer.wait_weights("web1 drains", web0=True, web1=False, web2=True)
    fresh = Holder(net, 40)
    assert set(fresh.names) == {"web0", "web2"}
    assert sorted(holder.good()) == all_names
    balancer.apply([echo_vip(names=("web2",))])
    assert sorted(holder.good()) == all_names, "they stay although nothing new goes there"
    assert {each["address"] for each in balancer.status()["leaving"]} == {"10.0.0.10", "10.0.0.11"}
    assert set(Holder(net, 10).names) == {"web2"}
    balancer.apply([echo_vip(names=("web0", "web2"))])
    assert sorted(holder.good()) == all_names
    assert set(Holder(net, 40).names) == {"web0", "web2"}, "it came back"


def test_a_restart_breaks_no_connection(net, run):
    build(net)
    echo_servers(net, "web0", "web1")
    balancer = run([echo_vip(health="tcp")], keep=True)
    balancer.wait_weights("both are up", web0=True, web1=True)
    holder = Holder(net, 40)
    for end in (balancer.stop, balancer.kill):
        end()
        assert sorted(holder.good()) == sorted(holder.names), "the packet path goes on alone"
        assert set(Holder(net, 20).names) == {"web0", "web1"}, "and takes new ones"
        balancer.api.unlink(missing_ok=True)
        balancer.start()
        assert balancer.status()["interfaces"][0]["taken_over"]
        assert sorted(holder.good()) == sorted(holder.names)
    balancer.configure([echo_vip(names=("web1", "web0"), health="tcp")])
    balancer.stop()
    balancer.start()
    assert sorted(holder.good()) == sorted(holder.names), "whatever order the file has"
    balancer.configure([echo_vip(names=("web0",), health="tcp")])
    balancer.stop()
    balancer.start()
    assert sorted(holder.good()) == sorted(holder.names), "one left out drains"
    assert set(Holder(net, 10).names) == {"web0"}


def test_without_keep_the_packet_path_ends_with_the_process(net, run):
    build(net)
    balancer = run([vip()])
    balancer.wait_weights("both are up", web0=True, web1=True)
    assert name_at(net)
    balancer.stop()
    assert name_at(net, seconds=1) is None
    balancer.start()
    assert name_at(net)


def test_bad_changes_are_refused_and_nothing_moves(net, run):
    build(net)
    balancer = run([vip()])
    balancer.wait_weights("both are up", web0=True, web1=True)
    before = balancer.get("/v1/config")
    bad = [
        ([vip(), vip()], "vip[1].address"),
        ([vip(names=())], "has no instances"),
        ([vip(names=("web0", "web0"))], "vip[0].instance[1]"),
        ([vip(m=65)], "vip[0].m"),
        ([vip(load="agent-check")], "load_port"),
        ([{**vip(), "address": "web.example"}], "names are not looked up"),
        ([{**vip(), "colour": "red"}], "there is no such key"),
        ([{**vip(), "scheduler": "fair"}], "is none of awfd"),
        ([{**vip(), "port": "80"}], "must be a number"),
    ]
    for vips, words in bad:
        status, said = balancer.call("PUT", "/v1/config", {"vip": vips})
        assert status == 400 and words in said["error"], said
    assert balancer.call("PUT", "/v1/config?generation=99", {"vip": [vip()]})[0] == 409
    assert balancer.apply([vip(names=("web0",))], "?dry_run=1") == [
        "vip web: - instance web1 (10.0.0.11)"]
    assert balancer.get("/v1/config") == before
    balancer.configure([{**vip(), "m": -1}])
    balancer.signal(signal.SIGHUP)
    wait_until(lambda: "the former configuration stays" in balancer.output(), 5, "a refusal")
    assert "lb.toml:" in balancer.output() and "vip[0].m" in balancer.output()
    assert set(names_at(net)) == {"web0", "web1"}


def test_what_was_applied_survives_a_restart_until_the_file_changes(net, run):
    build(net)
    state = net.folder / "state.json"
    balancer = run([vip()], state_file=str(state))
    balancer.apply([vip(names=("web0",))])
    balancer.stop()
    balancer.start()
    assert list(balancer.instances()) == ["web0"]
    balancer.stop()
    balancer.configure([vip(names=("web1",))])
    balancer.start()
    assert list(balancer.instances()) == ["web1"]


def test_trace_says_what_happens(net, run):
    build(net)
    balancer = run([vip(), echo_vip()])
    echo_servers(net, "web0", "web1")
    balancer.wait_weights("both are up", web0=True, web1=True)
    for port in range(40_000, 40_032):
        said = balancer.get(f"/v1/trace?protocol=tcp&source=10.0.0.3:{port}"
                            f"&destination={VIPS[0]}:80")
        assert said["found"] == "choice" and said["vip"] == "web"
        done = net.inside("client", "curl", "-s", "--local-port", str(port),
                          f"http://{VIPS[0]}/name")
        assert done.stdout == said["instance"]
    code = ("import socket, sys, time\n"
            f"s = socket.create_connection(('{VIPS[0]}', 7000), 5, ('10.0.0.3', 41000))\n"
            "print(s.recv(64).decode(), flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        ["nsenter", f"--net=/run/netns/{net.space('client')}", "/usr/bin/python3", "-c", code],
        stdout=subprocess.PIPE, text=True)
    net.processes.append(process)
    name = process.stdout.readline().strip()
    said = balancer.get(f"/v1/trace?protocol=tcp&source=10.0.0.3:41000&destination={VIPS[0]}:7000")
    assert (said["found"], said["state"], said["instance"]) == ("connection", "open", name)
    assert balancer.get("/v1/trace?protocol=udp&source=10.0.0.3:1&destination=10.0.0.9:9")[
        "found"] == "nothing"
    assert balancer.call("GET", "/v1/trace?protocol=tcp&source=x&destination=y")[0] == 400


def test_wrong_interfaces_and_files_are_refused(net, run):
    build(net, webs=1)
    with pytest.raises(Exception, match='there is no interface "eth7"'):
        run([vip()], interfaces=["eth7"])
    with pytest.raises(Exception, match="interfaces: none is given"):
        run([vip()], interfaces=[])
    with pytest.raises(Exception, match="is not on loopback"):
        run([vip()], api="0.0.0.0:80")
    with pytest.raises(Exception, match="has no instances"):
        run([vip(names=())])


@pytest.fixture(name="idle_group")
def fixture_idle_group():
    """A control group without processes, whose load is steady whatever else the machine does."""
    try:
        group = ControlGroup(f"ballast-idle-{os.getpid()}")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    group.limit(0.5)
    yield group
    group.close()


def test_a_steady_load_writes_nothing(net, run, idle_group):
    build(net)
    for host in ("web0", "web1"):
        net.start(host, ballast_binary(), "lb", "agent", "--port", "80", "--cgroup",
                  idle_group.name, env={**os.environ, "BALLAST_LB_SECRET": SECRET})
    balancer = run([vip(load="agent", health="tcp")])
    wait_until(lambda: all(each["load"]["answers"] > 20 for each in balancer.instances().values()),
               10, "answers")
    before = balancer.status()["control"]
    time.sleep(2)
    after = balancer.status()["control"]
    assert after["rounds"] - before["rounds"] >= 15
    assert after["map_writes"] == before["map_writes"]


def test_an_entry_that_is_lost_ends_in_a_reset_from_the_vip(net, run):
    """The packet of a connection that nobody knows any more is answered at once."""
    build(net)
    echo_servers(net, "web0", "web1")
    balancer = run([echo_vip(names=("web0",))])
    balancer.wait_weights("web0 is up", web0=True)
    holder = Holder(net, 5)
    balancer.apply([echo_vip(names=("web1",))])
    balancer.wait_weights("web1 is up", web1=True)
    assert len(holder.good()) == 5
    for entry in json.loads(bpftool("-j", "map", "dump", "pinned", balancer.pins / "connections")):
        bpftool("map", "delete", "pinned", balancer.pins / "connections", "key", "hex",
                *(byte.removeprefix("0x") for byte in entry["key"]))
    begun = time.monotonic()
    assert holder.good() == []
    assert time.monotonic() - begun < 2.0, "reset, not waited for"
