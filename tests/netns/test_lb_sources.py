# SPDX-License-Identifier: Apache-2.0
"""Health checks and load sources before real servers: nginx, HAProxy's exporter, agents, a server
of agent-check's text, and one that takes questions and never answers."""

import json
import os
import socket
import subprocess
import time

import pytest

from control import SECRET, VIPS, add_web, build, vip
from datagrams import inside
from harness import ballast_binary, wait_until
from holder import Holder, echo_servers, echo_vip
from network import NGINX

HAPROXY = "/usr/sbin/haproxy"
EXPORTER, CHECK, AGENT, SICK = 9101, 4790, 4780, 9200
INTERVAL_S = 0.1

# What a file holds, to everyone who connects.
TEXT_SERVER = """
import asyncio, pathlib, sys

async def serve(reader, writer):
    writer.write(pathlib.Path(sys.argv[2]).read_bytes())
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, None, int(sys.argv[1]), backlog=4096)
    await server.serve_forever()

asyncio.run(main())
"""


def put(path, text):
    """At once, for whoever reads meanwhile."""
    part = path.with_suffix(".part")
    part.write_text(text, "utf-8")
    part.replace(path)


def wait_load(balancer, name, what, seconds=5, **figures):
    wait_until(lambda: all(balancer.instances()[name]["load"][key] == value
                           for key, value in figures.items()), seconds, what)


def weights(balancer):
    return [each["weight"] for each in balancer.instances().values()]


def nginx_that_may_be_sick(net, host):
    """It answers 500 as long as the file is there that is given back."""
    folder = net.folder / f"sick-{host}"
    folder.mkdir()
    (folder / "conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;\n"
        f"events {{}}\nhttp {{ access_log off; server {{ listen {SICK}; listen [::]:{SICK};\n"
        f"location = /health {{ if (-f {folder}/sick) {{ return 500; }} return 204; }} }} }}\n",
        "ascii")
    net.start(host, NGINX, "-p", folder, "-c", folder / "conf", "-e", folder / "error")
    wait_until((folder / "pid").exists, 10, f"nginx on {host}")
    return folder / "sick"


def test_an_nginx_that_answers_500_is_out_until_it_does_not(net, run):
    build(net)
    sick = [nginx_that_may_be_sick(net, f"web{i}") for i in range(2)]
    echo_servers(net, "web0", "web1")
    balancer = run([{**echo_vip(health="http", health_path="/health"), "health_port": SICK}])
    balancer.wait_weights("both are up", web0=True, web1=True)
    sick[1].touch()
    balancer.wait_weights("web1 is out", 2, web0=True, web1=False)
    seen = balancer.instances()["web1"]
    assert (seen["up"], seen["reason"]) == (False, "unhealthy")
    assert seen["health"]["cause"] == "answered 500"
    assert set(Holder(net, 20).names) == {"web0"}
    sick[1].unlink()
    balancer.wait_weights("web1 is back", 3, web0=True, web1=True)
    assert set(Holder(net, 20).names) == {"web0", "web1"}
    holder = Holder(net, 20)
    for file in sick:
        file.touch()
    wait_until(lambda: not any(each["up"] for each in balancer.instances().values()), 3, "both out")
    assert sorted(holder.good()) == sorted(holder.names), "with no other one up they stay"
    for file in sick:
        file.unlink()
    balancer.wait_weights("both are back", 3, web0=True, web1=True)
    assert set(Holder(net, 20).names) == {"web0", "web1"}


class Exporter:
    """HAProxy's own, whose server's weight is the load that it tells."""

    def __init__(self, net, host, address):
        self.net, self.host = net, host
        self.folder = net.folder / f"haproxy-{host}"
        self.folder.mkdir()
        (self.folder / "cfg").write_text(
            f"global\n  nbthread 1\n  stats socket {self.folder}/admin level admin\n"
            "defaults\n  mode http\n  timeout connect 1s\n  timeout client 5s\n"
            "  timeout server 5s\n"
            f"frontend metrics\n  bind {address}:{EXPORTER}\n"
            "  http-request use-service prometheus-exporter if { path /metrics }\n"
            "backend pool\n  server one 127.0.0.1:9 weight 64\n", "ascii")
        self.start()

    def start(self):
        self.process = self.net.start(self.host, HAPROXY, "-db", "-f", self.folder / "cfg",
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: f":{EXPORTER} " in self.net.inside(self.host, "ss", "-Htln").stdout, 10,
                   "HAProxy")

    def tell(self, weight):
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.folder / "admin"))
            admin.sendall(f"set weight pool/one {weight}\n".encode())
            assert admin.recv(100).strip() == b""

    def kill(self):
        self.process.kill()
        self.process.wait(10)


def test_the_load_that_an_exporter_tells_is_followed(net, run):
    if not os.access(HAPROXY, os.X_OK):
        pytest.skip("haproxy is not installed")
    build(net)
    exporters = [Exporter(net, f"web{i}", f"10.0.0.1{i}") for i in range(2)]
    balancer = run([vip(load="prometheus", load_port=EXPORTER, load_full=256,
                        load_path="/metrics?scope=server",
                        load_metric='haproxy_server_weight{proxy="pool",server="one"}')])
    wait_load(balancer, "web0", "the first figure", utilisation=0.25)
    for told in ((64, 192), (192, 64), (128, 64)):
        for exporter, weight in zip(exporters, told):
            exporter.tell(weight)
        free = [256 - weight for weight in told]
        wanted = [16 * each // max(free) for each in free]
        wait_until(lambda wanted=wanted: weights(balancer) == wanted, 3, f"{wanted} for {told}")
    exporters[0].kill()
    wait_until(lambda: balancer.instances()["web0"]["load"]["missed"] > 3, 5, "missed polls")
    exporters[1].tell(128)
    wait_load(balancer, "web1", "the other's figure", utilisation=0.5)
    assert balancer.instances()["web0"]["weight"] == wanted[0], "as it was when it was last heard"
    assert "refused" in balancer.instances()["web0"]["load"]["error"]
    exporters[0].start()
    exporters[0].tell(128)
    wait_until(lambda: weights(balancer) == [16, 16], 3, "it is heard again")


@pytest.mark.parametrize("load", ["prometheus", "http-json"])
def test_a_page_that_is_wrong_changes_nothing(net, run, load):
    """nginx with a file that is replaced while it is asked for."""
    build(net)
    good, bad = {
        "prometheus": ("# TYPE busy gauge\nbusy{core=\"0\"} %s\n",
                       ["busy{core=\"0\"} NaN\n", "busy{core=\"0\"} -0.5\n", "idle 0.5\n",
                        "busy{core=\"0\" 0.5\n"]),
        "http-json": ('{"cpu": {"busy": %s}}',
                      ['{"cpu": {"busy": -0.5}}', '{"cpu": {"busy": "0.5"}}', '{"cpu": 0.5}',
                       '{"cpu": {"busy": 0.5}']),
    }[load]
    pages = [net.folder / f"web{i}/load" for i in range(2)]
    for page in pages:
        put(page, good % 0.25)
    metric = {"prometheus": 'busy{core="0"}', "http-json": "cpu.busy"}[load]
    balancer = run([vip(load=load, load_port=80, load_path="/load", load_metric=metric)])
    for name in ("web0", "web1"):
        wait_load(balancer, name, "figures", utilisation=0.25)
    for text in bad:
        put(pages[1], text)
        before = balancer.instances()["web1"]["load"]["refused"]
        wait_until(lambda before=before: balancer.instances()["web1"]["load"]["refused"] >
                   before + 1, 5, f"{text!r} is refused")
        assert balancer.instances()["web1"]["load"]["utilisation"] == 0.25
        assert weights(balancer) == [16, 16]
    pages[1].unlink()
    wait_load(balancer, "web1", "no page", error="answered 404")
    put(pages[1], good % 0.625)
    wait_until(lambda: weights(balancer) == [16, 8], 3, "good again")


def put_and_wait(balancer, file, text):
    """Until a whole poll of web1 has been answered with it, well or badly."""
    def polls():
        load = balancer.instances()["web1"]["load"]
        return load["answers"] + load["refused"]
    put(file, text)
    before = polls()
    wait_until(lambda: polls() >= before + 2, 5, f"answers after {text!r}")


def test_an_agent_checks_words_are_followed(net, run):
    build(net)
    words = [net.folder / f"check{i}" for i in range(2)]
    for i, file in enumerate(words):
        put(file, "up 100%\n")
        net.start(f"web{i}", "/usr/bin/python3", "-c", TEXT_SERVER, CHECK, file)
    balancer = run([vip(load="agent-check", load_port=CHECK, scheduler="static")])
    for i in range(2):
        wait_load(balancer, f"web{i}", "the first line", factor=1.0)
    for text, share, reason in (
            ("75%\n", 3 / 7, None), ("drain\n", 0, "drained by its agent-check"),
            ("50%\n", 0, None), ("ready\n", 1 / 3, None), ("down # no disk\r\n", 0, None),
            ("ready\n", 0, None), ("up, 300%\n", 3 / 4, None), ("0%\n", 0, "weight 0"),
            ("stopped 100%\n", 0, None), ("up\n", 1 / 2, None), ("sideways\n", 1 / 2, None),
            ("25%", 1 / 2, None), (4097 * "x", 1 / 2, None), ("25%\n", 1 / 5, None)):
        put_and_wait(balancer, words[1], text)
        seen = balancer.instances()["web1"]
        assert abs(seen["share"] - share) < 0.02, (text, seen)
        assert seen["up"] and reason in (None, seen["reason"]), (text, seen)
    refused = balancer.instances()["web1"]["load"]["refused"]
    assert refused >= 6, "three texts, each at least twice"
    put(words[1], "")
    wait_until(lambda: balancer.instances()["web1"]["load"]["missed"] > 3, 5, "no answers")
    assert abs(balancer.instances()["web1"]["share"] - 1 / 5) < 0.02


def many(count, port, **more):
    """A VIP over the addresses of web0 and the silent one of web1."""
    return {"name": f"web{port}", "address": VIPS[0], "port": port, **more,
            "instance": [{"name": f"i{i}", "address": f"10.0.0.{100 + i}"}
                         for i in range(count + 1)]}


def loads(balancer):
    """What `lb status --json` says: all instances' load, and how late polls are."""
    done = subprocess.run([ballast_binary(), "lb", "status", "--json"], capture_output=True,
                          text=True, timeout=20, check=True,
                          env={"BALLAST_LB_API": str(balancer.api)})
    said = json.loads(done.stdout)
    return ([{each["name"]: each["load"] for each in one["instances"]} for one in said["vips"]],
            said["control"]["poll_late_p99_ms"])


def start_fifty(net, count):
    """On web0; web1 takes questions of all three kinds and answers none."""
    build(net, webs=0)
    for i in range(2):
        add_web(net, i, serve=False)
    batch = net.folder / "addresses"
    batch.write_text("".join(f"address add 10.0.0.{100 + i}/24 dev eth0\n" for i in range(count)))
    net.inside("web0", "ip", "-batch", batch)
    net.inside("web1", "ip", "address", "add", f"10.0.0.{100 + count}/24", "dev", "eth0")
    net.nginx("web0", [f"{EXPORTER}"])
    put(net.folder / "web0/load", "busy 0.5\n")
    put(net.folder / "check", "50%\n")
    net.start("web0", "/usr/bin/python3", "-c", TEXT_SERVER, CHECK, net.folder / "check")
    net.start("web0", ballast_binary(), "lb", "agent", "--listen", f"0.0.0.0:{AGENT}",
              env={**os.environ, "BALLAST_LB_SECRET": SECRET})
    with inside(net, "web1"):
        silent = [socket.create_server(("", port), backlog=4096) for port in (EXPORTER, CHECK)]
        silent.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    silent[-1].bind(("", AGENT))
    return silent


def unevenness(balancer, mute):
    """What was not as it should be in twenty intervals; empty if nothing."""
    before, _ = loads(balancer)
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() - begun > 20 * INTERVAL_S, 10, "twenty intervals", 0.1)
    after, _ = loads(balancer)
    intervals = (time.monotonic() - begun) / INTERVAL_S
    said = []
    for was, now in zip(before, after):
        for name in was:
            polls = now[name]["polls"] - was[name]["polls"]
            answers = now[name]["answers"] - was[name]["answers"]
            is_good = answers == 0 if name == mute else answers >= polls - 2
            if abs(polls - intervals) > 3 or not is_good:
                said.append(f"{name}: {polls} polls, {answers} answers in {intervals:.1f}")
    return said


def test_one_that_never_answers_delays_nobody(net, run):
    count = 50
    silent = start_fifty(net, count)
    balancer = run([many(count, 80, load="prometheus", load_port=EXPORTER, load_path="/load",
                         load_metric="busy"),
                    many(count, 81, load="agent-check", load_port=CHECK),
                    many(count, 82, load="agent", load_port=AGENT)])
    mute = f"i{count}"
    wait_until(lambda: all(load["answers"] for one in loads(balancer)[0]
                           for name, load in one.items() if name != mute), 10, "first answers")
    # The machine may be busy with something else for a while.
    wait_until(lambda: not unevenness(balancer, mute), 20, "twenty even intervals")
    seen, late_ms = loads(balancer)
    for one in seen:
        assert one[mute]["answers"] == 0 and one[mute]["missed"] >= 20
        assert "no answer within" in one[mute]["error"]
    print(f"polls are late by {late_ms:.2f} ms (p99)")
    assert late_ms < 1000 * INTERVAL_S, "none waits for another's answer"
    assert all(each.fileno() >= 0 for each in silent)
