# SPDX-License-Identifier: Apache-2.0
"""`ballast bench`: its counts add up, --verify finds a stale server, wrong usage is refused."""

import json
import threading

import pytest

from harness import RedisServer, ballast_binary, free_port, run, wait_until, ping

SHORT = ["--seconds", "1", "--warmup", "0.2", "--keys", "1000", "--connections", "8"]


def bench(*words, check=True, **arguments):
    return run([ballast_binary(), "bench", *words], check=check, **arguments)


def measured(*words, **arguments):
    return json.loads(bench(*words, "--json", **arguments).stdout)


@pytest.fixture(scope="module")
def server():
    with RedisServer() as one:
        yield one


@pytest.mark.parametrize("words", [
    ["--writes", "0.2", "--load", "--verify"],
    ["--writes", "1", "--load", "--verify", "--value-size", "52-4KiB", "--pipeline", "16"],
    ["--hotspot", "0.9:1%", "--pipeline", "8", "--resp3", "--load"],
    ["--rate", "500", "--writes", "10%", "--uniform", "--load", "--verify"],
])
def test_counts_add_up(server, words):
    got = measured("--target", server.address, *SHORT, *words)
    latency = got["latency"]
    assert got["requests"] > 100 and got["errors"] == 0 and got["nulls"] == 0
    assert latency["all"]["requests"] == got["requests"]
    assert latency["reads"]["requests"] + latency["writes"]["requests"] == got["requests"]
    classes = ("hottest_10", "hottest_percent", "rest")
    assert sum(latency[name]["requests"] for name in classes) == got["requests"]
    # What comes within the last instants may fall behind the last whole second.
    assert got["requests"] * 0.8 <= sum(got["per_second"]) <= got["requests"]
    assert got["throughput"] == pytest.approx(got["requests"] / got["seconds"])
    assert got["load"]["keys"] == 1000
    if "verify" in got:
        assert got["verify"]["good_reads"] >= latency["reads"]["requests"]
        assert sum(got["verify"].values()) == got["verify"]["good_reads"]


def test_the_share_of_writes_is_what_was_asked(server):
    got = measured("--target", server.address, *SHORT, "--writes", "0.3", "--verify",
                   "--seed", "5", "--load")
    assert got["latency"]["writes"]["requests"] / got["requests"] == pytest.approx(0.3, abs=0.05)


def test_replayed_keys_are_the_keys_asked_for(server, tmp_path):
    with RedisServer() as fresh:
        keys = tmp_path / "keys"
        keys.write_bytes(b"plain\nwith space\n\nplain\n\xff\n")
        got = measured("--target", fresh.address, "--replay", keys, "--load", "--seconds", "0.5",
                       "--connections", "2", "--verify")
        found = run(["redis-cli", "-p", fresh.port, "--no-raw", "dbsize"]).stdout
        assert found == b"(integer) 4\n" and got["load"]["keys"] == 4 and got["nulls"] == 0


def test_an_overloaded_open_loop_shows_in_the_latency(server):
    # One connection, one request at a time, against a server paused for half a second.
    words = ["--target", server.address, "--keys", "100", "--connections", "1", "--rate", "1000",
             "--seconds", "1.5", "--warmup", "0.5", "--load"]
    timer = threading.Timer(1.0, run, [["redis-cli", "-p", server.port, "client", "pause", "500"]])
    timer.start()
    got = measured(*words)
    timer.join()
    # A third of the requests were due while the server slept; a closed loop would have seen one.
    assert got["latency"]["all"]["p90_us"] > 100_000


def test_verify_finds_a_replica_that_is_read(server):
    with RedisServer("--replicaof", "127.0.0.1", str(server.port)) as replica:
        wait_until(lambda: b"master_link_status:up" in run(
            ["redis-cli", "-p", replica.port, "info", "replication"]).stdout, what="replication")
        done = bench("--target", f"{server.address},{replica.address}", "--write-targets", "1",
                     "--keys", "10", "--seconds", "2", "--writes", "0.3", "--pipeline", "8",
                     "--connections", "8", "--verify", "--load", "--json", check=False)
    got = json.loads(done.stdout)
    assert done.returncode == 1
    assert got["verify"]["stale_reads"] > 0 and got["verify"]["foreign_replies"] == 0


def test_verify_finds_lost_and_foreign_values(server):
    words = ["--target", server.address, "--keys", "4", "--connections", "2", "--seconds", "1.5",
             "--warmup", "0", "--verify", "--load", "--writes", "0"]
    swap = (b"SET key:000000000001 strange\nDEL key:000000000002\n")
    timer = threading.Timer(0.5, run, [["redis-cli", "-p", server.port]], {"stdin": swap})
    timer.start()
    done = bench(*words, "--json", check=False)
    timer.join()
    found = json.loads(done.stdout)["verify"]
    assert done.returncode == 1
    assert found["lost_values"] > 0 and found["foreign_replies"] > 0 and found["stale_reads"] == 0


def test_password_and_errors_of_the_server():
    with RedisServer("--requirepass", "pw") as locked:
        target = ["--target", locked.address, *SHORT]
        for form in ([], ["--resp3"]):
            got = measured(*target, *form, env={"BALLAST_PASSWORD": "pw"})
            assert got["errors"] == 0
        refused = bench(*target, check=False)
        assert refused.returncode == 1 and b"NOAUTH" in refused.stdout
        wrong = bench(*target, check=False, env={"BALLAST_PASSWORD": "other"})
        assert wrong.returncode == 1 and b"WRONGPASS" in wrong.stderr


def test_nobody_there_is_status_one():
    port = free_port()
    assert not ping(port)
    done = bench("--target", f"127.0.0.1:{port}", check=False)
    assert done.returncode == 1 and str(port).encode() in done.stderr


@pytest.mark.parametrize("words", [
    ["--zipf", "x"], ["--zipf", "1", "--uniform"], ["--writes", "1.5"], ["--hotspot", "0.9"],
    ["--connections", "0"], ["--keys", "0"], ["--value-size", "9-3"], ["--target", "nowhere"],
    ["--verify", "--value-size", "16"], ["--replay", "/nowhere/keys"], ["--frob"], ["stray"],
    ["--seconds", "0"], ["--write-targets", "2"], ["--password-file", "/nowhere/pw"],
])
def test_wrong_usage_is_status_two_and_one_line(words):
    done = bench(*words, check=False)
    assert done.returncode == 2 and done.stdout == b""
    assert done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"ballast bench: ")
