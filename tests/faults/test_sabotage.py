# SPDX-License-Identifier: Apache-2.0
"""Programs without one rule of the coherence protocol each: recorded histories must show it.

Each rule has a scenario that needs it. The right program stands it, the one without the rule does
not. The copy id needs one that is played step by step.
"""

import os
import subprocess
import threading
import time

import pytest
from cluster import Cluster
from harness import ROOT, ballast_binary
from stage import Histories, assert_no_violation, need_program, skip_without_tier
from wire import Wire

LEASE_S = 1.0
SECONDS = 9


def only_write(_cluster):
    """No fault at all: copies are there, and somebody writes."""
    time.sleep(0.5)


def silence_between_leaf_and_spine(cluster):
    """The spine serves on under its lease, and does not hear that a key is written."""
    for relay in cluster.links.among("spine", "rack"):
        relay.hold()
    time.sleep(LEASE_S)
    cluster.links.mend()
    time.sleep(LEASE_S)


def lost_invalidations(cluster):
    """The home waits for the spine's lease to end and writes; then the spine is back, with a lease
    but without the invalidation."""
    for relay in cluster.links.among("spine", "rack"):
        relay.cut()
    time.sleep(LEASE_S + 0.3)
    cluster.links.mend()
    time.sleep(LEASE_S + 0.3)


def late_answers_to_fills(cluster):
    """A fill's answer is under way for so long that the key is written meanwhile, and what the
    shard tells of that write comes as late."""
    for relay in cluster.links.among("rack", "shard"):
        relay.push_delay_s = 0.1
    time.sleep(0.5)


SCENARIOS = {
    "phase1": only_write,
    "lease_wait": silence_between_leaf_and_spine,
    "fill_version": late_answers_to_fills,
    "revive": lost_invalidations,
}


def record(fault):
    """The judged history of a small tier whose program is BALLAST_BINARY, and its hot share."""
    cluster = Cluster(racks=1, shards_per_rack=1, spines=1, routers=2, relayed=True)
    run = None
    try:
        run = Histories(cluster.endpoints, seconds=SECONDS, sessions=10, timeout=4000)
        while run.running():
            fault(cluster)
            cluster.check_running()
        return run.wait(), cluster.hot_share()
    finally:
        if run:
            run.close()
        cluster.close()


@pytest.fixture(scope="module", name="programs")
def fixture_programs():
    """By rule, the program without it; they are built beside the program under test."""
    skip_without_tier("it has no rules to leave out")
    need_program("router", "leaf", "spine")
    folder = ballast_binary().resolve().parent
    if not (folder / "build.ninja").exists():
        pytest.skip(f"{folder} is no build folder")
    programs = {rule: folder / f"ballast-without-{rule}" for rule in [*SCENARIOS, "copy_id"]}
    subprocess.run(["cmake", "--build", folder, "--target",
                    *[path.name for path in programs.values()]],
                   check=True, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=600)
    return programs


@pytest.mark.parametrize("rule", SCENARIOS)
def test_right_program_stands_the_scenario(programs, rule):
    assert programs
    result, hot_share = record(SCENARIOS[rule])
    print(f"{rule}: {result['operations']} operations, hot reads: {hot_share:.2f}")
    assert_no_violation(result, operations=500)
    assert hot_share > 0.05


@pytest.mark.parametrize("rule", SCENARIOS)
def test_wrong_program_is_caught(programs, monkeypatch, rule):
    monkeypatch.setenv("BALLAST_BINARY", os.fspath(programs[rule]))
    result, hot_share = record(SCENARIOS[rule])
    count = len(result["violations"])
    print(f"without {rule}: {count} violations in {result['operations']} operations, "
          f"hot reads: {hot_share:.2f}")
    assert count, f"{result['operations']} operations without {rule} look right"


STEP_S = 0.25  # what each way between spine and leaf takes, and what the shard tells the leaf


def heat(spine, key, weight):
    """Reads that stand for so many others: the spine, which has room for one, takes the key."""
    for _ in range(8):
        spine.send("BALLAST.READ", 1, weight, 0, key, "")
    for _ in range(8):
        spine.read_value()


def stale_reads(router, key, old, written):
    """How many reads that begin after `written` was set still give `old`."""
    stale = 0
    until = time.monotonic() + 4 * STEP_S
    while time.monotonic() < until:
        begins_after = written.is_set()
        stale += router.ask("GET", key) == old and begins_after
    return stale


def fill_for_a_former_copy(cluster, key, weight):
    """The spine drops its copy and asks for another while the fill of the first is under way.

    The home hears of both once that fill has left, and owes the second copy nothing when the key
    is written again. Returns the stale reads.
    """
    writer, reader = (Wire(cluster.ports[router]) for router in cluster.routers)
    spine = Wire(cluster.ports["spine-0"])
    writer.ask("SET", key, "first")
    spine.ask("HELLO", 3)
    heat(spine, key, weight)
    time.sleep(4 * STEP_S)  # the copy is filled
    assert spine.ask("BALLAST.READ", 1, 1, 0, key, "") == b"first"
    written = threading.Event()
    found = []
    writer.ask("SET", key, "second")  # the spine's answer is here, the fill's read has begun
    time.sleep(STEP_S / 2)
    heat(spine, "other", 4 * weight)
    heat(spine, key, 16 * weight)
    time.sleep(STEP_S * 1.3)  # the fill has left, then the home heard of the new copy
    thread = threading.Thread(
        target=lambda: found.append(stale_reads(reader, key, b"second", written)))
    thread.start()
    writer.ask("SET", key, "third")
    written.set()
    thread.join()
    return found[0]


@pytest.mark.parametrize("program", ["right", "without copy_id"])
def test_fill_for_a_former_copy(programs, monkeypatch, program):
    wrong = program != "right"
    if wrong:
        monkeypatch.setenv("BALLAST_BINARY", os.fspath(programs["copy_id"]))
    cluster = Cluster(racks=1, shards_per_rack=1, spines=1, routers=2, relayed=True,
                      options='cache_objects = 1\nlease = "5s"')
    try:
        for relay in cluster.links.among("spine-0>rack-0"):
            relay.delay_s = STEP_S
        for relay in cluster.links.among("rack-0>shard-0"):
            relay.push_delay_s = STEP_S
        time.sleep(4 * STEP_S)
        stale = [fill_for_a_former_copy(cluster, f"k{turn}", 1000 * 40 ** turn)
                 for turn in range(2)]
    finally:
        cluster.close()
    print(f"{program}: {stale} stale reads")
    assert any(stale) == wrong
