# SPDX-License-Identifier: Apache-2.0
"""Debian's python3-redis against the target."""

import threading
import time

import pytest
import redis


@pytest.fixture
def client(target):
    one = redis.Redis(port=target.port, socket_timeout=20)
    one.flushall()
    yield one
    one.close()


def test_values(client):
    assert client.set("k", b"\x00\xff", ex=100)
    assert client.get("k") == b"\x00\xff"
    assert 98 <= client.ttl("k") <= 100
    assert client.set("", "") and client.get("") == b""
    assert client.hset("h", mapping={"a": 1, "b": 2.5}) == 2
    assert client.hgetall("h") == {b"a": b"1", b"b": b"2.5"}
    assert client.zadd("z", {"x": 1, "y": 2}) == 2
    assert client.zrange("z", 0, -1, withscores=True) == [(b"x", 1.0), (b"y", 2.0)]
    entry = client.xadd("s", {"f": "v"})
    assert client.xread({"s": "0"}) == [[b"s", [(entry, {b"f": b"v"})]]]
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.lpush("k", 1)


def test_pipeline_without_transaction(client):
    with client.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"p{number}", number).get(f"p{number}").incr("count")
        replies = pipe.execute()
    assert replies[1::3] == [b"%d" % number for number in range(1000)]
    assert replies[2::3] == list(range(1, 1001))


def test_transaction(client):
    with client.pipeline(transaction=True) as pipe:
        assert pipe.set("{t}a", 1).incr("{t}a").get("{t}a").execute() == [True, 2, b"2"]
        pipe.set("{t}s", "text").incr("{t}s").set("{t}after", 1)
        with pytest.raises(redis.ResponseError, match="not an integer"):
            pipe.execute()
    assert client.get("{t}after") == b"1"


def test_optimistic_locking(client, target):
    other = redis.Redis(port=target.port)
    with client.pipeline() as pipe:
        pipe.watch("{w}n")
        other.set("{w}n", "theirs")
        pipe.multi()
        pipe.set("{w}n", "mine")
        with pytest.raises(redis.WatchError):
            pipe.execute()
        pipe.reset()
        pipe.watch("{w}n")
        pipe.multi()
        assert pipe.append("{w}n", "!").execute() == [7]
    other.close()


def test_counter_under_contention(target):
    """Lost updates would show: every increment is a WATCH, a GET and a SET in MULTI."""
    def work():
        with redis.Redis(port=target.port, socket_timeout=20) as one:
            for _ in range(25):
                one.transaction(add_one, "{c}n")

    def add_one(pipe):
        now = int(pipe.get("{c}n") or 0)
        pipe.multi()
        pipe.set("{c}n", now + 1)

    redis.Redis(port=target.port).delete("{c}n")
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert redis.Redis(port=target.port).get("{c}n") == b"100"


def test_subscriptions(client):
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("news")
    listener.psubscribe("w*")
    assert listener.get_message(timeout=5) is None and listener.get_message(timeout=5) is None
    assert client.publish("news", "a") == 1
    assert client.publish("weather", b"\x00") == 1
    got = [next_message(listener) for _ in range(2)]
    assert [(one["type"], one["channel"], one["data"]) for one in got] == [
        ("message", b"news", b"a"), ("pmessage", b"weather", b"\x00")]
    listener.unsubscribe("news")
    deadline = time.monotonic() + 10
    while client.publish("news", "b"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert client.publish("weather", "c") == 1
    assert next_message(listener)["data"] == b"c"
    listener.close()


def next_message(listener):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        one = listener.get_message(timeout=1)
        if one:
            return one
    raise AssertionError("no message")


def test_blocking(client, target):
    started = time.monotonic()
    assert client.blpop("{q}none", timeout=1) is None
    assert 0.9 < time.monotonic() - started < 5
    feeder = threading.Timer(0.3, lambda: redis.Redis(port=target.port).rpush("{q}b", "job"))
    feeder.start()
    assert client.blpop(["{q}a", "{q}b"], timeout=10) == (b"{q}b", b"job")
    feeder.join()
    feeder = threading.Timer(0.3, lambda: redis.Redis(port=target.port).xadd("st", {"f": "v"}))
    feeder.start()
    assert client.xread({"st": "$"}, block=10000)[0][0] == b"st"
    feeder.join()


def test_scripts(client):
    script = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert script(keys=["n"], args=[5]) == 5
    client.script_flush()
    # The library meets NOSCRIPT, loads and asks again.
    assert script(keys=["n"], args=[5]) == 10
    assert client.eval("return {1, 'two', false}", 0) == [1, b"two", None]


def test_big_value(client):
    big = b"0123456789abcdef" * (4 << 20)
    assert client.set("big", big)
    assert client.get("big") == big
    client.delete("big")


def test_scan_and_connection_commands(client):
    client.mset({f"k{number}": number for number in range(500)})
    assert sorted(client.scan_iter("k*", count=50)) == sorted(b"k%d" % n for n in range(500))
    assert client.dbsize() == 500
    assert client.client_setname("py") and client.client_getname() == "py"
    assert client.client_id() in [int(one["id"]) for one in client.client_list()]
    assert client.info()["redis_version"]
    assert client.echo("x") == b"x" and client.time()[0] > 1_700_000_000
    assert client.config_get("maxmemory*") is not None


def test_reconnects_after_the_server_was_killed(new_target):
    target = new_target()
    with redis.Redis(port=target.port, socket_timeout=5) as client:
        client.set("k", "v")
        target.front.kill()
        with pytest.raises(redis.ConnectionError):
            client.get("k")
        target.front.start()
        assert client.get("k") == (b"v" if target.kind == "tier" else None)
