# SPDX-License-Identifier: Apache-2.0
"""Faults seen in other caches, tried here: whatever makes a cache return what is no longer true."""

import contextlib
import re
import time

import pytest
from stage import assert_no_violation, ask_until, skip_without_tier
from wire import ReplyError, Wire

LEASE_S = 1.0
# What passes, at most, between a writer past the tier and the last reader of the old value while
# the tier hears from the shard; far above the milliseconds it takes, far below a lease.
HEARS_S = 0.2


# Every read counts for what is hot, so that keys get copies at once.
SAMPLE_ALL = ["--sample", "1"]


def judge(stage, result, operations):
    assert_no_violation(result, operations)
    share = stage.hot_share()
    print(f"{result['operations']} operations, hot reads: {share}")
    assert share is None or share > 0.05, "nothing is proved of copies"


def test_late_fill_never_wins(new_stage, new_histories):
    """Slow links to the shards: fills are under way while writes and deletes overtake them."""
    stage = new_stage(shards=2, options=SAMPLE_ALL)
    run = new_histories([f"127.0.0.1:{stage.port}"], seconds=8, cold_keys=20, deletes=2,
                        sessions=24)
    while run.running():
        for delay, fills_delay in ((0.002, 0.0), (0.01, 0.1), (0.0, 0.05)):
            time.sleep(0.3)
            for shard in stage.shards:
                shard.relay.delay_s, shard.relay.push_delay_s = delay, fills_delay
    judge(stage, run.wait(), operations=1000)


def test_a_write_does_not_let_the_readers_loose_on_the_shard(new_stage):
    """While a hot key has no good copy, its readers share few reads of a shard far away."""
    skip_without_tier("every read is its own")
    stage = new_stage()
    readers = [stage.wire() for _ in range(60)]
    writer, shard = stage.wire(), stage.shards[0]
    for protocol, reader in enumerate(readers):
        reader.ask("HELLO", 2 + protocol % 2)
    writer.ask("SET", "k", "old")
    stage.heat("k")
    direct = Wire(shard.port)
    direct.ask("CONFIG", "RESETSTAT")
    shard.relay.delay_s = 0.2
    writer.send("SET", "k", "new")
    time.sleep(0.05)
    for reader in readers:
        reader.send("GET", "k")
    assert {reader.read() for reader in readers} <= {b"old", b"new"}
    assert writer.read() == b"OK"
    for reader in readers:
        reader.send("GET", "k")
    assert {reader.read() for reader in readers} == {b"new"}
    calls = re.search(r"cmdstat_get:calls=(\d+)", direct.ask("INFO", "commandstats").decode())
    # Those of each protocol share; some come while a read is under way and take part in the next.
    assert int(calls[1]) <= 10, f"{calls[1]} reads of the shard for {2 * len(readers)} readers"


def test_a_read_under_way_is_too_old_for_the_readers_that_follow(new_stage):
    """Its answer may be older than a write acknowledged since: readers meanwhile get the next."""
    stage = new_stage()
    first, second, writer = stage.wire(), stage.wire(), stage.wire()
    for reader in (first, second):
        reader.ask("HELLO", 3)
    writer.ask("SET", "k", "0")
    stage.heat("k")
    for shard in stage.shards:
        if shard.relay:
            shard.relay.push_delay_s = 1.0  # no copy is good for long
            shard.relay.resp3_delay_s = 0.4
    writer.ask("SET", "k", "1")
    first.send("GET", "k")
    time.sleep(0.1)
    writer.ask("SET", "k", "2")
    second.send("GET", "k")
    assert first.read() == b"1"
    assert second.read() == b"2"


def test_a_hot_value_grown_large_reaches_all_its_readers(new_stage):
    """A value that may not be cached is shared by no readers: each gets all of it."""
    stage = new_stage()
    readers = [stage.wire() for _ in range(6)]
    writer, shard = stage.wire(), stage.shards[0]
    writer.ask("SET", "k", "small")
    stage.heat("k")
    shard.relay.delay_s = 0.05
    large = b"v" * 3_000_000
    writer.send("SET", "k", large)
    time.sleep(0.02)
    for _ in range(3):
        for reader in readers:
            reader.send("GET", "k")
        answers = [reader.read() for reader in readers]
        assert all(answer in (b"small", large) for answer in answers)
    assert writer.read() == b"OK"
    for reader in readers:
        assert reader.ask("GET", "k") == large


# Each writes "new" under k, or removes it, whatever was there. `{k}` shares k's slot.
WRITES = {
    "SET": ([("SET", "k", "new")], b"new"),
    "SET KEEPTTL GET": ([("SET", "k", "new", "KEEPTTL", "GET")], b"new"),
    "SETEX": ([("SETEX", "k", 100, "new")], b"new"),
    "GETSET": ([("GETSET", "k", "new")], b"new"),
    "APPEND": ([("DEL", "k"), ("APPEND", "k", "new")], b"new"),
    "SETRANGE": ([("SETRANGE", "k", 0, "new")], b"new"),
    "SETBIT": ([("SET", "k", "nev"), ("SETBIT", "k", 23, 1)], b"new"),
    "MSET": ([("MSET", "k", "new", "other", 1)], b"new"),
    "MSETNX": ([("DEL", "{k}2", "k"), ("MSETNX", "k", "new", "{k}2", 1)], b"new"),
    "RENAME": ([("SET", "{k}2", "new"), ("RENAME", "{k}2", "k")], b"new"),
    "COPY": ([("SET", "{k}2", "new"), ("COPY", "{k}2", "k", "REPLACE")], b"new"),
    "BITOP": ([("SET", "{k}2", "new"), ("BITOP", "OR", "k", "{k}2", "{k}2")], b"new"),
    "EVAL": ([("EVAL", "return redis.call('set', KEYS[1], ARGV[1])", 1, "k", "new")], b"new"),
    "MULTI": ([("MULTI",), ("SET", "k", "new"), ("EXEC",)], b"new"),
    "MULTI EVAL": ([("MULTI",), ("EVAL", "redis.call('set', KEYS[1], 'new')", 1, "k"), ("EXEC",)],
                   b"new"),
    "DEL": ([("DEL", "other", "k")], None),
    "UNLINK": ([("UNLINK", "k", "other")], None),
    "GETDEL": ([("GETDEL", "k")], None),
    "GETEX": ([("GETEX", "k", "PXAT", 1)], None),
    "PEXPIREAT": ([("PEXPIREAT", "k", 1)], None),
    "EXPIRE": ([("EXPIRE", "k", -1)], None),
    "FLUSHALL": ([("FLUSHALL",)], None),
    "FLUSHDB": ([("FLUSHDB",)], None),
    "MULTI DEL": ([("MULTI",), ("DEL", "k"), ("EXEC",)], None),
}


@pytest.mark.parametrize("name", WRITES)
def test_every_kind_of_write_is_heard_by_the_copies(new_stage, name):
    """The connection that writes is not one that reads; reads right after the reply see it."""
    stage = new_stage()
    readers = [stage.wire() for _ in range(8)]
    writer = stage.wire()
    commands, wanted = WRITES[name]
    for _ in range(3):
        writer.ask("SET", "k", "old")
        stage.heat("k", seconds=0.7)
        # The tier has to know by itself what is written: the shard tells it too late.
        for shard in stage.shards:
            if shard.relay:
                shard.relay.push_delay_s = 0.2
        for command in commands:
            writer.ask(*command)
        for reader in readers:
            reader.send("GET", "k")
        for shard in stage.shards:
            if shard.relay:
                shard.relay.push_delay_s = 0.0
        assert [reader.read() for reader in readers] == [wanted] * len(readers)


def test_write_then_read_by_others_many_times(new_stage):
    """One write after the other, each read at once by all others, while the keys are hot."""
    stage = new_stage(shards=2, spines=3)
    wires = [stage.wire() for _ in range(10)]
    keys = [f"k{number}" for number in range(4)]
    for key in keys:
        wires[0].ask("SET", key, "start")
    stage.heat(*keys)
    for turn in range(1500):
        key, writer = keys[turn % 4], wires[turn % 10]
        assert writer.ask("SET", key, turn) == b"OK"
        for wire in wires:
            for _ in range(3):
                wire.send("GET", key)
        for wire in wires:
            assert [wire.read() for _ in range(3)] == [b"%d" % turn] * 3


def test_expiry_ends_the_copies(new_stage):
    stage = new_stage(shards=2)
    wire = stage.wire()
    for ttl_ms in (300, 1500):
        start = time.monotonic()
        wire.ask("SET", "k", "v", "PX", ttl_ms)
        set_at = time.monotonic()
        while True:
            asked = time.monotonic()
            got = wire.ask("GET", "k")
            if got is None:
                break
            assert asked < set_at + ttl_ms / 1000 + 0.005, "read after its time to live"
        assert time.monotonic() >= start + ttl_ms / 1000 - 0.005, "gone before its time"


def test_writer_past_the_tier_is_heard(new_stage):
    """What the shard tells the tracking connection reaches the copies within milliseconds."""
    stage = new_stage()
    wire = stage.wire()
    wire.ask("SET", "k", "start")
    direct = stage.shard_of("k")
    writes = [("SET", "k", "{}"), ("APPEND", "k", "{}"), ("EVAL",
              "return redis.call('set', 'k', ARGV[1])", 0, "{}"), ("FLUSHALL",), ("SETEX", "k", 9,
              "{}"), ("DEL", "k"), ("PEXPIREAT", "k", 1)]
    for turn in range(3 * len(writes)):
        wire.ask("SET", "k", f"old{turn}")
        stage.heat("k", seconds=0.6)
        direct.ask(*[str(word).format(f"new{turn}") for word in writes[turn % len(writes)]])
        wanted = direct.ask("GET", "k")
        ask_until(wire, wanted, "GET", "k", timeout_s=HEARS_S)
        for _ in range(200):
            assert wire.ask("GET", "k") == wanted


def _tracking_ids(direct):
    lines = direct.ask("CLIENT", "LIST").decode().splitlines()
    fields = [dict(field.partition("=")[::2] for field in line.split()) for line in lines]
    return [one["id"] for one in fields if "t" in one["flags"]]


def test_tracking_connection_dies_alone(new_stage):
    """Killed at the shard, then a write past the tier that nobody tells of: the copies are gone."""
    skip_without_tier("it tracks nothing")
    stage = new_stage()
    wire = stage.wire()
    wire.ask("SET", "k", "start")
    direct = stage.shard_of("k")
    for turn in range(5):
        ask_until(wire, b"OK", "SET", "k", f"old{turn}")
        stage.heat("k", seconds=1.0)
        ids = _tracking_ids(direct)
        assert ids, "no connection of the tier tracks"
        for one in ids:
            direct.ask("CLIENT", "KILL", "ID", one)
        direct.ask("SET", "k", f"new{turn}")
        ask_until(wire, f"new{turn}".encode(), "GET", "k", timeout_s=HEARS_S)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            with contextlib.suppress(ReplyError):
                assert wire.ask("GET", "k") == f"new{turn}".encode()


def test_silent_link_to_the_shard_ends_the_lease(new_stage):
    """Nothing closes, nothing arrives: no copy is served past its lease."""
    skip_without_tier("it has no leases")
    stage = new_stage(options=["--shard-timeout", "200ms"])
    wire = stage.wire()
    wire.ask("SET", "k", "old")
    direct = stage.shard_of("k")
    for turn in range(3):
        ask_until(wire, b"OK", "SET", "k", f"old{turn}")
        stage.heat("k")
        stage.shards[0].relay.hold()
        direct.ask("SET", "k", f"new{turn}")
        wrote = time.monotonic()
        while time.monotonic() < wrote + 2.5:
            asked = time.monotonic()
            with contextlib.suppress(ReplyError):
                if wire.ask("GET", "k") == f"old{turn}".encode():
                    assert asked - wrote < LEASE_S + 0.05, "served past its lease"
        stage.shards[0].relay.release()
        ask_until(wire, f"new{turn}".encode(), "GET", "k")


def test_shard_restart_drops_every_copy(new_stage):
    """The shard forgets all (it keeps nothing on disk); so must the copies."""
    skip_without_tier("it would be the shard itself")
    stage = new_stage(options=["--shard-timeout", "300ms"])
    for turn in range(3):
        wire = stage.wire()
        ask_until(wire, b"OK", "SET", "k", f"old{turn}")
        stage.heat("k", seconds=1.0)
        stage.shards[0].server.kill()
        stage.shards[0].server.start()
        started = time.monotonic()
        ask_until(wire, None, "GET", "k")
        assert time.monotonic() - started < 3
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            with contextlib.suppress(ReplyError):
                assert wire.ask("GET", "k") is None


def test_paused_tier_serves_nothing_old(new_stage):
    """Requests that came while the process was stopped past its lease are answered by the shard."""
    skip_without_tier("it has no leases")
    stage = new_stage()
    wires = [stage.wire(timeout_s=20) for _ in range(4)]
    wires[0].ask("SET", "k", "start")
    direct = stage.shard_of("k")
    for turn in range(3):
        ask_until(wires[0], b"OK", "SET", "k", f"old{turn}")
        stage.heat("k", seconds=1.0)
        stage.tier.pause()
        direct.ask("SET", "k", f"new{turn}")
        time.sleep(LEASE_S + 0.3)
        for wire in wires:
            for _ in range(20):
                wire.send("GET", "k")
        stage.tier.resume()
        for wire in wires:
            for _ in range(20):
                got = wire.read_value()
                assert isinstance(got, ReplyError) or got == f"new{turn}".encode()


def test_links_to_the_shards_cut_while_clients_run(new_stage, new_histories):
    stage = new_stage(shards=3, options=["--shard-timeout", "500ms", *SAMPLE_ALL])
    run = new_histories([f"127.0.0.1:{stage.port}"], seconds=12, sessions=16, timeout=2000)
    faults = [lambda relay: relay.drop_connections(), lambda relay: relay.drop_newest_connection(),
              lambda relay: relay.cut(), lambda relay: relay.hold()]
    turn = 0
    while run.running():
        relay = stage.shards[turn % len(stage.shards)].relay
        faults[turn % 4](relay)
        time.sleep(0.8 if turn % 5 else 1.6)
        relay.mend()
        relay.release()
        time.sleep(0.4)
        turn += 1
    judge(stage, run.wait(), operations=5000)


def test_flushes_expiry_and_a_writer_past_the_tier(new_stage, new_histories):
    """At least 200,000 operations; the writer past the tier is measured."""
    stage = new_stage(shards=3, relayed=False, options=SAMPLE_ALL)
    shard = stage.shards[0]
    bypass = {"bypass": f"127.0.0.1:{shard.port}"} if stage.tier else {}
    run = new_histories([f"127.0.0.1:{stage.port}"], operations=220_000, seconds=180,
                        flush_every=400, **bypass)
    result = run.wait(240)
    judge(stage, result, operations=200_000)
    if bypass:
        assert result["bypass"]["reads"] > 100
        assert result["bypass"]["p99_ms"] < 100, result["bypass"]
        assert result["bypass"]["max_ms"] < 1000 * LEASE_S, result["bypass"]
