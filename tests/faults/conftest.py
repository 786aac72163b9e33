# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the fault tests."""

import sys

import pytest
from stage import Histories, Stage, need_program


@pytest.fixture
def new_stage(request):
    """Makes stages for one test, and ends them after it."""
    need_program("up")
    made = []

    def make(**arguments):
        made.append(Stage(**arguments))
        return made[-1]

    yield make
    failed = request.session.testsfailed
    for one in made:
        if failed and one.tier:
            sys.stderr.write(f"\ntier output:\n{one.tier.output()[-4000:]}\n")
        one.close()


@pytest.fixture
def new_histories():
    """Starts ballast-histories, and ends it after the test."""
    made = []

    def make(endpoints, **options):
        made.append(Histories(endpoints, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
