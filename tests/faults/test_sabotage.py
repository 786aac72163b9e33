# SPDX-License-Identifier: Apache-2.0
"""Programs without one rule of the coherence protocol: the recorded histories must show it."""

import subprocess

import pytest
from cluster import Cluster
from harness import ROOT, ballast_binary
from stage import Histories, need_program, skip_without_tier
from test_linearizability import cut_spine_from_leaf, play

RULES = ("phase1",)


@pytest.fixture(scope="module", name="wrong_programs")
def fixture_wrong_programs():
    """Builds them beside the program under test; few sources differ."""
    skip_without_tier("it has no rules to leave out")
    need_program("router", "leaf", "spine")
    folder = ballast_binary().resolve().parent
    if not (folder / "build.ninja").exists():
        pytest.skip(f"{folder} is no build folder")
    names = [f"ballast-without-{rule}" for rule in RULES]
    subprocess.run(["cmake", "--build", folder, "--target", *names], check=True, cwd=ROOT,
                   stdout=subprocess.DEVNULL, timeout=600)
    return folder


@pytest.mark.parametrize("rule", RULES)
def test_wrong_program_is_caught(wrong_programs, monkeypatch, rule):
    """Spines that no longer hear their leaf, but still the routers."""
    right = ballast_binary()
    monkeypatch.setenv("BALLAST_BINARY", str(wrong_programs / f"ballast-without-{rule}"))
    assert ballast_binary() != right, "BALLAST_BINARY was read too early"
    cluster = Cluster(relayed=True)
    run = None
    try:
        run = Histories(cluster.endpoints, seconds=15, sessions=18, timeout=4000)
        play(cluster, run, [cut_spine_from_leaf(cluster)], seed=rule)
        result = run.wait()
    finally:
        if run:
            run.close()
        cluster.close()
    print(f"{rule}: {len(result['violations'])} violations in {result['operations']} operations")
    assert result["violations"], f"{result['operations']} operations without {rule} look right"
