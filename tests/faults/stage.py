# SPDX-License-Identifier: Apache-2.0
"""What the fault tests stand on: a tier whose links to its shards can be broken.

BALLAST_TEST_TARGET=redis puts a stock server behind the same relays instead: what does not pass
there is a fault of the test.
"""

import contextlib
import json
import os
import pathlib
import random
import subprocess
import tempfile
import threading
import time
import urllib.request

import pytest
from harness import ROOT, RedisServer, Tier, ballast_binary, ping, run, wait_until
from relay import Relay
from wire import ReplyError, Wire


def target_kind():
    return os.environ.get("BALLAST_TEST_TARGET", "tier")


class StageShard:
    """A redis-server as the tier sees it: through a relay, or not."""

    def __init__(self, server, relayed):
        self.server = server
        self.relay = Relay(server.port) if relayed else None
        self.address = self.relay.address if relayed else server.address
        self.port = server.port  # past the relay and the tier

    def close(self):
        if self.relay:
            self.relay.close()
        self.server.close()


class Stage:
    """Shards behind relays with a tier in front; `port` is where clients connect."""

    def __init__(self, shards=1, spines=2, options=(), redis_options=(), env=None,
                 relayed=True):
        self.kind = target_kind()
        self.tier = None
        self.shards = []
        try:
            for number in range(shards if self.kind == "tier" else 1):
                server = RedisServer(*redis_options, name=f"shard{number}")
                self.shards.append(StageShard(server, relayed))
            if self.kind == "tier":
                self.tier = Tier([[shard] for shard in self.shards], spines=spines,
                                 options=options, env=env)
        except BaseException:
            self.close()
            raise
        self.port = (self.tier.port if self.tier
                     else int(self.shards[0].address.rpartition(":")[2]))

    @property
    def pid(self):
        """Of the process whose time and memory are measured."""
        return self.tier.pid if self.tier else self.shards[0].server.pid

    def wire(self, timeout_s=10.0):
        return Wire(self.port, timeout_s)

    def shard_of(self, key):
        """A wire to the shard that holds a key which is there."""
        for shard in self.shards:
            direct = Wire(shard.port)
            if direct.ask("EXISTS", key):
                return direct
        raise AssertionError(f"{key} is on no shard")

    def heat(self, *keys, seconds=1.5):
        """Reads keys until any cache that takes them has had the time to."""
        wire = self.wire()
        until = time.monotonic() + (seconds if self.tier else 0.05)
        while time.monotonic() < until:
            for _ in range(20):
                for key in keys:
                    wire.send("GET", key)
            for _ in range(20 * len(keys)):
                wire.read_value()

    def hot_share(self):
        """Of all reads so far, how many a copy answered; nothing with a stock server."""
        return hot_share([self.tier.admin_port]) if self.tier else None

    def metric(self, name):
        return metric(self.tier.admin_port, name)

    def is_alive(self):
        return ping(self.port)

    def close(self):
        if self.tier:
            self.tier.close()
        for shard in self.shards:
            shard.close()


def skip_without_tier(why):
    if target_kind() != "tier":
        pytest.skip(f"a stock server stands in for the tier: {why}")


def need_program(*roles):
    """Skips unless the program is there and can `ballast cache ROLE`."""
    if target_kind() != "tier":
        return
    if not ballast_binary().exists():
        pytest.skip(f"{ballast_binary()} is not built: ./dev build")
    for role in roles:
        if run([ballast_binary(), "cache", role, "--help"], check=False).returncode != 0:
            pytest.skip(f"{ballast_binary()} has no `cache {role}`")


def histories_binary():
    """ballast-histories beside the program under test, else of the release build."""
    for folder in (ballast_binary().parent, ROOT / "build/release"):
        if (folder / "ballast-histories").exists():
            return folder / "ballast-histories"
    return pytest.skip("ballast-histories is not built: ./dev build")


class Histories:
    """ballast-histories as a running process; wait() gives its result."""

    def __init__(self, endpoints, **options):
        argv = [str(histories_binary()), "--json", "--endpoints", ",".join(endpoints)]
        for name, value in options.items():
            argv += ["--" + name.replace("_", "-"), str(value)]
        self.argv = argv
        # Not a pipe: nobody reads while it runs, and many violations would fill it.
        self.output = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(argv, stdout=self.output, stderr=subprocess.DEVNULL)

    def running(self):
        return self.child.poll() is None

    def wait(self, timeout_s=120):
        self.child.wait(timeout_s)
        self.output.seek(0)
        output = self.output.read()
        assert output, f"$ {' '.join(self.argv)}\nstatus {self.child.returncode}, no output"
        result = json.loads(output)
        result["argv"] = " ".join(self.argv)
        return result

    def close(self):
        if self.running():
            self.child.kill()
        self.child.wait()
        self.output.close()


def assert_no_violation(result, operations=1):
    assert not result["violations"], "\n".join([result["argv"], *result["violations"][:5]])
    assert result["operations"] >= operations, result


def metric(admin_port, name):
    """The sum of the rows of one metric."""
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/metrics", timeout=5) as reply:
        rows = [row.rpartition(" ")[::2] for row in reply.read().decode().splitlines()]
    return sum(float(value) for row, value in rows if row.partition("{")[0] == name)


def hot_share(admin_ports):
    """Of the reads through the routers with these admin ports, how many a copy answered."""
    hot = sum(metric(port, "ballast_reads_hot_total") for port in admin_ports)
    cold = sum(metric(port, "ballast_reads_cold_total") for port in admin_ports)
    return hot / max(1, hot + cold)


def cpu_seconds(pid):
    """Time on a processor of all threads of a process."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return total / 1e9


def resident_bytes(pid):
    return _memory_bytes(pid)[1]


def _memory_bytes(pid):
    """Address space taken, and how much of it is in memory."""
    pages = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return int(pages[0]) * 4096, int(pages[1]) * 4096


class PeakMemory:
    """The largest resident size of a process inside a with block, looked at every 10 ms.

    `reserved` is by how much the address space grew: room made and not used yet.
    """

    def __init__(self, pid):
        self.pid = pid
        self.start_reserved, self.start = _memory_bytes(pid)
        self.peak_reserved, self.peak = self.start_reserved, self.start
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def growth(self):
        return self.peak - self.start

    @property
    def reserved(self):
        return self.peak_reserved - self.start_reserved

    def _look(self):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            reserved, resident = _memory_bytes(self.pid)
            self.peak_reserved = max(self.peak_reserved, reserved)
            self.peak = max(self.peak, resident)

    def _watch(self):
        while not self._done.wait(0.01):
            self._look()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()
        self._look()


class Model:
    """One Redis in a dictionary, for exact answers to one connection's commands."""

    def __init__(self):
        self.data = {}

    def apply(self, *command):
        name, key, *rest = command
        if name == "SET":
            self.data[key] = rest[0]
            return b"OK"
        if name == "GET":
            return self.data.get(key)
        if name == "DEL":
            return int(self.data.pop(key, None) is not None)
        if name == "APPEND":
            self.data[key] = self.data.get(key, b"") + rest[0]
            return len(self.data[key])
        if name == "STRLEN":
            return len(self.data.get(key, b""))
        if name == "EXISTS":
            return int(key in self.data)
        if name == "MGET":
            return [self.data.get(one) for one in (key, *rest)]
        raise ValueError(name)


def random_command(rng: random.Random, keys):
    """A command over a few keys, as Model knows them."""
    key = rng.choice(keys)
    value = b"%d" % rng.getrandbits(40)
    name = rng.choice(["SET", "SET", "GET", "GET", "GET", "DEL", "APPEND", "STRLEN", "EXISTS",
                       "MGET"])
    if name in ("SET", "APPEND"):
        return name, key, value
    if name == "MGET":
        return (name, *[rng.choice(keys) for _ in range(3)])
    return name, key


def ask_until(wire, wanted, *command, timeout_s=5.0):
    """Asks until the reply is the wanted one; errors on the way are borne."""
    def look():
        try:
            return wire.ask(*command) == wanted
        except ReplyError:
            return False
    wait_until(look, timeout_s, f"{command} giving {wanted}")
