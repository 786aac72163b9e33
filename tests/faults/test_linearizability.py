# SPDX-License-Identifier: Apache-2.0
"""Readers and writers on few hot keys through three routers while parts of the tier fail.

Each run is recorded and judged by ballast-histories: no violation, whatever fails.
"""

import random
import sys
import time

import pytest
from cluster import Cluster
from stage import assert_no_violation, need_program, target_kind

LEASE_S = 1.0
# A run in which hardly a read is answered by a copy proves nothing of copies.
LEAST_HOT_SHARE = 0.05


@pytest.fixture(name="new_cluster")
def fixture_new_cluster(request):
    need_program("router", "leaf", "spine")
    made = []

    def make(**arguments):
        made.append(Cluster(**arguments))
        return made[-1]

    yield make
    for one in made:
        if request.session.testsfailed:
            for name, role in one.roles.items():
                sys.stderr.write(f"\n{name}:\n{role.output()[-1500:]}\n")
        one.close()


def play(cluster, run, faults, seed, pause_s=0.6):
    """Plays faults, each a function of a random source that sleeps as it needs, while run runs."""
    rng = random.Random(seed)
    played = 0
    while run.running():
        time.sleep(pause_s * rng.uniform(0.5, 1.5))
        if cluster.kind == "tier":
            rng.choice(faults)(rng)
            cluster.check_running()
        else:
            _shake_links(cluster, rng)
        played += 1
    assert played > 2, "the run ended before anything failed"


def _shake_links(cluster, rng):
    relay = rng.choice(list(cluster.links.by_name.values()))
    rng.choice([relay.drop_connections, relay.hold, relay.cut])()
    time.sleep(0.3)
    cluster.links.mend()


def judge(cluster, result, operations):
    assert_no_violation(result, operations)
    share = cluster.hot_share()
    print(f"{result['operations']} operations, {result['errors']} errors, "
          f"{result['unknown_writes']} writes of unknown outcome, hot reads: {share}")
    assert share is None or share > LEAST_HOT_SHARE


def kill_spine(cluster):
    def fault(rng):
        name = rng.choice(cluster.spines)
        cluster.kill(name)
        time.sleep(rng.choice([0.0, 0.4, LEASE_S + 0.4]))
        cluster.restart(name)
    return fault


def pause_spine(cluster):
    def fault(rng):
        name = rng.choice(cluster.spines)
        cluster.pause(name)
        time.sleep(rng.choice([0.2, LEASE_S - 0.1, LEASE_S + 0.1, LEASE_S + 0.5]))
        cluster.resume(name)
    return fault


def kill_leaf(cluster):
    def fault(rng):
        name = rng.choice(cluster.leaves)
        cluster.kill(name)
        time.sleep(rng.choice([0.0, 0.3]))
        cluster.restart(name)
    return fault


def pause_leaf(cluster):
    def fault(rng):
        name = rng.choice(cluster.leaves)
        cluster.pause(name)
        time.sleep(rng.choice([0.3, LEASE_S + 0.3]))
        cluster.resume(name)
    return fault


def break_links(cluster):
    def fault(rng):
        links = list(cluster.links.by_name.values())
        for relay in rng.sample(links, rng.randint(1, 3)):
            kind = rng.randrange(4)
            if kind == 0:
                relay.drop_connections()
            elif kind == 1:
                relay.cut()
            elif kind == 2:
                relay.hold()
            else:
                relay.delay_s = rng.choice([0.01, 0.15, LEASE_S])
        time.sleep(rng.choice([0.1, 0.6, LEASE_S + 0.4]))
        cluster.links.mend()
    return fault


def cut_spine_from_leaf(cluster):
    """The spine still hears the routers, but no longer its leaf: it must stop by itself."""
    def fault(rng):
        links = cluster.links.among("spine", "rack")
        for relay in links:
            rng.choice([relay.hold, relay.cut])()
        time.sleep(rng.choice([0.5, LEASE_S + 0.5]))
        cluster.links.mend()
    return fault


def replace_leaf(cluster):
    """A new leaf beside the former, which is paused, and later wakes as if nothing had been."""
    def fault(rng):
        name = rng.choice(cluster.leaves)
        cluster.pause(name)
        former = cluster.replace(name)
        time.sleep(rng.choice([0.1, LEASE_S + 0.3]))
        former.resume()
        time.sleep(0.5)
        former.close()
    return fault


SCENARIOS = {
    "spines killed": (False, [kill_spine]),
    "spines paused": (False, [pause_spine]),
    "leaves killed": (False, [kill_leaf]),
    "leaves paused": (False, [pause_leaf]),
    "links broken": (True, [break_links, cut_spine_from_leaf]),
    "leaf replaced": (True, [replace_leaf]),
}


def test_without_faults(new_cluster, new_histories):
    cluster = new_cluster()
    bypass = {"bypass": cluster.shards[0].address} if target_kind() == "tier" else {}
    run = new_histories(cluster.endpoints, seconds=200, operations=220_000, flush_every=700,
                        **bypass)
    result = run.wait(300)
    judge(cluster, result, operations=200_000)
    assert result["errors"] == 0 and result["reconnects"] == 0
    print("bypass:", result["bypass"])
    assert result["bypass"]["max_ms"] < 1000 * LEASE_S


@pytest.mark.parametrize("name", SCENARIOS)
def test_under_one_kind_of_fault(new_cluster, new_histories, name):
    relayed, makers = SCENARIOS[name]
    cluster = new_cluster(relayed=relayed)
    run = new_histories(cluster.endpoints, seconds=15, sessions=18, timeout=4000)
    play(cluster, run, [make(cluster) for make in makers], seed=name)
    result = run.wait()
    judge(cluster, result, operations=5_000)


def test_under_all_faults(new_cluster, new_histories):
    """At least 200,000 operations with everything failing at random, flushes and expiry besides."""
    cluster = new_cluster(relayed=True)
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed of the faults:", seed)
    makers = [kill_spine, pause_spine, kill_leaf, pause_leaf, break_links, cut_spine_from_leaf,
              replace_leaf]
    bypass = {"bypass": cluster.shards[0].address} if target_kind() == "tier" else {}
    # About a minute and a half; a machine with other work to do gets the time it needs.
    run = new_histories(cluster.endpoints, seconds=400, operations=210_000, sessions=24,
                        timeout=4000, flush_every=1500, **bypass)
    play(cluster, run, [make(cluster) for make in makers], seed)
    result = run.wait()
    print("bypass:", result["bypass"])
    judge(cluster, result, operations=200_000)
