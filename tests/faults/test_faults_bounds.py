# SPDX-License-Identifier: Apache-2.0
"""Faults seen in other proxies, tried here: work that grows too fast, memory without bound."""

import resource
import socket
import threading
import time

import pytest
from harness import encode
from stage import PeakMemory, cpu_seconds, resident_bytes, skip_without_tier

MIB = 1 << 20


def _cost_of(stage, wire, request, read_replies):
    """CPU seconds of the tier for a request, the least of five runs."""
    costs = []
    for _ in range(5):
        before = cpu_seconds(stage.pid)
        sender = threading.Thread(target=wire.send_bytes, args=(request,))
        sender.start()
        read_replies()
        sender.join()
        costs.append(cpu_seconds(stage.pid) - before)
    return min(costs)


def _keys(count):
    return [b"key:%d" % number for number in range(count)]


@pytest.mark.parametrize("form", ["mget", "pipeline", "del"])
def test_many_keys_cost_linear_time(new_stage, form):
    """The tier's CPU time for 100,000 keys is at most 6 times ten times that for 10,000: what no
    cache holds any more costs up to five times as much, but a quadratic cost a hundred times."""
    stage = new_stage(shards=4, relayed=False)
    wire = stage.wire(timeout_s=60)
    keys = _keys(100_000)
    pairs = [word for key in keys for word in (key, key)]
    for start in range(0, len(pairs), 20_000):
        assert wire.ask("MSET", *pairs[start:start + 20_000]) == b"OK"

    def cost(count):
        some = keys[:count]
        if form == "pipeline":
            def read():
                for key in some:
                    assert wire.read() == key
            return _cost_of(stage, wire, b"".join(encode("GET", key) for key in some), read)
        if form == "del":
            gone = [b"gone:%d" % number for number in range(count)]

            def read_none():
                assert wire.read() == 0
            return _cost_of(stage, wire, encode("DEL", *gone), read_none)

        def read_all():
            assert wire.read() == some
        return _cost_of(stage, wire, encode("MGET", *some), read_all)

    small, large = cost(10_000), cost(100_000)
    assert large <= 6 * 10 * small, f"10,000: {small:.4f} s, 100,000: {large:.4f} s"


def test_mget_of_any_size_is_right(new_stage):
    stage = new_stage(shards=3, relayed=False)
    wire = stage.wire(timeout_s=30)
    keys = _keys(100_000)
    for start in range(0, len(keys), 10_000):
        pairs = [word for key in keys[start:start + 10_000:2] for word in (key, key)]
        wire.ask("MSET", *pairs)
    for count in (1, 2, 3, 10, 999, 1000, 1024, 10_000, 65_535, 65_536, 100_000):
        wanted = [key if number % 2 == 0 else None for number, key in enumerate(keys[:count])]
        assert wire.ask("MGET", *keys[:count]) == wanted
        assert wire.ask("EXISTS", *keys[:count]) == (count + 1) // 2


def _worst_wait(wire, seconds, done=lambda: False):
    """The longest that a small read took; asked again and again for some time, or until done."""
    worst = 0.0
    until = time.monotonic() + seconds
    while time.monotonic() < until and not done():
        before = time.monotonic()
        assert wire.ask("GET", "small") == b"value"
        worst = max(worst, time.monotonic() - before)
        time.sleep(0.02)
    return worst


def test_clients_that_do_not_read_cost_bounded_memory(new_stage):
    """Clients that ask for more than they may and read nothing are closed."""
    skip_without_tier("redis-server closes such clients, but only above 512 MB")
    # The limit over all clients is out of the way, and a busy machine is no fault.
    stage = new_stage(relayed=False, options=["--client-output-limit", "64MiB",
                                              "--output-memory", "4GiB", "--shard-timeout", "20s"])
    good = stage.wire(timeout_s=30)
    loader = stage.wire(timeout_s=60)
    loader.ask("SET", "large", b"x" * (32 * MIB))
    good.ask("SET", "small", "value")
    # So many values of that size keep the shard busy for a while whoever asks.
    readers = [threading.Thread(target=lambda: stage.wire(timeout_s=60).ask("GET", "large"))
               for _ in range(16)]
    for reader in readers:
        reader.start()
    usual = _worst_wait(good, 60, lambda: not any(reader.is_alive() for reader in readers))
    slow = [stage.wire(timeout_s=30) for _ in range(4)]
    with PeakMemory(stage.pid) as memory:
        for wire in slow:
            wire.send_bytes(encode("GET", "large") * 4)
        worst = _worst_wait(good, 6)
    assert memory.growth < (4 * 64 + 4 * 32 + 64) * MIB, f"{memory.growth / MIB:.0f} MiB"
    assert worst < 2.0 + 2 * usual, f"{worst:.2f} s, with clients that read {usual:.2f} s"


def test_clients_that_do_not_read_share_the_output_memory(new_stage):
    """None exceeds its own limit; together they do, and the fattest are closed."""
    skip_without_tier("redis-server has no such limit over all clients")
    stage = new_stage(relayed=False, options=["--client-output-limit", "128MiB",
                                              "--output-memory", "256MiB",
                                              "--shard-timeout", "20s"])
    loader = stage.wire(timeout_s=60)
    loader.ask("SET", "large", b"x" * (48 * MIB))
    slow = [stage.wire(timeout_s=30) for _ in range(12)]
    with PeakMemory(stage.pid) as memory:
        for wire in slow:
            wire.send("GET", "large")
            time.sleep(0.1)
        pids = [stage.pid, stage.shards[0].server.pid]
        used = -1.0
        while sum(map(cpu_seconds, pids)) > used + 0.02:  # until all that comes has come
            used = sum(map(cpu_seconds, pids))
            time.sleep(1.5)
    assert memory.growth < (256 + 48 + 64) * MIB, f"{memory.growth / MIB:.0f} MiB"
    whole = 0
    for wire in slow:
        try:
            assert wire.read() == b"x" * (48 * MIB)
            whole += 1
        except ConnectionError:
            pass
    assert 4 <= whole <= 6, f"{whole} of the clients were left"
    assert stage.wire().ask("GET", "large") == b"x" * (48 * MIB)


def test_unanswered_commands_cost_bounded_memory(new_stage):
    """A shard that is silent: clients that go on sending are not read any further."""
    skip_without_tier("a stock server does not wait for a shard")
    stage = new_stage(options=["--shard-timeout", "8s"])
    loader = stage.wire()
    loader.ask("SET", "k", "v")
    wires = [stage.wire(timeout_s=20) for _ in range(8)]
    stage.shards[0].relay.hold()
    command = encode("SET", "k", b"x" * MIB)
    left = {wire: memoryview(command) for wire in wires}
    sent = 0
    with PeakMemory(stage.pid) as memory:
        for wire in wires:
            wire.link.setblocking(False)
        until = time.monotonic() + 3
        while time.monotonic() < until:
            for wire in wires:
                try:
                    size = wire.link.send(left[wire])
                except BlockingIOError:
                    time.sleep(0.001)
                    continue
                left[wire] = left[wire][size:] or memoryview(command)
                sent += size
    # Whole commands were taken, up to the limit of each client.
    assert sent > 8 * 8 * MIB, f"{sent / MIB:.0f} MiB"
    assert memory.growth < 8 * 24 * MIB, f"{memory.growth / MIB:.0f} MiB"


def test_idle_connections_are_cheap(new_stage):
    """10,000 connections that have all asked once: less than 200 MB over an empty tier."""
    skip_without_tier("it is about the tier")
    # One end of each is this process's, the other the tier's, which takes over the limit.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 10_400
    if hard != resource.RLIM_INFINITY and hard < files:
        pytest.skip(f"needs {files} open files, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, files), hard))
    links = []
    try:
        stage = new_stage(options=["--max-clients", "10050"])
        before = resident_bytes(stage.pid)
        stage.wire().ask("SET", "k", b"v" * 1000)
        for _ in range(10_000):
            links.append(socket.create_connection(("127.0.0.1", stage.port), timeout=10))
            links[-1].sendall(encode("GET", "k") + encode("PING"))
        for link in links:
            got = b""
            while not got.endswith(b"+PONG\r\n"):
                got += link.recv(4096)
        grown = resident_bytes(stage.pid) - before
        assert grown < 200_000_000, f"{grown / 1e6:.0f} MB"
    finally:
        for link in links:
            link.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_slow_reader_of_512_mb_gets_it_whole(new_stage):
    """A client that takes 512 MB slowly gets every byte; memory stays below twice the value."""
    # To clear 512 MB takes time.
    stage = new_stage(relayed=False, options=("--shard-timeout", "20s"))
    size = 512 * MIB - 64
    loader = stage.wire(timeout_s=60)
    block = b"0123456789abcdef" * (2 * MIB)
    loader.ask("SETRANGE", "huge", size - 1, "x")  # its full size at once: no growing by copies
    for start in range(0, size, len(block)):
        loader.ask("SETRANGE", "huge", start, block[:min(len(block), size - start)])
    slow, other = stage.wire(timeout_s=60), stage.wire()
    worst = 0.0
    with PeakMemory(stage.pid) as memory:
        slow.send("GET", "huge")
        header = slow.reader.readline()
        assert header == b"$%d\r\n" % size
        left = size + 2
        tail, asked = b"", 0
        while left > 0:
            if left // (32 * MIB) != asked:
                asked = left // (32 * MIB)
                time.sleep(0.05)
                before = time.monotonic()
                other.ask("PING")
                worst = max(worst, time.monotonic() - before)
            data = slow.reader.read1(min(left, MIB))
            assert data, f"closed with {left} bytes to come"
            left -= len(data)
            tail = (tail + data)[-18:]
    assert tail == block[:size % len(block)][-16:] + b"\r\n"
    if stage.tier:
        assert memory.growth < 1100 * MIB, f"{memory.growth / MIB:.0f} MiB"
    assert worst < 2.0
