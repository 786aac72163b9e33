# SPDX-License-Identifier: Apache-2.0
"""Programs without one rule of the coherence protocol each: recorded histories must show it.

Each rule has a scenario that needs it. The right program stands it, the one without the rule does
not.
"""

import os
import subprocess
import time

import pytest
from cluster import Cluster
from harness import ROOT, ballast_binary
from stage import Histories, assert_no_violation, need_program, skip_without_tier

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
    programs = {rule: folder / f"ballast-without-{rule}" for rule in SCENARIOS}
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
