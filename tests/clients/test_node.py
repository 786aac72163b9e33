# SPDX-License-Identifier: Apache-2.0
"""ioredis and node-redis against the target; what they do is in ioredis.cjs and node_redis.cjs."""

import pathlib
import re
import shutil

import pytest
from harness import ROOT, run

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ROOT / "build/npm"


@pytest.fixture(scope="session")
def modules():
    """The libraries of package-lock.json, installed once into the build folder."""
    if not shutil.which("npm"):
        pytest.skip("no npm: packages nodejs and npm")
    lock = (HERE / "package-lock.json").read_text(encoding="utf-8")
    installed = MODULES / "installed-lock.json"
    if not installed.exists() or installed.read_text(encoding="utf-8") != lock:
        MODULES.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, MODULES / name)
        run(["npm", "ci", "--prefix", MODULES, "--ignore-scripts", "--no-audit", "--no-fund"],
            timeout_s=300)
        installed.write_text(lock, encoding="utf-8")
    return MODULES / "node_modules"


def test_the_lock_names_no_registry():
    lock = (HERE / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert not re.search(r'https?://[^"]*\.tgz', lock)


def node(target, modules, script, *words):
    return run(["node", HERE / script, target.port, *words], timeout_s=120,
               env={"NODE_PATH": str(modules)})


@pytest.mark.parametrize("protocol", ["2", "3"])
@pytest.mark.parametrize("script", ["ioredis.cjs", "node_redis.cjs"])
def test_library(target, modules, script, protocol):
    run(["redis-cli", "-p", target.port, "FLUSHALL"])
    said = node(target, modules, script, protocol).stdout.decode()
    assert said.strip().endswith("all done"), said


@pytest.mark.parametrize("script", ["ioredis.cjs", "node_redis.cjs"])
def test_password(new_password_target, modules, script):
    target = new_password_target("s3cret")
    said = node(target, modules, script, "3", "s3cret").stdout.decode()
    assert said.strip().endswith("all done"), said


@pytest.mark.parametrize("script", ["ioredis.cjs", "node_redis.cjs"])
def test_reconnects_after_the_server_was_killed(new_target, modules, script):
    import subprocess
    target = new_target()
    child = subprocess.Popen(["node", str(HERE / script), str(target.port), "3", "", "reconnect"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT,
                             env={"NODE_PATH": str(modules), "PATH": "/usr/bin:/bin"})
    try:
        assert child.stdout.readline() == b"connected\n"
        target.front.kill()
        target.front.start()
        child.stdin.write(b"go\n")
        child.stdin.close()
        said = child.stdout.read()
        assert child.wait(30) == 0 and said.endswith(b"reconnected\n"), said
    finally:
        if child.poll() is None:
            child.kill()
            child.wait(10)
