# SPDX-License-Identifier: Apache-2.0
"""redis-cli and redis-benchmark against the target, as people use them at a prompt."""

import csv
import io
import re
import subprocess
import time

import pytest
from harness import encode, run
from targets import target_kind


def cli(target, *words, stdin=None, check=True, timeout_s=30):
    done = run(["redis-cli", "-p", target.port, *words], stdin=stdin, check=check,
               timeout_s=timeout_s)
    return done.stdout.decode()


@pytest.fixture(autouse=True)
def empty(target):
    cli(target, "FLUSHALL")


@pytest.mark.parametrize("protocol", ["-2", "-3"])
def test_one_command_a_run(target, protocol):
    assert cli(target, protocol, "SET", "k", "v") == "OK\n"
    assert cli(target, protocol, "GET", "k") == "v\n"
    assert cli(target, protocol, "HSET", "h", "f", "1", "g", "2") == "2\n"
    assert cli(target, protocol, "HGETALL", "h").split() == ["f", "1", "g", "2"]
    assert cli(target, protocol, "ZADD", "z", "1.5", "m") == "1\n"
    assert cli(target, protocol, "ZSCORE", "z", "m") == "1.5\n"
    assert "WRONGTYPE" in cli(target, protocol, "LPUSH", "k", "x")
    assert cli(target, protocol, "-r", "3", "INCR", "n") == "1\n2\n3\n"


@pytest.mark.parametrize("protocol", ["-2", "-3"])
def test_commands_from_standard_input(target, protocol):
    lines = b"MULTI\nSET {a}1 x\nAPPEND {a}1 y\nEXEC\nGET {a}1\nEVAL \"return ARGV[1]\" 0 hello\n"
    words = cli(target, protocol, stdin=lines).split()
    assert words == ["OK", "QUEUED", "QUEUED", "OK", "2", "xy", "hello"]


def test_value_from_standard_input(target):
    assert cli(target, "-x", "SET", "bin", stdin=b"\x00\x01\r\n\xff") == "OK\n"
    assert cli(target, "STRLEN", "bin") == "5\n"


def test_mass_insertion(target):
    data = b"".join(encode("SET", f"p{number}", number) for number in range(20000))
    said = cli(target, "--pipe", stdin=data)
    assert "errors: 0, replies: 20000" in said
    assert cli(target, "DBSIZE") == "20000\n"
    assert cli(target, "GET", "p19999") == "19999\n"


def test_mass_insertion_counts_errors(target):
    data = encode("SET", "s", "x") + encode("LPUSH", "s", "y") + encode("SET", "s", "z")
    done = run(["redis-cli", "-p", target.port, "--pipe"], stdin=data, check=False)
    assert b"errors: 1, replies: 3" in done.stdout


def test_scan(target):
    cli(target, "--pipe", stdin=b"".join(encode("SET", f"s{i}", i) for i in range(3000)))
    found = cli(target, "--scan", "--pattern", "s*").split()
    assert sorted(set(found)) == sorted(f"s{i}" for i in range(3000))


@pytest.mark.parametrize("option", ["--bigkeys", "--memkeys"])
def test_key_statistics(target, option):
    cli(target, "MSET", *[word for i in range(200) for word in (f"b{i}", "x" * (i + 1))])
    cli(target, "RPUSH", "list", *"abcdef")
    said = cli(target, option)
    assert "201 keys" in said
    if option == "--bigkeys":
        assert "Biggest string found" in said and "200 bytes" in said and "6 items" in said


def watch(target, *words, seconds):
    """What an endless redis-cli prints in that time, line by line as at a terminal."""
    child = subprocess.Popen(["stdbuf", "-oL", "redis-cli", "-p", str(target.port), *words],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(seconds)
    child.terminate()
    return child.communicate(timeout=10)[0].decode()


def test_stat(target):
    said = watch(target, "--stat", "-i", "0.1", seconds=1)
    assert len([line for line in said.splitlines() if re.match(r"^\d+ ", line)]) >= 3, said


def test_latency(target):
    said = cli(target, "--latency", "--raw", "-i", "0.5")
    assert re.match(r"^\d+ \d+ [\d.]+ \d+$", said.strip()), said


def test_monitor_is_refused_by_name(target):
    if target_kind() == "redis":
        pytest.skip("a stock server has MONITOR")
    said = cli(target, "MONITOR", timeout_s=10)
    assert re.match(r"(?i)^\(?error\)?.*monitor|^ERR.*monitor", said), said
    assert cli(target, "PING") == "PONG\n"


def test_subscriber_at_a_prompt(target):
    child = subprocess.Popen(["stdbuf", "-oL", "redis-cli", "-p", str(target.port),
                              "SUBSCRIBE", "news"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 10
        while cli(target, "PUBLISH", "news", "hello") != "1\n":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.2)
    finally:
        child.terminate()
        said = child.communicate(timeout=10)[0].decode()
    assert said.split() == ["subscribe", "news", "1", "message", "news", "hello"]


@pytest.mark.parametrize("pipeline", [1, 16])
@pytest.mark.parametrize("threads", [1, 2])
def test_benchmark(target, pipeline, threads):
    done = run(["redis-benchmark", "-p", target.port, "-P", pipeline, "-n", 20000, "-c", 20,
                "-r", 1000, "-t", "set,get,incr,lpush,lpop,sadd,hset,mset", "--csv",
                *(["--threads", threads] if threads > 1 else [])], timeout_s=120)
    rows = [row for row in csv.reader(io.StringIO(done.stdout.decode())) if len(row) > 3]
    names = [row[0].split(" ")[0] for row in rows[1:]]
    assert names == ["SET", "GET", "INCR", "LPUSH", "LPOP", "SADD", "HSET", "MSET"]
    assert all(float(row[1]) > 100 for row in rows[1:])
    assert b"rror" not in done.stdout + done.stderr
