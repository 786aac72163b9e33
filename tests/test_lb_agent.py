# SPDX-License-Identifier: Apache-2.0
"""`ballast lb agent` beside real load: a control group with a limit, connections, HAProxy."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import pytest

from control_group import ControlGroup
from harness import Server, ballast_binary, free_port, run, wait_until

SECRET = "what balancer and agents share"
ENVIRONMENT = {"BALLAST_LB_SECRET": SECRET}


class Agent(Server):
    def __init__(self, *options):
        super().__init__("agent", ENVIRONMENT)
        self.port, self.check_port = free_port(), free_port()
        self.options = options
        self.begin()

    def argv(self):
        return [ballast_binary(), "lb", "agent", "--listen", f"127.0.0.1:{self.port}",
                "--agent-check", f"127.0.0.1:{self.check_port}", *self.options]

    def ready(self):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.check_port), 1).close()
            return True
        return False

    def load(self, *words, check=True, env=None):
        done = run([ballast_binary(), "lb", "load", "--json", *words, f"127.0.0.1:{self.port}"],
                   check=check, env=env or ENVIRONMENT)
        return json.loads(done.stdout)[0]


@pytest.fixture(name="limited_group")
def fixture_limited_group():
    """A control group that may use half a core."""
    try:
        group = ControlGroup(f"ballast-test-{os.getpid()}")
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    group.limit(0.5)
    yield group
    group.close()


def test_a_busy_group_is_at_its_own_limit(limited_group):
    with Agent("--cgroup", limited_group.name) as agent:
        time.sleep(0.5)
        idle = agent.load()
        assert idle["cores"] == 0.5 and idle["utilisation"] < 0.05
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            limited_group.enter(busy.pid)
            wait_until(lambda: agent.load()["utilisation"] > 0.9, what="the load")
        finally:
            busy.kill()
            busy.wait()
        wait_until(lambda: agent.load()["utilisation"] < 0.05, what="the end of the load")


def test_connections_and_latency_of_a_real_server(new_directory_server):
    port = new_directory_server
    with Agent("--port", port, "--probe", f"http://127.0.0.1:{port}/") as agent:
        wait_until(lambda: agent.load()["latency_us"] is not None, what="a probe")
        assert agent.load()["latency_us"] < 1_000_000
        before = agent.load()["connections"]
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(7)]
        time.sleep(0.1)
        assert agent.load()["connections"] >= before + 7
        for one in held:
            one.close()


@pytest.fixture(name="new_directory_server")
def fixture_new_directory_server(tmp_path):
    port = free_port()
    child = subprocess.Popen([sys.executable, "-m", "http.server", str(port), "--bind",
                              "127.0.0.1"], cwd=tmp_path, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), what="the server")
        yield port
    finally:
        child.kill()
        child.wait()


def test_only_who_knows_the_secret_is_answered():
    with Agent() as agent:
        refused = agent.load("--timeout", "300ms", check=False,
                             env={"BALLAST_LB_SECRET": "something else entirely"})
        assert "no answer" in refused["error"]
        assert agent.load()["number"] == 1


def test_a_secret_is_changed_without_a_pause(tmp_path):
    both = tmp_path / "both"
    both.write_text(f"{SECRET}\r\n\nthe next secret of theirs\n", "utf-8")
    with Agent("--secret-file", both) as agent:
        assert agent.load()["cores"] > 0
        assert agent.load(env={"BALLAST_LB_SECRET": "the next secret of theirs"})["cores"] > 0
        assert agent.load("--secret-file", both)["cores"] > 0
        assert "error" in agent.load(check=False,
                                     env={"BALLAST_LB_SECRET": "the secret after the next"})
    for text, named in ((f"{SECRET}\nshort\n", "line 2: shorter than 16 bytes"),
                        (f"{SECRET} \n", "line 1: begins or ends with a blank"),
                        (f"\ufeff{SECRET}\n", "line 1: begins with a byte order mark"),
                        (f"{SECRET}\n" * 5, "more than 4 secrets"), ("\n", "is empty")):
        both.write_text(text, "utf-8")
        done = run([ballast_binary(), "lb", "agent", "--secret-file", both], check=False)
        assert done.returncode == 2 and named in done.stderr.decode(), done.stderr


def test_a_recorded_answer_does_not_pass_for_another():
    """Somebody between replays the first answer ever after."""
    with Agent() as agent, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as relay:
        relay.bind(("127.0.0.1", 0))
        relay.settimeout(10)
        port = relay.getsockname()[1]

        def ask():
            return subprocess.Popen(
                [str(ballast_binary()), "lb", "load", "--json", "--timeout", "500ms",
                 f"127.0.0.1:{port}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, **ENVIRONMENT})
        with ask() as first:
            question, client = relay.recvfrom(1024)
            relay.sendto(question, ("127.0.0.1", agent.port))
            answer, _ = relay.recvfrom(1024)
            relay.sendto(answer, client)
            assert json.loads(first.communicate()[0])[0]["number"] == 1
        with ask() as second:
            _, client = relay.recvfrom(1024)
            relay.sendto(answer, client)
            out, err = second.communicate()
            assert "another request" in json.loads(out)[0]["error"], err
            assert second.returncode == 1


def test_haproxy_follows_the_load(tmp_path, limited_group):
    """A real HAProxy asks by agent-check and takes what is free for the weight."""
    binary = "/usr/sbin/haproxy"
    if not os.access(binary, os.X_OK):
        pytest.skip("haproxy is not installed: ./dev setup")
    stats = tmp_path / "stats"
    with Agent("--cgroup", limited_group.name) as agent:
        config = tmp_path / "haproxy.cfg"
        config.write_text(f"""
global
  stats socket {stats} level admin
defaults
  timeout connect 1s
  timeout client 1s
  timeout server 1s
backend web
  server one 127.0.0.1:{free_port()} weight 100 agent-check agent-port {agent.check_port} \
agent-inter 100ms
""", encoding="ascii")
        child = subprocess.Popen([binary, "-f", str(config), "-db"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)

        def row():
            with socket.socket(socket.AF_UNIX) as admin:
                admin.connect(str(stats))
                admin.sendall(b"show stat\n")
                text = b"".join(iter(lambda: admin.recv(65536), b"")).decode()
            lines = text.lstrip("# ").splitlines()
            names = lines[0].split(",")
            rows = [dict(zip(names, line.split(","))) for line in lines[1:]]
            return next(one for one in rows if one.get("svname") == "one")
        try:
            wait_until(stats.exists, what="HAProxy")
            wait_until(lambda: row()["agent_status"] and int(row()["weight"]) >= 95,
                       what="the weight of an idle instance")
            with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
                try:
                    limited_group.enter(busy.pid)
                    wait_until(lambda: int(row()["weight"]) <= 10,
                               what="the weight of a busy instance")
                finally:
                    busy.kill()
        finally:
            child.terminate()
            child.wait()


@pytest.mark.parametrize("words, named", [
    (["--window", "0ms"], "--window"), (["--port", "0"], "--port"), (["--port", "x"], "--port"),
    (["--cgroup", "web"], "--cgroup"), (["--probe", "ftp://x"], "--probe"),
    (["--listen", "nowhere"], "--listen"), (["--secret-file", "/no/such"], "/no/such")])
def test_wrong_usage_is_refused(words, named):
    done = run([ballast_binary(), "lb", "agent", *words], check=False, env=ENVIRONMENT)
    assert done.returncode == 2 and named in done.stderr.decode(), done.stderr


def test_what_cannot_be_had_is_named():
    done = run([ballast_binary(), "lb", "agent", "--listen", "127.0.0.1:0", "--cgroup",
                "/no/such/group"], check=False, env=ENVIRONMENT)
    assert done.returncode == 1 and "/no/such/group" in done.stderr.decode()
    short = run([ballast_binary(), "lb", "agent"], check=False,
                env={"BALLAST_LB_SECRET": "short"})
    assert short.returncode == 2 and "BALLAST_LB_SECRET" in short.stderr.decode()


def test_polls_go_on_and_none_is_lost():
    with Agent() as agent:
        done = run([ballast_binary(), "lb", "load", "--json", "--seconds", "1", "--interval",
                    "50ms", f"127.0.0.1:{agent.port}", f"127.0.0.1:{free_port()}"], check=False,
                   env=ENVIRONMENT)
        there, gone = json.loads(done.stdout)["agents"]
        assert done.returncode == 1  # one never answered
        assert there["answers"] >= 10 and there["missed"] <= 1 and there["utilisation"] is not None
        assert gone["answers"] == 0 and gone["missed"] >= 10
