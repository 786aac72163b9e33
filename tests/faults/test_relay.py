# SPDX-License-Identifier: Apache-2.0
"""The relay itself: a fault test is worth what its faults are worth."""

import time

import pytest
from harness import RedisServer, ping
from relay import Relay
from wire import Wire


@pytest.fixture(name="link")
def fixture_link():
    with RedisServer() as server, Relay(server.port) as relay:
        yield relay


def test_forwards_delays_and_chops(link):
    wire = Wire(link.port)
    value = b"x" * 300_000
    assert wire.ask("SET", "k", value) == b"OK"
    assert wire.ask("GET", "k") == value
    link.chunk = 7
    assert wire.ask("GETRANGE", "k", 0, 999) == value[:1000]
    link.chunk = 0
    link.delay_s = 0.2
    before = time.monotonic()
    wire.ask("PING")
    assert 0.39 < time.monotonic() - before < 1.5


def test_hold_keeps_the_connection(link):
    wire = Wire(link.port)
    link.hold()
    wire.send("PING")
    assert wire.silent(0.3)
    link.release()
    assert wire.read() == b"PONG"


def test_cut_closes_and_refuses(link):
    wire = Wire(link.port)
    assert wire.ask("PING") == b"PONG"
    link.cut()
    assert wire.closed_by_peer()
    assert not ping(link.port)
    link.mend()
    assert ping(link.port)
    link.drop_connections()
    assert ping(link.port)
