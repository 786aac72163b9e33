# SPDX-License-Identifier: Apache-2.0
"""Changes, second starts and broken neighbours while connections are open: nothing of what is
refused is done, and nothing that is done breaks what is open."""

import contextlib
import signal
import socket
import subprocess
import time

import pytest

from control import VIPS, Balancer, build, vip
from harness import HarnessError, wait_until
from holder import Holder, echo_servers, echo_vip
from test_lb_run import name_at, names_at


def test_a_second_start_is_refused_and_changes_nothing(net, run):
    build(net)
    first = run([vip()], keep=True)
    first.wait_weights("both are up", web0=True, web1=True)
    for settings in ({}, {"keep": True, "connections": 4096}, {"interfaces": ["eth7"]}):
        with pytest.raises(HarnessError, match="another ballast lb run uses"):
            Balancer(net, [vip(names=("web9",))], **settings).close()
    assert set(names_at(net)) == {"web0", "web1"}
    first.stop()
    with pytest.raises(HarnessError, match="there is no interface"):
        Balancer(net, [vip()], keep=True, interfaces=["eth7"]).close()
    assert set(names_at(net)) == {"web0", "web1"}, "what was kept still serves"


# Connects again and again, until a line comes; prints how often, and how often not at once.
CONNECT = """
import select, socket, struct, sys, time
count = slow = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        one.settimeout(5)
        begun = time.monotonic()
        one.connect((sys.argv[1], 80))
        slow += time.monotonic() - begun > 0.5
    count += 1
print(count, slow)
"""


def test_a_restart_loses_no_new_connection(net, run):
    build(net)
    balancer = run([vip(health="tcp")], keep=True)
    balancer.wait_weights("both are up", web0=True, web1=True)
    with subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{net.space('client')}", "/usr/bin/python3", "-c",
             CONNECT, VIPS[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        for _ in range(4):
            time.sleep(0.3)
            balancer.stop()
            balancer.api.unlink(missing_ok=True)
            balancer.start()
        time.sleep(0.3)
        count, slow = map(int, client.communicate("end\n", timeout=20)[0].split())
    assert count > 1000 and slow == 0
    assert balancer.status()["counters"]["no_instance"] == 0


def test_next_hops_follow_rules_and_wait_for_an_answer(net, run):
    """A policy rule alone moves a route; a next hop that does not answer takes nobody's place."""
    build(net)
    balancer = run([vip()])
    balancer.wait_weights("both are up", web0=True, web1=True)

    def hop():
        return balancer.instances()["web0"]["next_hop"]
    net.inside("lb", "ip", "link", "add", "silent", "type", "veth", "peer", "name", "nobody")
    for link in ("silent", "nobody"):
        net.inside("lb", "ip", "link", "set", link, "up")
    net.inside("lb", "ip", "route", "add", "10.0.0.10/32", "dev", "silent", "table", "100")
    time.sleep(0.5)
    assert hop()["interface"] == "eth0"
    net.inside("lb", "ip", "rule", "add", "to", "10.0.0.10", "lookup", "100")
    wait_until(lambda: hop()["interface"] == "silent", 5, "the rule to be followed")
    assert set(names_at(net)) == {"web0", "web1"}
    net.inside("lb", "ip", "rule", "del", "to", "10.0.0.10", "lookup", "100")
    wait_until(lambda: hop()["interface"] == "eth0", 5, "the rule to be gone")
    assert set(names_at(net)) == {"web0", "web1"}


def test_an_interface_that_comes_back_is_served_again(net, run):
    build(net)
    balancer = run([vip()])
    balancer.wait_weights("both are up", web0=True, web1=True)
    net.inside("lb", "ip", "link", "del", "eth0")
    wait_until(lambda: balancer.status()["interfaces"][0]["mode"] == "gone", 10, "it is noticed")
    switch = net.space("switch")
    for words in (("link", "add", "p-lb", "netns", switch, "type", "veth", "peer", "name", "eth0"),
                  ("link", "set", "eth0", "up"), ("address", "add", "10.0.0.2/24", "dev", "eth0")):
        net.inside("lb", "ip", *words)
    net.inside("switch", "ip", "link", "set", "p-lb", "master", "br0", "up")
    net.pass_through("switch", "p-lb")
    wait_until(lambda: balancer.status()["interfaces"][0]["mode"] != "gone", 10, "it is back")
    net.inside("client", "ip", "neigh", "flush", "all")
    wait_until(lambda: name_at(net) in ("web0", "web1"), 20, "it serves")


def test_all_of_many_vips_may_change_at_once(net, run):
    build(net)
    balancer = run([vip()])

    def many(network):
        return [vip(address=f"{network}.{i // 250}.{i % 250 + 1}") | {"name": f"vip{i}"}
                for i in range(1000)]
    for network in ("198.18", "198.19", "198.18"):
        balancer.apply(many(network))
    balancer.apply([vip()])
    balancer.wait_weights("both are up", web0=True, web1=True)
    assert set(names_at(net)) == {"web0", "web1"}
    assert balancer.status()["control"]["write_errors"] == 0


def test_a_change_that_is_refused_is_not_half_done(net, run):
    build(net)
    balancer = run([vip(health="http", health_path="/name")])
    balancer.wait_weights("both are up", web0=True, web1=True)
    wrong = vip(health="http", health_path="/a\tb")
    wrong["instance"][0] |= {"name": "NEW", "weight": 7}
    status, said = balancer.call("PUT", "/v1/config", {"vip": [wrong]})
    assert status == 400 and "health_path" in said["error"]
    for body in ({}, {"lb": {}}):
        status, said = balancer.call("PUT", "/v1/config", body)
        assert status == 400 and "vip = []" in said["error"]
    assert set(balancer.instances()) == {"web0", "web1"}
    assert all(each["health"]["checks"] for each in balancer.instances().values())
    assert set(names_at(net)) == {"web0", "web1"}


HEALTH_SERVER = """
import http.server, sys, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(sys.argv[1]))
        self.send_response(200)
        self.end_headers()
http.server.ThreadingHTTPServer(("", 9001), Answer).serve_forever()
"""


def test_health_checks_that_are_added_reset_nothing(net, run):
    """While one instance's first check is over and the other's is not."""
    build(net)
    for host, seconds in (("web0", 0), ("web1", 0.4)):
        net.start(host, "/usr/bin/python3", "-c", HEALTH_SERVER, seconds)
        wait_until(lambda host=host: ":9001" in net.inside(host, "ss", "-tln").stdout, 10,
                   "the server that tells its health")
    echo_servers(net, "web0", "web1")
    balancer = run([echo_vip()])
    balancer.wait_weights("both are up", web0=True, web1=True)
    holder = Holder(net, 20)
    slow = {"health": "http", "health_port": 9001, "health_path": "/"}
    for vips in ([echo_vip(**slow)], [echo_vip(names=("web0",), health="tcp")],
                 [echo_vip(**slow, health_interval="600ms")]):
        balancer.apply(vips)
        for _ in range(5):
            assert sorted(holder.good()) == sorted(holder.names)
            time.sleep(0.1)
    assert balancer.status()["counters"]["moved_from_down"] == 0


def test_one_that_left_is_still_looked_after(net, run):
    """Its network card changes, then it dies."""
    build(net)
    echo_servers(net, "web0", "web1")
    balancer = run([echo_vip(health="tcp")])
    balancer.wait_weights("both are up", web0=True, web1=True)
    holder = Holder(net, 20)
    balancer.apply([echo_vip(names=("web0",), health="tcp")])
    net.inside("web1", "ip", "link", "set", "eth0", "address", "02:00:00:00:77:01")
    net.inside("web1", "ping", "-c", "1", "-W", "1", "10.0.0.2")
    net.inside("web1", "ping", "-c", "1", "-W", "1", "10.0.0.3")
    time.sleep(0.5)
    assert sorted(holder.good()) == sorted(holder.names)
    net.inside("web1", "ip", "link", "set", "eth0", "down")
    time.sleep(2)
    begun = time.monotonic()
    assert set(holder.good()) == {"web0"}
    assert time.monotonic() - begun < 2, "reset, not waited for"


def test_bytes_that_are_no_text_end_nothing(net, run):
    """An agent-check that answers rubbish; trace asked for rubbish."""
    build(net)
    text_server = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{net.space('web0')}", "/usr/bin/python3", "-c",
         "import socket\ns = socket.create_server(('', 9000))\n"
         "while True: c = s.accept()[0]; c.sendall(b'\\xff\\xfe\\xc0bad\\n'); c.close()"])
    net.processes.append(text_server)
    balancer = run([vip(load="agent-check", load_port=9000)])
    wait_until(lambda: balancer.instances()["web0"]["load"]["refused"] > 3, 10, "refusals")
    status, said = balancer.call("GET", "/v1/trace?protocol=%FF&source=1&destination=2")
    assert status == 400 and said["error"]
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as deep:
        deep.connect(str(balancer.api))
        body = b"a." * 200_000 + b"b = 1\n"
        deep.sendall(b"PUT /v1/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                     str(len(body)).encode() + b"\r\n\r\n" + body)
        assert b"too many parts" in deep.recv(4096)
    balancer.signal(signal.SIGHUP)
    assert set(names_at(net)) == {"web0", "web1"}
