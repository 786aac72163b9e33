# SPDX-License-Identifier: Apache-2.0
"""Redis's own tests through the tier, unit by unit, in RESP2 and RESP3.

The tier has one shard, so that commands over several keys work, and two spines, so that hot keys
are served from copies.
"""

import concurrent.futures
import json
import os

import pytest
import redis_suite
from harness import ROOT
from targets import make_target, target_kind

RESULTS = ROOT / "build/redis-suite"


def _run(unit, protocol, skips, folder):
    # A test that keeps its server busy for seconds is no fault of the tier's.
    target = make_target(shards=1, spines=2,
                         tier_options=["--admin-commands", "--shard-timeout", "30s"])
    try:
        outcome = redis_suite.run_unit(unit, target.port, protocol, skips, folder)
        return outcome, target.front.output()
    finally:
        target.close()


def _record(unit, protocol, outcome):
    name = f"{target_kind()}-{protocol}-{unit.replace('/', '_')}"
    (RESULTS / f"{name}.log").write_text(outcome.output, encoding="utf-8")
    counts = {key: len(getattr(outcome, key)) for key in ("passed", "skipped", "ignored", "failed")}
    (RESULTS / f"{name}.json").write_text(json.dumps(counts), encoding="utf-8")
    return counts


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """The runs of all chosen units, begun ahead on every core: most of a run is the suite's Tcl."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    redis_suite.fetch()
    skips = redis_suite.read_skips()
    begun = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for item in request.session.items:
            if item.module is not request.module or not hasattr(item, "callspec"):
                continue
            unit, protocol = item.callspec.params["unit"], item.callspec.params["protocol"]
            mine = [skip for skip in skips if skip.applies(unit, protocol, target_kind())]
            folder = tmp_path_factory.mktemp("suite")
            begun[unit, protocol] = (mine, pool.submit(_run, unit, protocol, mine, folder))
        yield begun
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("protocol", ["resp2", "resp3"])
@pytest.mark.parametrize("unit", redis_suite.UNITS)
def test_unit(unit, protocol, runs, record_property):
    skips, run = runs[unit, protocol]
    outcome, server_output = run.result()
    counts = _record(unit, protocol, outcome)
    for key, value in counts.items():
        record_property(key, value)
    failures = "\n".join(f"  {text}" for text in outcome.failed)
    if outcome.failed or not outcome.finished:
        print(server_output[-4000:])
    assert not outcome.failed, f"{unit} {protocol}: {counts}\n{failures}"
    assert outcome.finished, f"{unit} {protocol} did not come to its end\n{outcome.output[-3000:]}"
    stale = [skip.test for skip in skips if not any(map(skip.matches, outcome.skipped))]
    assert not stale, f"skip file names tests that {unit} does not have: {stale}"
    if not outcome.passed:
        assert outcome.skipped or outcome.ignored, "the unit ran no test"
        why = "upstream marks every test of it as not for external servers"
        if skips:
            why = skips[0].reason
        pytest.skip(f"{unit}: {why}")


def test_skip_file_names_known_units():
    unknown = {skip.unit for skip in redis_suite.read_skips()} - set(redis_suite.UNITS)
    assert not unknown


def test_failures_are_seen():
    """The parser tells each kind of line apart; a run cut short is not taken for a good one."""
    text = ("[\x1b[0;32mok\x1b[0m]: one (3 ms)\n[\x1b[0;33mskip\x1b[0m]: two\n"
            "[\x1b[0;31merr\x1b[0m]: three in tests/unit/x.tcl\nExpected 1\n")
    outcome = redis_suite.parse(text)
    assert (outcome.passed, outcome.skipped) == (["one"], ["two"])
    assert outcome.failed == ["three in tests/unit/x.tcl\nExpected 1"] and not outcome.finished
    assert redis_suite.parse(text + "[1/1 \x1b[0;33mdone\x1b[0m]: unit/x (0 seconds)\n").finished
