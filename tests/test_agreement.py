# SPDX-License-Identifier: Apache-2.0
"""Three levels agree on what a tier carries: the fluid bound, the simulated queues, and the real
tier with rate limits, with 8 spines and 8 racks of 4 servers, on the same keys by the same law."""

import json
import sys

import pytest

from harness import ROOT, ballast_binary, run

RACKS, SERVERS, SPINES, KEYS, OBJECTS, SAMPLE = 8, 4, 8, 100_000, 100, 4
RATE = 250  # requests a second of a server: what two cores can carry in all
# Admission is not simulated by the fluid bound, and a real run is short.
TOLERANCE = {("NoCache", "fluid bound"): 0.10, ("NoCache", "sustained, admission"): 0.10,
             ("CachePartition", "fluid bound"): 0.15,
             ("CachePartition", "sustained, admission"): 0.15,
             ("DistCache", "fluid bound"): 0.15, ("DistCache", "sustained, admission"): 0.15}


@pytest.fixture(scope="module", name="real")
def fixture_real():
    """Units of one server's rate by mechanism."""
    words = ["--racks", RACKS, "--shards", SERVERS, "--spines", SPINES, "--keys", KEYS,
             "--cache-objects", OBJECTS, "--writes", 0, "--rate", RATE, "--warmup", 10,
             "--seconds", 6, "--mechanism", "nocache", "--mechanism", "partition",
             "--mechanism", "distcache", "--json"]
    done = run([sys.executable, ROOT / "tools/demo.py", *words], timeout_s=180)
    names = {"nocache": "NoCache", "partition": "CachePartition", "distcache": "DistCache"}
    return {names[row["mechanism"]]: row["units"] for row in json.loads(done.stdout)["rows"]}


@pytest.fixture(scope="module", name="simulated")
def fixture_simulated():
    """Units by scheme and column."""
    words = ["--figure", "schemes", "--bench-keys", "--racks", RACKS, "--servers", SERVERS,
             "--spines", SPINES, "--objects", KEYS, "--objects-per-node", OBJECTS, "--routers", 1,
             "--sample", SAMPLE, "--server-rate", RATE, "--runs", 3, "--json"]
    figure = json.loads(run([ballast_binary(), "sim", "cache", *words], timeout_s=120).stdout)
    return {(scheme, series["name"]): series["mean"][x] for series in figure["series"]
            for x, scheme in enumerate(figure["x"])}


def test_the_queues_reach_the_fluid_bound(simulated):
    for scheme in ("NoCache", "CachePartition", "DistCache"):
        bound = simulated[scheme, "fluid bound"]
        assert simulated[scheme, "sustained"] == pytest.approx(bound, rel=0.1), scheme


@pytest.mark.parametrize("scheme, column", TOLERANCE)
def test_the_real_tier_carries_what_was_simulated(real, simulated, scheme, column):
    print(f"{scheme}: real {real[scheme]:.1f}, {column} {simulated[scheme, column]:.1f}")
    wanted = pytest.approx(simulated[scheme, column], rel=TOLERANCE[scheme, column])
    assert real[scheme] == wanted
