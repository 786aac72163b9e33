# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests with networks of their own."""

import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from control import Balancer  # noqa: E402
from network import NGINX, Network, Unavailable  # noqa: E402


@pytest.fixture(name="net")
def made_network():
    for tool in (NGINX, "curl"):
        if not shutil.which(tool):
            pytest.skip(f"there is no {tool}")
    try:
        net = Network()
    except Unavailable as reason:
        pytest.skip(str(reason))
    try:
        yield net
    finally:
        net.close()


@pytest.fixture(name="run")
def runner(net):
    """Starts balancers that end before their network does."""
    started = []

    def start(*arguments, **settings):
        started.append(Balancer(net, *arguments, **settings))
        return started[-1]

    yield start
    for one in started:
        sys.stderr.write(one.output()[-3000:])
        one.close()
