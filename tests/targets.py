# SPDX-License-Identifier: Apache-2.0
"""What the client tests run against: a tier, or with BALLAST_TEST_TARGET=redis a stock
redis-server."""

import functools
import os

import pytest
from harness import RedisServer, Tier, ballast_binary, run


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
