# SPDX-License-Identifier: Apache-2.0
"""Faults seen in other proxies and caches, tried here: the stream of replies of one client.

Coherence has a file of its own, test_faults_coherence.py, as have time and memory,
test_faults_bounds.py.
"""

import contextlib
import random
import threading
import time

import pytest
from harness import encode
from stage import Model, PeakMemory, ask_until, random_command, skip_without_tier
from wire import Push, ReplyError, Wire

MIB = 1 << 20


def test_late_reply_reaches_nobody_else(new_stage):
    """A shard slower than the timeout: each of 100 clients gets its own value, or an error."""
    stage = new_stage(shards=2, options=["--shard-timeout", "300ms"])
    loader = stage.wire()
    for number in range(100):
        loader.ask("SET", f"tag:{number}", f"value:{number}")
    wires = [stage.wire() for _ in range(100)]
    errors = 0
    for turn in range(12):
        for shard in stage.shards:
            shard.relay.delay_s = (0.0, 0.25, 0.0)[turn % 3]
        for number, wire in enumerate(wires):
            wire.send("GET", f"tag:{number}")
            wire.send("GET", f"tag:{(number + turn) % 100}")
            wire.send("ECHO", f"echo:{number}:{turn}")
        for number, wire in enumerate(wires):
            wanted = [f"value:{number}", f"value:{(number + turn) % 100}", f"echo:{number}:{turn}"]
            for value in wanted:
                got = wire.read_value()
                if isinstance(got, ReplyError):
                    errors += 1
                else:
                    assert got == value.encode(), f"client {number}, turn {turn}"
    if stage.tier:
        assert errors > 100, "no command timed out: the test did not test"
    for shard in stage.shards:
        shard.relay.delay_s = 0.0
    for number, wire in enumerate(wires):
        assert wire.ask("GET", f"tag:{number}") == f"value:{number}".encode()


def test_error_leaves_the_stream_in_step(new_stage):
    stage = new_stage(shards=2)
    wire = stage.wire()
    commands = [("SET", "a", "1"), ("NOSUCHCOMMAND", "x"), ("GET", "a"), ("SET", "a"),
                ("LPUSH", "a", "x"), ("GET", "a"), ("INCR", "a"), ("GET", "a", "b"), ("GET", "a"),
                ("ECHO", "end")]
    wanted = [b"OK", ReplyError, b"1", ReplyError, ReplyError, b"1", 2, ReplyError, b"2", b"end"]
    for _ in range(50):
        for command in commands:
            wire.send(*command)
    for _ in range(50):
        for command, value in zip(commands, wanted):
            got = wire.read_value()
            assert (isinstance(got, ReplyError) if value is ReplyError else got == value), command


def test_too_large_value_hurts_only_its_sender(new_stage):
    """The commands before it are answered, then an error, then the connection closes."""
    stage = new_stage(options=["--max-bulk", "1MiB", "--query-limit", "2MiB"],
                      redis_options=["--proto-max-bulk-len", "1mb"])
    other = stage.wire()
    other.ask("SET", "other", "kept")
    wire = stage.wire()
    for name in (b"a", b"b"):
        wire.send("SET", name, name)
    other.send("GET", "other")
    wire.send_bytes(b"*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$%d\r\n" % (2 * MIB))
    assert wire.read() == b"OK"
    assert wire.read() == b"OK"
    assert isinstance(wire.read_value(), ReplyError)
    assert wire.closed_by_peer()
    assert other.read() == b"kept"
    assert other.ask("MGET", "a", "b", "c") == [b"a", b"b", None]


@pytest.mark.parametrize("seed", range(6))
def test_pipelined_commands_of_one_key_keep_their_order(new_stage, seed):
    """One client writes, others keep the keys hot: each reply is the one its order demands."""
    stage = new_stage(shards=3)
    rng = random.Random(seed)
    keys = [f"order:{number}".encode() for number in range(5)]
    done = threading.Event()

    def read_along():
        wire = stage.wire()
        while not done.is_set():
            for key in keys * 10:
                wire.send("GET", key)
            for _ in keys * 10:
                wire.read()

    readers = [threading.Thread(target=read_along) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        wire, model = stage.wire(), Model()
        until = time.monotonic() + (3 if stage.tier else 1)
        while time.monotonic() < until:
            sent = [random_command(rng, keys) for _ in range(rng.choice([2, 10, 300]))]
            for command in sent:
                wire.send(*command)
            for position, command in enumerate(sent):
                wanted = model.apply(*command)
                assert wire.read_value() == wanted, f"{command} at {position} of {sent[:10]}"
    finally:
        done.set()
        for reader in readers:
            reader.join()


def test_a_copy_does_not_overtake_an_earlier_command(new_stage):
    """MGET goes to the shard, slowly; the GET behind it must not see less than it did."""
    stage = new_stage()
    wire = stage.wire()
    wire.ask("SET", "k", 0)
    direct = stage.shard_of("k")
    for number in range(1, 16):
        stage.heat("k", seconds=0.3 if number > 1 else 1.0)
        for shard in stage.shards:
            shard.relay.delay_s = 0.1
        wire.send("MGET", "k", "k")
        wire.send("GET", "k")
        time.sleep(0.03)
        direct.ask("SET", "k", number)
        earlier, later = wire.read()[0], wire.read()
        assert int(later) >= int(earlier)
        for shard in stage.shards:
            shard.relay.delay_s = 0.0


HOSTILE = {
    "bulk length near 2^31": b"*2\r\n$3\r\nGET\r\n$2147483645\r\n",
    "bulk length over 2^63": b"*2\r\n$3\r\nGET\r\n$99999999999999999999\r\n",
    "negative bulk length": b"*2\r\n$3\r\nGET\r\n$-5\r\n",
    "null as argument": b"*2\r\n$3\r\nGET\r\n$-1\r\n",
    "array length over 2^63": b"*99999999999999999999\r\n",
    "array length, not a number": b"*abc\r\n",
    "no bulk string": b"*1\r\n:5\r\n",
    "nested array": b"*1\r\n*1\r\n$4\r\nPING\r\n",
    "no end to the length": b"*" + b"1" * 100_000,
    "no end to the line": b"A" * 200_000,
    "quote without end": b'SET a "b\r\n',
    "zeros": b"\0" * 70_000,
}
# What may be the beginning of something, and what redis-server answers in its own way.
ODD = {
    "array length": b"*999999999\r\n",
    "TLS hello": bytes.fromhex("16030100c6010000c20303") + b"x" * 200,
    "HTTP": b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_touch_nobody_else(new_stage, name):
    """What no command can begin with: an error, then the end of that connection."""
    stage = new_stage()
    other = stage.wire()
    other.ask("SET", "other", "kept")
    # An end with input unread may take the error along.
    lost = ConnectionError if len(HOSTILE[name]) > 60_000 else ()
    with PeakMemory(stage.pid) as memory:
        for _ in range(20):
            wire = stage.wire(timeout_s=3)
            with contextlib.suppress(lost):
                wire.send_bytes(HOSTILE[name])
                reply = wire.read_value()
                assert isinstance(reply, ReplyError) and "Protocol error" in str(reply), reply
            assert wire.closed_by_peer()
        assert other.ask("GET", "other") == b"kept"
    assert memory.growth < 64 * MIB and memory.reserved < 256 * MIB


@pytest.mark.parametrize("name", ODD)
def test_odd_bytes_touch_nobody_else(new_stage, name):
    stage = new_stage()
    other = stage.wire()
    other.ask("SET", "other", "kept")
    with PeakMemory(stage.pid) as memory:
        wires = [stage.wire(timeout_s=0.2) for _ in range(20)]
        for wire in wires:
            wire.send_bytes(ODD[name])
        for wire in wires:
            with contextlib.suppress(ConnectionError, TimeoutError):
                assert isinstance(wire.read_value(), ReplyError)
            assert other.ask("GET", "other") == b"kept"
    assert memory.growth < 64 * MIB and memory.reserved < 256 * MIB


def test_empty_requests_are_passed_over(new_stage):
    wire = new_stage().wire()
    for nothing in (b"*0\r\n", b"*-1\r\n", b"\r\n", b"   \r\n", b"\n"):
        wire.send_bytes(nothing + b"*1\r\n$4\r\nPING\r\n")
        assert wire.read() == b"PONG", nothing


def test_every_cut_of_a_message(new_stage):
    """A message in two packets gives what it gives in one; half of one hurts nobody."""
    stage = new_stage(shards=2)
    message = (b"*3\r\n$3\r\nSET\r\n$3\r\ncut\r\n$6\r\n\r\n*1\r\n\r\n"
               b"*4\r\n$4\r\nMGET\r\n$3\r\ncut\r\n$0\r\n\r\n$5\r\nother\r\nPING hello\r\n"
               b"*2\r\n$4\r\nECHO\r\n$4\r\nlast\r\n")
    wanted = [b"OK", [b"\r\n*1\r\n", None, None], b"hello", b"last"]
    wire = stage.wire()
    for at in range(1, len(message)):
        wire.send_bytes(message[:at])
        time.sleep(0.001)
        wire.send_bytes(message[at:])
        assert [wire.read() for _ in wanted] == wanted, f"cut at {at}"
        half = stage.wire()
        half.send_bytes(message[:at])
        half.link.close()
        half.reader.close()
    wire.send_bytes(b"".join(message for _ in range(3)))
    assert [wire.read() for _ in wanted * 3] == wanted * 3


def test_every_cut_of_a_reply(new_stage):
    """What the shard sends arrives a byte at a time: pushes and replies stay apart."""
    stage = new_stage()
    wire = stage.wire()
    wire.ask("SET", "k", "start")
    stage.heat("k", seconds=1)
    direct = stage.shard_of("k")
    for shard in stage.shards:
        shard.relay.chunk = 1
    for number in range(100):
        value = b"\r\n$3\r\nfoo\r\n>2\r\n%d" % number
        direct.ask("SET", f"by:{number % 3}", number)
        direct.ask("SET", "k", value)
        ask_until(wire, value, "GET", "k", timeout_s=1)
        for _ in range(30):
            wire.send("GET", "k")
        wire.send("MGET", "k", "none")
        wire.send("HGETALL", "none")
        assert [wire.read() for _ in range(30)] == [value] * 30
        assert wire.read() == [value, None]
        assert wire.read() == []
    if stage.tier:
        assert stage.metric("ballast_shard_disconnects_total") == 0


@pytest.mark.parametrize("hot", [False, True])
def test_empty_keys_and_values(new_stage, hot):
    stage = new_stage(shards=2)
    wire = stage.wire()

    def write(*command):
        """A read follows at once; what the shard tells of the write comes too late for it."""
        for shard in stage.shards:
            shard.relay.push_delay_s = 0.2
        written = wire.ask(*command)
        read = wire.ask("GET", command[1])
        for shard in stage.shards:
            shard.relay.push_delay_s = 0.0
        return written, read

    for key in (b"", b"{}", b"\0", b"\r\n"):
        for value in (b"", b"x", b"", b"\r\n"):
            assert write("SET", key, value) == (b"OK", value)
            if hot:
                stage.heat(key, seconds=0.7)
            assert wire.ask("GET", key) == value
            assert wire.ask("MGET", key, "none", key) == [value, None, value]
            assert wire.ask("STRLEN", key) == len(value)
            assert wire.ask("EXISTS", key, key) == 2
        assert write("DEL", key) == (1, None)


def test_pushes_between_replies(new_stage):
    """A RESP3 subscriber that also asks: pushes at any place, replies in order."""
    stage = new_stage(shards=2)
    wire, publisher = stage.wire(), stage.wire()
    assert isinstance(wire.ask("HELLO", 3), dict)
    assert isinstance(wire.ask("SUBSCRIBE", "news"), Push)
    wire.ask("SET", "k", "v")
    pushes = 0
    for turn in range(100):
        for number in range(10):
            wire.send("GET", "k")
            wire.send("ECHO", f"{turn}:{number}")
            publisher.send("PUBLISH", "news", f"{turn}:{number}")
        wanted = [value for number in range(10) for value in (b"v", f"{turn}:{number}".encode())]
        while wanted:
            got = wire.read()
            if isinstance(got, Push):
                assert got[:2] == [b"message", b"news"]
                pushes += 1
            else:
                assert got == wanted.pop(0)
        for _ in range(10):
            assert publisher.read() == 1
    while pushes < 1000:
        assert isinstance(wire.read(), Push)
        pushes += 1
    assert wire.silent(0.1)


def test_pushes_never_within_a_reply(new_stage):
    """A large reply arrives piece by piece while messages come: they wait for its end."""
    stage = new_stage()
    wire, publisher = stage.wire(timeout_s=20), stage.wire()
    wire.ask("HELLO", 3)
    wire.ask("SUBSCRIBE", "news")
    large = random.Random(1).randbytes(2 * MIB)
    publisher.ask("SET", "large", large)
    for shard in stage.shards:
        shard.relay.chunk = 16_384
    pushes = 0
    for turn in range(20):
        wire.send("GET", "large")
        wire.send("ECHO", turn)
        for _ in range(50):
            publisher.ask("PUBLISH", "news", "message")
        wanted = [large, b"%d" % turn]
        while wanted:
            got = wire.read()
            if isinstance(got, Push):
                pushes += 1
            else:
                assert got == wanted.pop(0)
    while pushes < 1000:
        assert isinstance(wire.read(), Push)
        pushes += 1


def test_flushall_inside_a_transaction(new_stage):
    stage = new_stage()
    wire, other = stage.wire(), stage.wire()
    for turn in range(5):
        wire.ask("SET", "k", turn)
        stage.heat("k", seconds=0.7)
        # The tier has to know by itself: the shard tells it too late.
        for shard in stage.shards:
            shard.relay.push_delay_s = 0.2
        for command in (("MULTI",), ("GET", "k"), ("FLUSHALL",), ("GET", "k"), ("EXEC",)):
            wire.send(*command)
        assert [wire.read() for _ in range(4)] == [b"OK"] + [b"QUEUED"] * 3
        assert wire.read() == [b"%d" % turn, b"OK", None]
        assert other.ask("GET", "k") is None
        for shard in stage.shards:
            shard.relay.push_delay_s = 0.0


def startup_packets():
    hello = encode("HELLO", 3, "AUTH", "default", "secret")
    setinfo = (encode("CLIENT", "SETINFO", "LIB-NAME", "x")
               + encode("CLIENT", "SETINFO", "LIB-VER", 1))
    ping = encode("PING")
    # Before AUTH such an argument is refused.
    large = encode("ECHO", "x" * 20_000)
    return {
        "hello first": (hello + setinfo + ping, [dict, (bytes, ReplyError), (bytes, ReplyError),
                                                 bytes]),
        "large argument": (hello + large + ping, [dict, bytes, bytes]),
        "auth first": (encode("AUTH", "secret") + encode("HELLO", 3) + setinfo + ping,
                       [bytes, dict, (bytes, ReplyError), (bytes, ReplyError), bytes]),
        "info": (encode("hello", "3", "auth", "default", "secret") + encode("info") + ping,
                 [dict, bytes, bytes]),
        "no password first": (ping + encode("AUTH", "wrong") + encode("AUTH", "secret") + ping,
                              [ReplyError, ReplyError, bytes, bytes]),
    }


@pytest.mark.parametrize("name", startup_packets())
def test_startup_in_one_packet(new_stage, name):
    stage = new_stage(env={"BALLAST_PASSWORD": "secret"})
    if not stage.tier:
        Wire(stage.shards[0].port).ask("CONFIG", "SET", "requirepass", "secret")
    packet, wanted = startup_packets()[name]
    for at in [*range(0, min(len(packet), 300), 3), len(packet) - 1]:
        wire = stage.wire()
        wire.send_bytes(packet[:at])
        if at:
            time.sleep(0.001)
        wire.send_bytes(packet[at:])
        for kind in wanted:
            assert isinstance(wire.read_value(), kind), f"cut at {at}"
        assert wire.ask("PING") == b"PONG"


def test_shard_down_fails_its_own_keys_only(new_stage):
    skip_without_tier("it has no second shard")
    stage = new_stage(shards=2, options=["--shard-timeout", "300ms"])
    wire = stage.wire()
    names = [f"k{number}" for number in range(50)]
    for name in names:
        wire.ask("SET", name, name)
    down = stage.shards[0]
    its = {name for name in names if Wire(down.port).ask("EXISTS", name)}
    down.server.kill()
    time.sleep(0.5)
    for name in names:
        if name in its:
            with pytest.raises(ReplyError):
                wire.ask("GET", name)
        else:
            assert wire.ask("GET", name) == name.encode()
            assert wire.ask("SET", name, name) == b"OK"
    down.server.start()
    until = time.monotonic() + 10
    back = sorted(its)[0]
    while isinstance(got := (wire.send("SET", back, "x"), wire.read_value())[1], ReplyError):
        assert time.monotonic() < until, got
        time.sleep(0.05)
    assert wire.ask("GET", back) == b"x"
