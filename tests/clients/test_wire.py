# SPDX-License-Identifier: Apache-2.0
"""What the client libraries rely on, sent byte by byte: handshakes, order, pushes, limits."""

import os
import resource
import threading
import time

import pytest
from harness import encode
from wire import Push, ReplyError, Wire


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def wire(request, target):
    with Wire(target.port) as link:
        link.protocol = request.param
        if request.param == 3:
            assert link.ask("HELLO", "3")[b"proto"] == 3
        link.ask("FLUSHALL")
        yield link


def second(target, wire):
    link = Wire(target.port)
    if wire.protocol == 3:
        link.ask("HELLO", "3")
    return link


def message(wire):
    """The next published message; under RESP3 it must be a push."""
    value = wire.read()
    assert isinstance(value, Push) == (wire.protocol == 3)
    return list(value)


def test_hello_names_the_protocol(target):
    with Wire(target.port) as link:
        flat = link.ask("HELLO")
        assert dict(zip(flat[::2], flat[1::2]))[b"proto"] == 2
        three = link.ask("HELLO", "3")
        assert three[b"proto"] == 3 and three[b"server"] and three[b"role"] == b"master"
        with pytest.raises(ReplyError, match="^NOPROTO"):
            link.ask("HELLO", "4")
        assert link.ask("HELLO", "2")[0] == b"server"


def test_hello_auth_and_client_setup_in_one_packet(new_password_target):
    target = new_password_target("s3cret")
    with Wire(target.port) as link:
        link.send_bytes(
            encode("HELLO", "3", "AUTH", "default", "s3cret")
            + encode("CLIENT", "SETINFO", "LIB-NAME", "test") + encode("CLIENT", "SETNAME", "probe")
            + encode("CLIENT", "GETNAME") + encode("SET", "k", "v") + encode("GET", "k"))
        assert link.read()[b"proto"] == 3
        # CLIENT SETINFO came with Redis 7.2; an error is a right answer before it.
        setinfo = link.read_value()
        assert setinfo == b"OK" or isinstance(setinfo, ReplyError)
        assert [link.read() for _ in range(4)] == [b"OK", b"probe", b"OK", b"v"]


def test_auth(new_password_target):
    target = new_password_target("s3cret")
    with Wire(target.port) as link:
        for words in (["GET", "k"], ["PING"], ["MULTI"], ["SUBSCRIBE", "c"], ["HELLO", "3"]):
            with pytest.raises(ReplyError, match="^NOAUTH"):
                link.ask(*words)
        with pytest.raises(ReplyError, match="^WRONGPASS"):
            link.ask("AUTH", "wrong")
        with pytest.raises(ReplyError, match="^WRONGPASS"):
            link.ask("AUTH", "nobody", "s3cret")
        with pytest.raises(ReplyError, match="^NOAUTH"):
            link.ask("GET", "k")
        assert link.ask("AUTH", "s3cret") == b"OK"
        assert link.ask("PING") == b"PONG"
        with pytest.raises(ReplyError, match="^WRONGPASS"):
            link.ask("AUTH", "wrong")
        assert link.ask("PING") == b"PONG"
        assert link.ask("RESET") == b"RESET"
        with pytest.raises(ReplyError, match="^NOAUTH"):
            link.ask("PING")
        assert link.ask("AUTH", "default", "s3cret") == b"OK"


def test_auth_lifts_the_limits(new_password_target):
    """Before AUTH a server takes short requests only; after it the connection takes long ones."""
    target = new_password_target("s3cret")
    with Wire(target.port) as link:
        assert link.ask("AUTH", "s3cret") == b"OK"
        assert link.ask("SET", "big", b"x" * 3000000) == b"OK"
        assert link.ask("MSET", *[word for i in range(300) for word in (f"{{t}}{i}", i)]) == b"OK"
    with Wire(target.port) as link:
        link.send_bytes(encode("AUTH", "s3cret") + encode("SET", "big", b"y" * 100000))
        assert [link.read(), link.read()] == [b"OK", b"OK"]
    with Wire(target.port) as link:
        link.send_bytes(b"*2\r\n$4\r\nECHO\r\n$100000\r\n")
        with pytest.raises(ReplyError, match="^ERR Protocol error: unauthenticated bulk length"):
            link.read()


def test_first_commands_after_the_start(new_target):
    """A write that must wait until the tier may write is not overtaken by the read behind it."""
    target = new_target()
    with Wire(target.port) as link:
        for number in range(50):
            link.send_bytes(encode("SET", "k", number) + encode("GET", "k"))
            assert [link.read(), link.read()] == [b"OK", b"%d" % number]


def test_auth_without_a_password_set(target):
    with Wire(target.port) as link:
        with pytest.raises(ReplyError, match="without any password configured"):
            link.ask("AUTH", "anything")
        assert link.ask("AUTH", "default", "anything") == b"OK"


def test_pipeline_keeps_order(wire):
    commands, want = [], []
    for i in range(5000):
        key = f"k{i % 37}"
        commands += [encode("SET", key, i), encode("GET", key), encode("ECHO", i)]
        want += [b"OK", b"%d" % i, b"%d" % i]
    sender = threading.Thread(target=wire.send_bytes, args=(b"".join(commands),))
    sender.start()
    got = [wire.read() for _ in want]
    sender.join(10)
    assert got == want


def test_commands_split_at_every_byte(wire):
    data = encode("SET", "split", "a\r\nb") + encode("GET", "split") + b"PING\r\n"
    for byte in data:
        wire.send_bytes(bytes([byte]))
    assert [wire.read() for _ in range(3)] == [b"OK", b"a\r\nb", b"PONG"]


def test_transaction(wire):
    assert wire.ask("MULTI") == b"OK"
    assert wire.ask("SET", "{t}a", "1") == b"QUEUED"
    assert wire.ask("INCR", "{t}a") == b"QUEUED"
    assert wire.ask("LPUSH", "{t}a", "x") == b"QUEUED"
    ok, two, wrong = wire.ask("EXEC")
    assert (ok, two) == (b"OK", 2) and str(wrong).startswith("WRONGTYPE")
    assert wire.ask("MULTI") == b"OK"
    assert wire.ask("SET", "{t}a", "9") == b"QUEUED"
    assert wire.ask("DISCARD") == b"OK"
    assert wire.ask("GET", "{t}a") == b"2"


def test_transaction_with_an_error_while_queueing(wire):
    assert wire.ask("MULTI") == b"OK"
    with pytest.raises(ReplyError, match="^ERR wrong number of arguments"):
        wire.ask("SET", "{t}a")
    assert wire.ask("SET", "{t}b", "1") == b"QUEUED"
    with pytest.raises(ReplyError, match="^EXECABORT"):
        wire.ask("EXEC")
    assert wire.ask("EXISTS", "{t}b") == 0
    for name in ("EXEC", "DISCARD"):
        with pytest.raises(ReplyError, match=f"^ERR {name} without MULTI"):
            wire.ask(name)


def test_empty_transaction(wire):
    assert wire.ask("MULTI") == b"OK"
    assert wire.ask("EXEC") == []


def test_watch_conflict(target, wire):
    with second(target, wire) as other:
        assert wire.ask("WATCH", "{w}a") == b"OK"
        assert other.ask("SET", "{w}a", "theirs") == b"OK"
        assert wire.ask("MULTI") == b"OK"
        assert wire.ask("SET", "{w}a", "mine") == b"QUEUED"
        assert wire.ask("EXEC") is None
        assert wire.ask("GET", "{w}a") == b"theirs"
        assert wire.ask("WATCH", "{w}a") == b"OK"
        assert wire.ask("UNWATCH") == b"OK"
        assert other.ask("SET", "{w}a", "again") == b"OK"
        assert wire.ask("MULTI") == b"OK"
        assert wire.ask("SET", "{w}a", "mine") == b"QUEUED"
        assert wire.ask("EXEC") == [b"OK"]


def test_subscribe(target, wire):
    with second(target, wire) as publisher:
        wire.send("SUBSCRIBE", "news", "other")
        assert message(wire) == [b"subscribe", b"news", 1]
        assert message(wire) == [b"subscribe", b"other", 2]
        wire.send("PSUBSCRIBE", "ne*")
        assert message(wire) == [b"psubscribe", b"ne*", 3]
        assert publisher.ask("PUBLISH", "news", b"\x00\r\n\xff") == 2
        assert message(wire) == [b"message", b"news", b"\x00\r\n\xff"]
        assert message(wire) == [b"pmessage", b"ne*", b"news", b"\x00\r\n\xff"]
        assert publisher.ask("PUBLISH", "nobody", "x") == 0
        wire.send("UNSUBSCRIBE")
        left = sorted([message(wire), message(wire)], key=lambda one: one[1])
        assert [one[:2] for one in left] == [[b"unsubscribe", b"news"], [b"unsubscribe", b"other"]]
        wire.send("PUNSUBSCRIBE", "ne*")
        assert message(wire) == [b"punsubscribe", b"ne*", 0]
        assert wire.ask("SET", "after", "1") == b"OK"
        assert wire.ask("GET", "after") == b"1"


def test_commands_while_subscribed(wire):
    wire.send("SUBSCRIBE", "c")
    message(wire)
    if wire.protocol == 2:
        assert wire.ask("PING") == [b"pong", b""]
        assert wire.ask("PING", "x") == [b"pong", b"x"]
        with pytest.raises(ReplyError, match="^ERR Can't execute 'get'"):
            wire.ask("GET", "k")
    else:
        assert wire.ask("PING") == b"PONG"
        assert wire.ask("SET", "k", "v") == b"OK"
        assert wire.ask("GET", "k") == b"v"
    wire.send("UNSUBSCRIBE", "c")
    assert message(wire) == [b"unsubscribe", b"c", 0]
    assert wire.ask("PING") == b"PONG"


def test_own_message_comes_to_a_resp3_publisher(target):
    with Wire(target.port) as link:
        link.ask("HELLO", "3")
        link.send("SUBSCRIBE", "mine")
        assert link.read() == [b"subscribe", b"mine", 1]
        link.send("PUBLISH", "mine", "x")
        first, then = link.read(), link.read()
        pushed, count = (first, then) if isinstance(first, Push) else (then, first)
        assert pushed == [b"message", b"mine", b"x"] and count == 1


def test_blocking_pop(target, wire):
    with second(target, wire) as other:
        started = time.monotonic()
        assert wire.ask("BLPOP", "{q}none", "0.2") is None
        assert 0.15 < time.monotonic() - started < 3
        wire.send("BLPOP", "{q}a", "{q}b", "10")
        assert wire.silent(0.2)
        assert other.ask("RPUSH", "{q}b", "job") == 1
        assert wire.read() == [b"{q}b", b"job"]
        wire.send_bytes(encode("BRPOP", "{q}c", "10") + encode("SET", "{q}d", "later")
                        + encode("GET", "{q}d"))
        assert other.ask("GET", "{q}d") is None
        assert other.ask("RPUSH", "{q}c", "x") == 1
        assert [wire.read() for _ in range(3)] == [[b"{q}c", b"x"], b"OK", b"later"]


def test_a_blocked_client_that_leaves_takes_nothing(target, wire):
    with second(target, wire) as gone:
        gone.send("BLPOP", "leave", "0")
        time.sleep(0.2)
    time.sleep(0.3)
    assert wire.ask("RPUSH", "leave", "x") == 1
    assert wire.ask("LRANGE", "leave", "0", "-1") == [b"x"]


def test_scripts(wire):
    assert wire.ask("EVAL", "return {KEYS[1], ARGV[1], 7}", "1", "{s}k", "a") == [b"{s}k", b"a", 7]
    body = "redis.call('SET', KEYS[1], ARGV[1]); return redis.call('GET', KEYS[1])"
    name = "%040x" % 0
    with pytest.raises(ReplyError, match="^NOSCRIPT"):
        wire.ask("EVALSHA", name, "1", "{s}k")
    sha = wire.ask("SCRIPT", "LOAD", body)
    for key in (f"k{number}" for number in range(30)):
        assert wire.ask("EVALSHA", sha, "1", key, "val") == b"val"
        assert wire.ask("GET", key) == b"val"
    assert wire.ask("SCRIPT", "EXISTS", sha, name) == [1, 0]
    with pytest.raises(ReplyError, match="boom"):
        wire.ask("EVAL", "return redis.error_reply('ERR boom')", "0")


def test_big_value(wire):
    wire.link.settimeout(60)
    big = os.urandom(1 << 20) * 64
    assert wire.ask("SET", "big", big) == b"OK"
    assert wire.ask("STRLEN", "big") == len(big)
    assert wire.ask("GET", "big") == big
    assert wire.ask("APPEND", "big", "x") == len(big) + 1
    assert wire.ask("GETRANGE", "big", "-2", "-1") == big[-1:] + b"x"
    assert wire.ask("DEL", "big") == 1


def test_binary_and_empty(wire):
    keys = (b"", b"\x00", b"\r\n", b"\xff\xfe", b"{}", b"{", b"}a{", b"a{}b", bytes(range(256)))
    for key in keys:
        for value in (b"", b"\x00", b"\r\n$5\r\n", bytes(range(256))):
            assert wire.ask("SET", key, value) == b"OK"
            assert wire.ask("GET", key) == value
            assert wire.ask("STRLEN", key) == len(value)
        assert wire.ask("EXISTS", key) == 1
        assert wire.ask("DEL", key) == 1
        assert wire.ask("GET", key) is None


def test_commands_over_keys_of_several_shards(wire):
    keys = [f"m{number}" for number in range(50)]
    pairs = [word for key in keys for word in (key, key.upper())]
    assert wire.ask("MSET", *pairs) == b"OK"
    assert wire.ask("MGET", *keys, "missing") == [key.upper().encode() for key in keys] + [None]
    assert wire.ask("EXISTS", *keys, "missing", keys[0]) == 51
    assert wire.ask("TOUCH", *keys) == 50
    assert wire.ask("DBSIZE") == 50
    assert sorted(wire.ask("KEYS", "m*")) == sorted(key.encode() for key in keys)
    seen, cursor = [], b"0"
    for _ in range(1000):
        cursor, found = wire.ask("SCAN", cursor, "COUNT", "7")
        seen += found
        if cursor == b"0":
            break
    assert cursor == b"0" and set(seen) == {key.encode() for key in keys}
    assert wire.ask("RANDOMKEY") in seen
    assert wire.ask("UNLINK", *keys[:20], "missing") == 20
    assert wire.ask("DEL", *keys) == 30
    assert wire.ask("DBSIZE") == 0


def test_client_commands(target, wire):
    assert wire.ask("CLIENT", "GETNAME") in (None, b"")
    assert wire.ask("CLIENT", "SETNAME", "probe-7") == b"OK"
    assert wire.ask("CLIENT", "GETNAME") == b"probe-7"
    with pytest.raises(ReplyError, match="^ERR Client names cannot contain"):
        wire.ask("CLIENT", "SETNAME", "two words")
    own = wire.ask("CLIENT", "ID")
    with second(target, wire) as other:
        assert other.ask("CLIENT", "ID") > own
        listed = wire.ask("CLIENT", "LIST").decode()
        mine = [line for line in listed.splitlines() if f"id={own} " in line]
        assert len(mine) == 1 and " name=probe-7 " in mine[0] and " addr=127.0.0.1:" in mine[0]
    assert f"id={own} ".encode() in wire.ask("CLIENT", "INFO")


def test_reset(target, wire):
    wire.ask("CLIENT", "SETNAME", "x")
    wire.ask("MULTI")
    wire.ask("SET", "reset", "1")
    assert wire.ask("RESET") == b"RESET"
    with pytest.raises(ReplyError, match="^ERR EXEC without MULTI"):
        wire.ask("EXEC")
    assert wire.ask("CLIENT", "GETNAME") in (None, b"")
    wire.send("SUBSCRIBE", "c")
    wire.read()
    assert wire.ask("RESET") == b"RESET"
    with Wire(target.port) as other:
        assert other.ask("PUBLISH", "c", "x") == 0
    # The protocol is RESP2 again: a null is a null string.
    wire.send("GET", "nothing")
    assert wire.reader.readline() == b"$-1\r\n"


def test_quit(target, wire):
    wire.send_bytes(encode("SET", "q", "1") + encode("QUIT") + encode("SET", "q", "2"))
    assert [wire.read(), wire.read()] == [b"OK", b"OK"]
    assert wire.closed_by_peer()
    with Wire(target.port) as other:
        assert other.ask("GET", "q") == b"1"


def test_select_and_unknown_commands(wire):
    assert wire.ask("SELECT", "0") == b"OK"
    with pytest.raises(ReplyError, match="^ERR "):
        wire.ask("SELECT", "99")
    with pytest.raises(ReplyError, match="(?i)^ERR .*nosuchcommand"):
        wire.ask("NOSUCHCOMMAND", "x")
    with pytest.raises(ReplyError, match="^ERR wrong number of arguments for 'get' command"):
        wire.ask("GET")
    assert wire.ask("PING") == b"PONG"


@pytest.mark.parametrize("data", [
    b"*1\r\n$3x\r\nGET\r\n", b"*x\r\n", b"*1\r\n+GET\r\n", b"*1\r\n$-5\r\n",
    b"*3000000000\r\n", b"*1\r\n$999999999999\r\n"])
def test_a_broken_request_gets_an_error_and_the_connection_ends(target, data):
    with Wire(target.port) as other, Wire(target.port) as link:
        link.send_bytes(data)
        with pytest.raises(ReplyError, match="^ERR Protocol error"):
            link.read()
        assert link.closed_by_peer()
        assert other.ask("PING") == b"PONG"


def test_thousands_of_connections(target):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3000
    if hard != resource.RLIM_INFINITY and hard < wanted + 200:
        pytest.skip(f"only {hard} open files allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted + 200), hard))
    links = []
    try:
        for _ in range(wanted):
            links.append(Wire(target.port, timeout_s=30))
        for number, link in enumerate(links):
            link.send("SET", f"c{number}", number)
        assert all(link.read() == b"OK" for link in links)
        for number, link in enumerate(links):
            link.send("GET", f"c{number}")
        assert all(link.read() == b"%d" % number for number, link in enumerate(links))
    finally:
        for link in links:
            link.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with Wire(target.port) as link:
        assert link.ask("PING") == b"PONG"
