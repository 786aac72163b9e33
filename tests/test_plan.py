# SPDX-License-Identifier: Apache-2.0
"""`ballast plan` on what a real redis-server was asked: MONITOR and a capture of the same traffic
tell the exponent that the load was made with, and agree."""

import json
import os
import shutil
import socket
import time

import pytest

from harness import Process, RedisServer, ballast_binary, encode, run, wait_until

KEYS, ZIPF, WRITES = 20_000, 0.95, 0.05


def plan(*words, rate="1e6", check=True, **arguments):
    return run([ballast_binary(), "plan", *words, "--rate", rate], check=check, **arguments)


def planned(*words, **arguments):
    return json.loads(plan(*words, "--json", **arguments).stdout)


def wait_steady(path, step_s=0.5):
    """Until a file that somebody writes has stopped growing."""
    sizes = [-1]

    def steady():
        time.sleep(step_s)
        sizes.append(path.stat().st_size)
        return sizes[-1] == sizes[-2]
    wait_until(steady, what=f"{path} complete")


def monitor(server, directory):
    process = Process("monitor", ["redis-cli", "-p", server.port, "monitor"], directory)
    process.wait_ready(lambda: process.output().startswith("OK"))
    return process


def tcpdump(server, directory):
    """None where captures cannot be made."""
    if os.geteuid() != 0 or not shutil.which("tcpdump"):
        return None
    process = Process("tcpdump", ["tcpdump", "-Z", "root", "-i", "lo", "-B", "65536", "-U", "-w",
                                  "lo.pcap", f"tcp port {server.port}"], directory)
    process.wait_ready(lambda: "listening on" in process.output())
    return process


class Recorded:
    def __init__(self, directory):
        self.capture = None
        with RedisServer() as server, monitor(server, directory) as recorder:
            self.port = server.port
            dump = tcpdump(server, directory)
            self.bench = json.loads(run(
                [ballast_binary(), "bench", "--target", server.address, "--keys", KEYS, "--zipf",
                 ZIPF, "--writes", WRITES, "--rate", "12000", "--seconds", "4", "--warmup", "0",
                 "--connections", "10", "--seed", "3", "--json"]).stdout)
            self.monitor = recorder.output_path
            wait_steady(self.monitor)
            if dump:
                with dump:
                    self.capture = directory / "lo.pcap"
                    wait_steady(self.capture)
                    dump.stop()
                self.dropped = "\n0 packets dropped" not in dump.output()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("plan"))


@pytest.fixture
def capture(recorded):
    if not recorded.capture:
        pytest.skip("captures need root and tcpdump")
    return recorded.capture


def check_workload(found, recorded):
    workload = found["workload"]
    assert workload["zipf"] == pytest.approx(ZIPF, abs=3.5 * workload["zipf_standard_error"])
    assert workload["zipf_standard_error"] < 0.01
    assert workload["zipf_fits"] and workload["ks_distance"] < 0.01
    assert workload["objects"] == pytest.approx(KEYS, rel=0.03)
    assert workload["requests"] == pytest.approx(recorded.bench["requests"], rel=0.01)
    assert workload["writes"] / workload["requests"] == pytest.approx(WRITES, abs=0.01)
    assert workload["seconds"] == pytest.approx(4, abs=0.7)
    assert found["hottest"][0]["key"] == "key:000000000000"


def test_monitor_tells_the_exponent(recorded):
    found = planned("--from", "trace", recorded.monitor)
    assert found["workload"]["form"] == "monitor"
    check_workload(found, recorded)


def test_a_capture_tells_the_same(recorded, capture):
    found = planned("--from", "trace", capture, "--port", recorded.port)
    assert found["workload"]["form"] == "capture"
    check_workload(found, recorded)
    other = planned("--from", "monitor", recorded.monitor)
    close = {"rel": 0.01} if recorded.dropped else {"abs": 2}
    for name in ("requests", "writes", "distinct_keys"):
        assert found["workload"][name] == pytest.approx(other["workload"][name], **close), name
    assert abs(found["workload"]["zipf"] - other["workload"]["zipf"]) < 0.002
    assert found["plan"]["spines"] == other["plan"]["spines"]


def test_standard_input_and_a_cut_capture(recorded, capture):
    data = capture.read_bytes()
    whole = planned("--from", "pcap", capture, "--port", recorded.port)
    piped = planned("--from", "trace", "-", "--port", recorded.port, stdin=data)
    assert piped["workload"] == {**whole["workload"], "source": "standard input"}
    cut = planned("--from", "pcap", "-", "--port", recorded.port, stdin=data[:len(data) // 2])
    assert cut["workload"]["requests"] == pytest.approx(whole["workload"]["requests"] / 2, rel=0.1)
    assert any("truncated" in note for note in cut["workload"]["notes"])
    wrong = plan("--from", "pcap", capture, "--port", "1", check=False)
    assert wrong.returncode == 2 and b"no command with a key to port 1" in wrong.stderr


def test_names_scripts_and_several_keys(tmp_path):
    odd = b"a\"b\\ \r\n\x00\x7f'"
    with RedisServer() as server, monitor(server, tmp_path) as recorder:
        with socket.create_connection(("127.0.0.1", server.port)) as link:
            for words in ([("SET", odd, "x\ny")] * 5 + [("MGET", "m", odd, "n")] * 3 +
                          [("EVAL", "return redis.call('GET', KEYS[1])", 1, "s")] * 2 +
                          [("LPUSH", "l", 1), ("NOSUCH", "k"), ("PING",), ("GET", "")]):
                link.sendall(encode(*words))
                time.sleep(0.01)
        wait_steady(recorder.output_path)
        found = planned("--from", "trace", recorder.output_path, rate="100")
    hottest = {row["key"].encode(): (row["requests"], row["writes"]) for row in found["hottest"]}
    # Redis shows unknown commands to nobody.
    assert hottest == {odd: (8, 5), b"m": (3, 0), b"n": (3, 0), b"s": (2, 2), b"l": (1, 1),
                       b"(name not kept)": (1, 0)}
    assert any("2 commands that scripts ran" in note for note in found["workload"]["notes"])


def test_another_servers_commands(tmp_path):
    trace = tmp_path / "monitor"
    trace.write_text('1.5 [0 x:1] "json.get" "doc"\n1.6 [0 x:1] "get" "k"\n' * 20)
    found = planned("--from", "trace", trace, rate="100")
    assert found["workload"]["requests"] == 20
    assert any("json.get (20)" in note for note in found["workload"]["notes"])
    table = tmp_path / "commands"
    table.write_bytes(b"*1\r\n*6\r\n$8\r\njson.get\r\n:-2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n")
    found = planned("--from", "trace", trace, "--commands", table, rate="100")
    assert found["workload"]["requests"] == 20 and found["hottest"][0]["key"] == "doc"
    table.write_bytes(b"no table")
    wrong = plan("--from", "trace", trace, "--commands", table, check=False)
    assert wrong.returncode == 2 and b"--commands" in wrong.stderr
