# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by every test that needs processes.

BALLAST_TEST_TARGET=redis points the client tests at a stock redis-server instead of a tier: what
does not pass there is a fault of the test.
"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from targets import make_target, target_kind  # noqa: E402


@pytest.fixture
def new_target():
    """Makes targets for one test and ends them after it."""
    made = []

    def make(**arguments):
        made.append(make_target(**arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def target(request):
    """One target for a module: a stock server, or a tier of three shards and two spines.

    Three shards so that commands over several keys meet the split; keys that a test needs together
    share a hash tag.
    """
    one = make_target(shards=3, spines=2)
    yield one
    failed = request.session.testsfailed
    if failed:
        sys.stderr.write(f"\n{one.kind} output:\n{one.front.output()[-4000:]}\n")
    one.close()


@pytest.fixture
def new_password_target(new_target):
    """Makes a target that asks clients for a password."""
    def make(password):
        if target_kind() == "redis":
            return new_target(redis_options=["--requirepass", password])
        return new_target(tier_env={"BALLAST_PASSWORD": password})

    return make


def pytest_report_header(config):
    del config
    return f"ballast target: {target_kind()}"
