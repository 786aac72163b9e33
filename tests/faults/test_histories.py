# SPDX-License-Identifier: Apache-2.0
"""ballast-histories itself: it passes a right server and finds a wrong one."""

import pytest
from harness import RedisServer, run, wait_until
from stage import assert_no_violation, histories_binary
from wire import Wire


def test_one_server_is_linearizable(new_histories):
    with RedisServer() as server:
        result = new_histories([server.address], operations=200_000, seconds=60, flush_every=200,
                               bypass=server.address).wait()
        assert_no_violation(result, operations=200_000)
        assert result["bypass"]["reads"] > 1000
        assert result["bypass"]["stale_reads"] == 0


def test_replica_that_is_read_too_is_not(new_histories):
    """Replication waits for nobody: reads of the replica are stale."""
    with RedisServer() as server:
        with RedisServer("--replicaof", "127.0.0.1", str(server.port), "--replica-read-only",
                         "no", name="replica") as replica:
            wait_until(lambda: b"master_link_status:up" in Wire(replica.port).ask("INFO"))
            both = new_histories([server.address, replica.address], operations=30_000, seconds=30)
            result = both.wait()
    assert any("was read again" in sentence for sentence in result["violations"])
    assert both.child.returncode == 1


@pytest.mark.parametrize("words", [[], ["--endpoints"], ["--endpoints", "nowhere"], ["--nothing"],
                                   ["--endpoints", "127.0.0.1:1", "--seconds", "x"]])
def test_wrong_usage(words):
    assert run([histories_binary(), *words], check=False).returncode == 2
