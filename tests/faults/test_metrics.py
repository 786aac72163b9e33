# SPDX-License-Identifier: Apache-2.0
"""Every counter of /metrics counts: what makes it move is done, and it has moved."""

import collections
import contextlib
import re
import shutil
import subprocess
import time
import urllib.request

import pytest
from cluster import Cluster
from harness import ROOT, wait_until
from stage import need_program, skip_without_tier
from wire import ReplyError, Wire

PASSWORD = "of the tier"
# What only separate processes or a paused one can bring about; below, each has a test of its own.
NEED_PROCESSES = {"ballast_home_writes_delayed_total", "ballast_home_lease_waits_total",
                  "ballast_node_lease_lapses_total"}
# A fill that lost a race within the node: node_test.cc has it.
RACES = {"ballast_node_fills_dropped_total"}


def exposition(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        return reply.read().decode()


def scrape(port):
    """Sum over labels of every sample, and the names that are counters."""
    text = exposition(port)
    sums = collections.Counter()
    for name, value in re.findall(r"^(\w+)(?:{[^}]*})? (\S+)$", text, re.MULTILINE):
        sums[name] += float(value)
    return sums, set(re.findall(r"^# TYPE (\w+) counter$", text, re.MULTILINE))


def promtool():
    """The system's, else that of the Debian package, unpacked into the build folder: installed it
    would start a server."""
    if found := shutil.which("promtool"):
        return found
    folder = ROOT / "build/promtool"
    program = folder / "usr/bin/promtool"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        got = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download",
                              "prometheus"], cwd=folder, timeout=300, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        packages = list(folder.glob("prometheus_*.deb"))
        if not packages:
            pytest.skip(f"promtool: apt-get download prometheus: {got.stdout.strip()[-200:]}")
        subprocess.run(["dpkg", "-x", packages[0], folder], check=True, timeout=300)
        packages[0].unlink()
    return program


def signed_in(stage):
    wire = stage.wire()
    wire.ask("AUTH", PASSWORD)
    return wire


def refuse_and_break(stage):
    wire = stage.wire()
    for words in (("AUTH", "wrong"), ("FROB",)):
        with contextlib.suppress(ReplyError):
            wire.ask(*words)
    broken = stage.wire()
    broken.send_bytes(b"*1\r\n$-5\r\n")
    broken.closed_by_peer()
    crowd = [stage.wire() for _ in range(40)]
    for one in (wire, broken, *crowd):
        one.close()
    wait_until(lambda: scrape(stage.tier.admin_port)[0]["ballast_clients"] == 0, what="their end")


def read_and_write(stage):
    wire = signed_in(stage)
    wire.ask("MSET", *[word for n in range(60) for word in (f"k{n}", "v")])
    wire.ask("MGET", *[f"k{n}" for n in range(60)])
    wire.ask("GET", "cold")
    wire.ask("SET", "large", b"v" * 70_000)
    for first in (0, 20):  # other keys turn hot, and there is no room for all their copies
        until = time.monotonic() + 3
        while time.monotonic() < until:
            keys = [f"k{first + n}" for n in range(20)] * 30 + ["large"] * 60
            for key in keys:
                wire.send("GET", key)
            for key in keys:
                wire.read_value()

    def is_refused():
        for _ in range(100):
            wire.ask("GET", "large")
        return scrape(stage.tier.admin_port)[0]["ballast_home_refusals_total"] > 0
    wait_until(is_refused, timeout_s=30, what="a copy of what is too large refused")
    wire.ask("SET", "k20", "new")
    return "k20"


def change_behind_the_tier(stage, hot):
    wire = signed_in(stage)
    for _ in range(3000):
        wire.ask("GET", hot)
    stage.shard_of(hot).ask("SET", hot, "past the tier")
    for shard in stage.shards:
        shard.relay.delay_s = 0.1
    readers = [signed_in(stage) for _ in range(8)]
    wire.send("SET", hot, "newer")
    time.sleep(0.02)
    for reader in readers:
        reader.send("GET", hot)
    for reader in readers:
        reader.read()
    wire.read()
    for shard in stage.shards:
        shard.relay.delay_s = 0.8  # beyond the timeout
    with pytest.raises(ReplyError):
        wire.ask("GET", "cold")
    time.sleep(1.0)
    for shard in stage.shards:
        shard.relay.delay_s = 0.0
    time.sleep(1.0)
    wire.ask("FLUSHALL")


def be_slow(stage):
    wire, slow = signed_in(stage), signed_in(stage)
    wire.ask("SET", "large", b"v" * 1_000_000)
    slow.send_bytes(b"*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n" * 60)
    wait_until(lambda: scrape(stage.tier.admin_port)[0]["ballast_clients_closed_slow_total"] > 0,
               timeout_s=10, what="the slow client's end")
    for shard in stage.shards:
        shard.relay.drop_connections()
    time.sleep(0.3)


def test_every_counter_of_one_process_moves(new_stage):
    skip_without_tier("it has other metrics")
    options = ["--max-clients", 30, "--cache-objects", 16, "--node-rate", 4000,
               "--shard-timeout", "500ms", "--client-output-limit", "8MiB"]
    stage = new_stage(shards=2, options=options, env={"BALLAST_PASSWORD": PASSWORD})
    refuse_and_break(stage)
    hot = read_and_write(stage)
    change_behind_the_tier(stage, hot)
    be_slow(stage)
    sums, counters = scrape(stage.tier.admin_port)
    still = {name for name in counters if sums[name] == 0} - NEED_PROCESSES - RACES
    assert not still, f"never moved: {sorted(still)}"
    assert sums["ballast_client_held_bytes"] >= 0 and sums["ballast_clients"] > 0


def test_promtool_finds_nothing_to_say(new_stage):
    skip_without_tier("it has no metrics")
    stage = new_stage(shards=2)
    wire = stage.wire()
    for _ in range(1000):
        wire.ask("GET", "k")
    told = subprocess.run([promtool(), "check", "metrics"], input=exposition(stage.tier.admin_port),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          check=False)
    assert (told.returncode, told.stdout) == (0, "")


def test_the_counters_of_waiting_for_a_lost_node_move():
    skip_without_tier("it has no leases")
    need_program("router", "leaf", "spine")
    with contextlib.closing(Cluster(spines=1, routers=1)) as cluster:
        wire = Wire(int(cluster.endpoints[0].rpartition(":")[2]))
        wire.ask("SET", "k", "old")
        until = time.monotonic() + 3
        while time.monotonic() < until:
            for _ in range(100):
                wire.ask("GET", "k")
        cluster.pause("spine-0")
        wire.ask("SET", "k", "new")
        cluster.resume("spine-0")
        time.sleep(1.0)
        leaves = [scrape(cluster.roles[name].admin_port)[0] for name in cluster.leaves]
        for name in ("ballast_home_writes_delayed_total", "ballast_home_lease_waits_total"):
            assert sum(leaf[name] for leaf in leaves) > 0, name
        spine = scrape(cluster.roles["spine-0"].admin_port)[0]
        assert spine["ballast_node_lease_lapses_total"] > 0
