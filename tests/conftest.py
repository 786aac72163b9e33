# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by every test that needs processes.

BALLAST_TEST_TARGET=redis points the client tests at a stock redis-server instead of a tier: what
does not pass there is a fault of the test.
"""

import functools
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import RedisServer, Tier, ballast_binary, run  # noqa: E402


class Target:
    """Where clients connect: `kind` is "redis" or "tier", `port` a loopback port."""

    def __init__(self, kind, front, shards):
        self.kind = kind
        self.front = front
        self.shards = shards

    @property
    def host(self):
        return "127.0.0.1"

    @property
    def port(self):
        return self.front.port

    def close(self):
        self.front.close()
        for shard in self.shards:
            shard.close()


def target_kind():
    kind = os.environ.get("BALLAST_TEST_TARGET", "tier")
    if kind not in ("redis", "tier"):
        raise pytest.UsageError(f"BALLAST_TEST_TARGET={kind}: must be redis or tier")
    return kind


@functools.cache
def tier_available():
    binary = ballast_binary()
    return binary.exists() and run([binary, "cache", "up", "--help"], check=False).returncode == 0


def make_target(shards=1, spines=2, tier_options=(), redis_options=(), tier_env=None):
    """A stock server, or a tier with one shard a rack, as BALLAST_TEST_TARGET says."""
    if target_kind() == "redis":
        return Target("redis", RedisServer(*redis_options), [])
    if not tier_available():
        pytest.skip(f"{ballast_binary()} is not built, or has no `cache up`: ./dev build")
    servers = []
    try:
        for number in range(shards):
            servers.append(RedisServer(*redis_options, name=f"shard{number}"))
        tier = Tier([[server] for server in servers], spines=spines, options=tier_options,
                    env=tier_env)
    except BaseException:
        for server in servers:
            server.close()
        raise
    return Target("tier", tier, servers)


@pytest.fixture
def new_target():
    """Makes targets for one test and ends them after it."""
    made = []

    def make(**arguments):
        made.append(make_target(**arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def target(request):
    """One target for a module: a stock server, or a tier of three shards and two spines.

    Three shards so that commands over several keys meet the split; keys that a test needs together
    share a hash tag.
    """
    one = make_target(shards=3, spines=2)
    yield one
    failed = request.session.testsfailed
    if failed:
        sys.stderr.write(f"\n{one.kind} output:\n{one.front.output()[-4000:]}\n")
    one.close()


@pytest.fixture
def new_password_target(new_target):
    """Makes a target that asks clients for a password."""
    def make(password):
        if target_kind() == "redis":
            return new_target(redis_options=["--requirepass", password])
        return new_target(tier_env={"BALLAST_PASSWORD": password})

    return make


def pytest_report_header(config):
    del config
    return f"ballast target: {target_kind()}"
