# SPDX-License-Identifier: Apache-2.0
"""Checks the coherence protocol's Promela model with spin: the protocol as it is holds in every
state within the bounds of each row of WHOLE; each rule left out (BROKEN) is caught. Prints states
explored and the trail's steps."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

HERE = pathlib.Path(__file__).parent
MEMORY_MB = 3000
DEPTH = 200000
SECONDS = 240  # a guard against a busy machine; the work itself takes far less

pytestmark = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("gcc") is None, reason="SKIP: needs spin and gcc"
)

# model, bounds other than the model's own
WHOLE = [
    ("copies", []),
    ("leases", ["WRITES=1"]),
    ("delay", []),
    ("tracking", ["LEASE=1", "IDS=1"]),
    ("tracking", ["QUIET", "IDS=1"]),
    ("takeover", ["LEASE=1", "WRITES=1"]),
    ("takeover", ["LEASE=1", "CUTS=0"]),
]

TRACKING = ["LEASE=1", "IDS=1"]
STALENESS = ["QUIET", "IDS=1"]  # no copy outlives a tick when a lease is one tick long
TAKEOVER = ["LEASE=1", "WRITES=1"]

# rule left out, model, bounds other than the model's own
BROKEN = [
    ("NO_PHASE1", "copies", []),
    ("NO_LEASE_WAIT", "copies", []),
    ("NO_FILL_VERSION", "copies", []),
    ("NO_COPY_ID", "copies", []),
    ("NO_KEY_QUEUE", "copies", []),
    ("REVIVE_LAPSED_LEASE", "copies", []),
    ("STALE_CLOCK", "copies", []),
    ("STALE_HOME_CLOCK", "copies", []),
    ("ADMIT_ANSWERS", "copies", []),
    ("INCARNATION_BY_NAME", "leases", ["LEASE=1", "WRITES=1"]),
    ("RENEW_UNANSWERED", "delay", []),
    ("LEASE_WITHOUT_SHARD_ROUND_TRIP", "tracking", STALENESS),
    ("NO_DROP_ALL", "tracking", STALENESS),
    ("NO_DROP_ALL_WAIT", "tracking", TRACKING),
    ("NO_KILL", "takeover", TAKEOVER),
    ("NO_KILL_FORMER", "takeover", TAKEOVER),
    ("NO_TAKEOVER_WAIT", "takeover", [*TAKEOVER, "CUTS=0"]),
    ("LEASE_WITHOUT_SHARD_ROUND_TRIP", "takeover", ["WRITES=1", "CUTS=0"]),
    ("LIST_BEFORE_NAME", "takeover", [*TAKEOVER, "CUTS=0", "STARTED=0"]),
    ("RECONNECT_WITHOUT_WAIT", "takeover", TAKEOVER),
]


def run(folder, model, macros):
    """Explores depth first; returns (errors, states, steps of the trail, complete)."""
    for source in HERE.glob("*.pml"):
        shutil.copy(source, folder)
    defines = [f"-D{m}" for m in macros]
    subprocess.run(["spin", "-a", *defines, f"{model}.pml"], cwd=folder, check=True, timeout=60,
                   capture_output=True)
    subprocess.run(["gcc", "-O1", "-w", "-DSAFETY", "-DVECTORSZ=1024",
                    f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c"], cwd=folder, check=True,
                   timeout=120)
    out = subprocess.run(["./pan", f"-m{DEPTH}", "-w22"], cwd=folder, check=False, timeout=SECONDS,
                         capture_output=True, text=True).stdout
    errors = int(re.search(r"errors: (\d+)", out)[1])
    states = int(float(re.search(r"([\d.e+]+) states, stored", out)[1]))
    complete = "not completed" not in out and "too small" not in out and "out of memory" not in out
    trail = folder / f"{model}.pml.trail"
    steps = len(trail.read_text().splitlines()) if trail.exists() else 0
    assert "invalid array index" not in out, out
    return errors, states, steps, complete


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="ballast-model-") as name:
        yield pathlib.Path(name)


def name_of(value):
    """A test's name is made of its row: the bounds by themselves, the rest as it stands."""
    return "-".join(value) if isinstance(value, list) else value


@pytest.mark.parametrize("model,bounds", WHOLE, ids=name_of)
def test_the_protocol_holds(folder, model, bounds):
    errors, states, _, complete = run(folder, model, bounds)
    print(f"\n{model} {' '.join(bounds)}: {states} states, {errors} violations")
    assert errors == 0
    assert complete, "the exploration ended before every state was seen"


@pytest.mark.parametrize("rule,model,bounds", BROKEN, ids=name_of)
def test_a_rule_left_out_is_caught(folder, rule, model, bounds):
    errors, states, steps, _ = run(folder, model, [*bounds, rule])
    print(f"\n{rule}: {model} {' '.join(bounds)}: {states} states, a trail of {steps} steps")
    assert errors > 0, f"the model does not see that {rule} is wrong"
