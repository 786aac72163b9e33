# SPDX-License-Identifier: Apache-2.0
"""What a connection to one server promises, when the tier's own connections behind it come and go:
blocking commands on keys with copies, WATCH, scripts that do not name their keys."""

import time

import pytest
from harness import RedisServer, SplitTier, encode, ping, wait_until
from stage import skip_without_tier
from wire import ReplyError, Wire


@pytest.fixture(name="split", scope="module")
def fixture_split():
    """Separate processes; every read counts, so that keys get copies at once."""
    skip_without_tier("it has no leaf")
    server = RedisServer()
    with server, SplitTier([[server]], spines=2, settings="sample = 1\n") as tier:
        wait_until(lambda: ping(tier.port), what="router")
        yield tier


@pytest.mark.parametrize("protocol", [2, 3])
def test_blocking_commands_on_keys_with_copies_elsewhere(split, protocol):
    """The home waits for the copies to go, and then sends the command itself."""
    with Wire(split.port, timeout_s=5) as client, Wire(split.port) as reader:
        client.ask("HELLO", protocol)
        for turn in range(60):
            client.ask("RPUSH", "list", turn)
            for _ in range(20):
                assert reader.ask("LRANGE", "list", 0, -1) == [b"%d" % turn]
            assert client.ask("BLPOP", "list", 1) == [b"list", b"%d" % turn]
            assert reader.ask("LRANGE", "list", 0, -1) == []


def test_watched_transactions_on_keys_with_copies_elsewhere(split):
    with Wire(split.port, timeout_s=5) as client, Wire(split.port) as reader:
        client.ask("SET", "watched", "-1")
        for turn in range(60):
            for _ in range(20):
                assert reader.ask("GET", "watched") == b"%d" % (turn - 1)
            client.ask("WATCH", "watched")
            client.ask("MULTI")
            client.ask("SET", "watched", turn)
            assert client.ask("EXEC") == [b"OK"]
            assert reader.ask("GET", "watched") == b"%d" % turn


def test_watch_does_not_outlive_the_connection_that_watches(new_stage):
    """The shard forgot what was watched, so nobody can say that the key did not change."""
    skip_without_tier("a stock server closes the client's own connection")
    stage = new_stage(relayed=False)
    client, other = stage.wire(), stage.wire()
    client.ask("SET", "k", "1")
    client.ask("WATCH", "k")
    Wire(stage.shards[0].port).ask("CLIENT", "KILL", "TYPE", "normal")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            other.ask("SET", "k", "2")
            break
        except ReplyError:
            time.sleep(0.05)
    client.ask("MULTI")
    client.ask("SET", "k", "3")
    assert client.ask("EXEC") is None
    assert other.ask("GET", "k") == b"2"
    client.ask("WATCH", "k")
    client.ask("MULTI")
    client.ask("SET", "k", "3")
    assert client.ask("EXEC") == [b"OK"]


def test_watch_does_not_vanish_with_a_change_of_protocol(new_stage):
    stage = new_stage(relayed=False)
    client, other = stage.wire(), stage.wire()
    client.ask("SET", "k", "1")
    client.ask("WATCH", "k")
    client.ask("HELLO", 3)
    other.ask("SET", "k", "2")
    client.ask("MULTI")
    client.ask("SET", "k", "3")
    assert client.ask("EXEC") is None
    assert other.ask("GET", "k") == b"2"


def test_scripts_without_keys_leave_nothing_old_behind(new_stage):
    """What such a script writes nobody can tell; reads after it see it, on any connection."""
    stage = new_stage(options=["--sample", "1"], relayed=False)
    client, other = stage.wire(), stage.wire()
    client.ask("SET", "k", "-1")
    script = "return redis.call('SET', 'k', ARGV[1])"
    stage.heat("k")
    for turn in range(300):
        for _ in range(3):
            other.ask("GET", "k")
        if turn % 3 == 0:
            client.ask("EVAL", script, 0, turn)
        elif turn % 3 == 1:
            for words in (["MULTI"], ["EVAL", script, 0, turn], ["EXEC"]):
                client.ask(*words)
        else:
            client.send_bytes(encode("EVAL", script, 1, "named", turn) + encode("GET", "k"))
            assert client.read() == b"OK"
            assert client.read() == b"%d" % turn
            continue
        assert other.ask("GET", "k") == b"%d" % turn


def test_a_browser_cannot_send_commands(target_port):
    with Wire(target_port) as client:
        client.send_bytes(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET by-browser 1\r\n")
        assert client.closed_by_peer() or client.reader.read() is not None
    with Wire(target_port) as client:
        assert client.ask("GET", "by-browser") is None


@pytest.fixture(name="target_port")
def fixture_target_port(new_stage):
    return new_stage(relayed=False).port
