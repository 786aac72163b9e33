# SPDX-License-Identifier: Apache-2.0
"""The commands of a running balancer before real servers: status, trace, ipvsadm, drain, capture,
and /metrics as promtool reads it."""

import contextlib
import http.client
import json
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from control import VIPS, build, vip
from harness import ROOT, ballast_binary, wait_until
from network import bpftool

sys.path.insert(0, str(ROOT / "tests/faults"))
from test_metrics import promtool  # noqa: E402


@pytest.fixture(name="balancer")
def running_balancer(net, run):
    build(net)
    balancer = run([vip(scheduler="static", health="http", health_path="/name")],
                   admin="127.0.0.1:9480")
    balancer.wait_weights("both are up", web0=True, web1=True)
    yield balancer
    if balancer.process.running():
        balancer.stop()


def ask(balancer, *words, status=0, stdin=None):
    done = subprocess.run([ballast_binary(), "lb", *words], input=stdin, capture_output=True,
                          text=True, timeout=30, check=False,
                          env={"BALLAST_LB_API": str(balancer.api)})
    assert done.returncode == status, done.stderr
    return done.stdout


def fetch(balancer, times, local_port=None):
    """Names of the instances that answered."""
    names = []
    for i in range(times):
        port = ["--local-port", str(local_port + i)] if local_port else []
        names.append(balancer.net.inside("client", "curl", "-s", "-m", "5", *port,
                                         f"http://{VIPS[0]}/name").stdout)
    return names


def test_trace_tells_where_a_flow_goes_before_it_goes(balancer):
    said = []
    for port in range(41000, 41012):
        told = json.loads(ask(balancer, "trace", "--json", "tcp", f"10.0.0.3:{port}",
                              f"{VIPS[0]}:80"))
        said.append(told["instance"])
    assert set(said) == {"web0", "web1"}
    assert fetch(balancer, 12, 41000) == said
    assert "no instance" in ask(balancer, "trace", "tcp", "10.0.0.3:1", "192.0.2.9:80", status=1)


HOLD = """
import socket, sys, time
held = socket.create_connection((sys.argv[1], 80), source_address=("", 43000))
time.sleep(60)
"""


def test_connections_are_listed(balancer):
    def listed(*words):
        return json.loads(ask(balancer, "connections", "--json", *words))

    names = fetch(balancer, 6, 42000)
    balancer.net.start("client", sys.executable, "-c", HOLD, VIPS[0])
    wait_until(lambda: len(listed()["connections"]) == 7, what="all are in the table")
    found = {each["source"]: each for each in listed()["connections"]}
    for i, name in enumerate(names):
        each = found[f"10.0.0.3:{42000 + i}"]
        assert (each["vip"], each["instance"], each["state"]) == ("web", name, "closing"), each
        assert each["destination"] == f"{VIPS[0]}:80" and each["protocol"] == "tcp"
        assert each["address"] == ("10.0.0.10:80" if name == "web0" else "10.0.0.11:80")
    held = found["10.0.0.3:43000"]
    assert held["state"] == "open" and abs(held["expires_s"] + held["idle_s"] - 8100) < 1
    assert len(listed("--instance", "web0")["connections"]) == \
        [each["instance"] for each in found.values()].count("web0")
    assert listed("--source", "10.0.0.4") == {"connections": [], "more": False}
    few = listed("--vip", "web", "--source", "10.0.0.3", "--limit", "2")
    assert len(few["connections"]) == 2 and few["more"]
    assert "and more than these 2" in ask(balancer, "connections", "--limit", "2")
    for words in (["--vip", "none"], ["--instance", "none"], ["--source", "x"], ["--limit", "0"]):
        ask(balancer, "connections", *words, status=2)
    assert "10.0.0.10:80" in ask(balancer, "ipvsadm", "-Ln", "-t", f"{VIPS[0]}:80")
    ask(balancer, "ipvsadm", "-Ln", "-t", "192.0.2.9:80", status=1)
    lines = ask(balancer, "ipvsadm", "-Lnc").splitlines()
    assert lines[0] == "IPVS connection entries" and len(lines) == 9
    assert any(line.startswith("TCP 13") and "ESTABLISHED 10.0.0.3:43000 " in line
               for line in lines), lines


def test_drain_and_ipvsadm_move_new_flows(balancer):
    assert "web0" in ask(balancer, "drain", "web", "web0")
    balancer.wait_weights("drained", web0=False, web1=True)
    assert set(fetch(balancer, 8)) == {"web1"}
    ask(balancer, "undrain", "web", "web0")
    balancer.wait_weights("back", web0=True, web1=True)
    saved = ask(balancer, "ipvsadm", "-S", "-n")
    assert f"-a -t {VIPS[0]}:80 -r 10.0.0.10:80 -g -w 1" in saved.splitlines()
    ask(balancer, "ipvsadm", "-e", "-t", f"{VIPS[0]}:80", "-r", "10.0.0.11", "-w", "0")
    balancer.wait_weights("weight 0 drains", web0=True, web1=False)
    assert set(fetch(balancer, 8)) == {"web0"}
    ask(balancer, "ipvsadm", "-A", "-t", "192.0.2.7:80", "-s", "rr")
    ask(balancer, "ipvsadm", "-D", "-t", f"{VIPS[0]}:80")
    assert ask(balancer, "ipvsadm", "-S") == "-A -t 192.0.2.7:80 -s rr\n"
    ask(balancer, "ipvsadm", "-C")
    ask(balancer, "ipvsadm", "-R", stdin=saved)
    assert ask(balancer, "ipvsadm", "-S") == saved
    listed = ask(balancer, "ipvsadm", "-Ln")
    assert f"TCP  {VIPS[0]}:80" in listed and "10.0.0.10:80" in listed
    status = ask(balancer, "status")
    assert "web0" in status or "10.0.0.10" in status


def test_apply_shows_first_and_refuses_whole_files(balancer, tmp_path):
    file = tmp_path / "vips.json"
    wanted = vip(scheduler="ecmp", names=("web0",))
    file.write_text(json.dumps({"vip": [wanted]}), "utf-8")
    before = balancer.get("/v1/config")
    shown = ask(balancer, "apply", "-f", str(file), "--dry-run")
    assert "- instance web1" in shown and "scheduler static -> ecmp" in shown
    assert balancer.get("/v1/config") == before
    assert ask(balancer, "apply", "-f", "-", stdin=file.read_text("utf-8")) == shown
    after = balancer.get("/v1/config")
    assert after["generation"] == before["generation"] + 1
    ask(balancer, "apply", "-f", "-", stdin=json.dumps({"vip": [{**wanted, "instance": []}]}),
        status=2)
    assert balancer.get("/v1/config") == after


def test_a_capture_holds_packets_with_their_verdicts(balancer, tmp_path):
    file = tmp_path / "out.pcapng"
    words = ["nsenter", f"--net=/run/netns/{balancer.net.space('lb')}", ballast_binary(), "lb",
             "capture", "-w", file, "--one-in", "1", "--vip", "web", "--pins", balancer.pins]
    with subprocess.Popen(words, env={"BALLAST_LB_API": str(balancer.api)},
                          stderr=subprocess.PIPE, text=True) as capture:
        def has_packets():
            fetch(balancer, 1)
            return file.exists() and file.stat().st_size > 10_000
        try:
            wait_until(has_packets, what="packets in the file")
            had = file.stat().st_size
            second = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False,
                                    env={"BALLAST_LB_API": str(balancer.api)})
            assert second.returncode == 1 and "another capture runs" in second.stderr
            assert file.stat().st_size >= had
        finally:
            capture.send_signal(signal.SIGINT)
            said = capture.communicate(timeout=20)[1]
        assert capture.returncode == 0, said
    data = file.read_bytes()
    assert b"vip web, instance web" in data and b"eth0" in data
    if shutil.which("tcpdump"):
        shown = subprocess.run(["tcpdump", "-nr", file], capture_output=True, text=True,
                               timeout=30, check=False)
        assert shown.returncode == 0, shown.stderr
        assert f"> {VIPS[0]}.80: Flags [S]" in shown.stdout


def test_a_capture_follows_names_and_ends_when_the_tables_are_others(balancer, tmp_path):
    file = tmp_path / "out.pcapng"
    words = ["nsenter", f"--net=/run/netns/{balancer.net.space('lb')}", ballast_binary(), "lb",
             "capture", "-w", file, "--one-in", "1", "--pins", balancer.pins, "--vip"]
    env = {"BALLAST_LB_API": str(balancer.api)}
    wrong = subprocess.run([*words, "none"], capture_output=True, text=True, timeout=30, env=env,
                           check=False)
    assert wrong.returncode == 2 and "no VIP" in wrong.stderr and not file.exists()
    with subprocess.Popen([*words, "web"], env=env, stderr=subprocess.PIPE, text=True) as capture:
        wait_until(file.exists, what="the capture")
        balancer.apply([vip(scheduler="static", names=("web1",))])
        balancer.apply([{**vip(scheduler="static", names=("web1",)),
                         "instance": [{"name": "renamed", "address": "10.0.0.11"}]}])

        def has_name():
            fetch(balancer, 1)
            return b"instance renamed" in file.read_bytes()
        wait_until(has_name, 10, "the new name in the file")
        balancer.stop()
        balancer.settings["connections"] = 4096
        balancer.configure([vip(scheduler="static")])
        balancer.begin()
        said = capture.communicate(timeout=20)[1]
        assert capture.returncode == 1 and "began anew" in said, said


def test_ending_does_not_wait_for_who_asks(balancer):
    def ask_on(is_over):
        while not is_over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                balancer.call("GET", "/v1/connections")
    is_over = threading.Event()
    askers = [threading.Thread(target=ask_on, args=[is_over]) for _ in range(24)]
    for asker in askers:
        asker.start()
    time.sleep(0.5)
    begun = time.monotonic()
    balancer.stop()
    took = time.monotonic() - begun
    is_over.set()
    for asker in askers:
        asker.join()
    assert took < 3, took


def test_only_root_reaches_the_tables(balancer):
    for folder in (balancer.pins, balancer.pins / "lock"):
        assert folder.stat().st_mode & 0o077 == 0, folder


def test_a_capture_that_is_killed_leaves_no_tap_on(balancer, tmp_path):
    words = ["nsenter", f"--net=/run/netns/{balancer.net.space('lb')}", ballast_binary(), "lb",
             "capture", "-w", tmp_path / "x", "--one-in", "1", "--pins", balancer.pins]

    def one_in():
        told = json.loads(bpftool("-j", "map", "dump", "pinned", balancer.pins / "settings"))
        return told[0]["formatted"]["value"]["capture_one_in"]

    with subprocess.Popen(words, env={"BALLAST_LB_API": str(balancer.api)},
                          stderr=subprocess.PIPE) as capture:
        wait_until(lambda: one_in() == 1, what="the tap to be on")
        time.sleep(2.2)
        assert one_in() == 1  # while it lives
        capture.kill()
        capture.communicate(timeout=20)
    wait_until(lambda: one_in() == 0, 5, "the tap to be off")


def test_metrics_are_good_and_move(balancer):
    fetch(balancer, 10)

    def metrics():
        return balancer.net.inside("lb", "curl", "-s", "http://127.0.0.1:9480/metrics").stdout

    def flows():
        return sum(float(line.rsplit(" ", 1)[1]) for line in metrics().splitlines()
                   if line.startswith("ballast_lb_instance_flows_total{"))

    wait_until(lambda: flows() >= 10, 10, "the flows are counted")
    text = metrics()
    assert 'ballast_lb_instance_up{vip="web",vip_instance="web0"} 1' in text
    assert 'ballast_lb_vip_instances_usable{vip="web"} 2' in text
    told = subprocess.run([promtool(), "check", "metrics"], input=text, capture_output=True,
                          text=True, timeout=60, check=False)
    assert told.returncode == 0 and not told.stderr, told.stderr
    ready = balancer.net.inside("lb", "curl", "-s", "http://127.0.0.1:9480/readyz?verbose").stdout
    assert ready == "[+] running\n[+] vip web\nready\n"


def test_what_left_stays_in_the_vips_total(net, run):
    build(net)
    balancer = run([vip(scheduler="static")], tcp_closing="1s")
    balancer.wait_weights("both are up", web0=True, web1=True)

    def flows():
        return balancer.status()["vips"][0]["flows"]

    fetch(balancer, 10)
    wait_until(lambda: flows() == 10, 10, "the flows are counted")
    assert balancer.instances()["web0"]["flows"] < 10
    balancer.apply([vip(names=("web0",), scheduler="static")])
    wait_until(lambda: not balancer.status()["leaving"], 20, "web1 is gone")
    fetch(balancer, 5)
    wait_until(lambda: flows() == 15, 10, "the flows are counted")
