# SPDX-License-Identifier: Apache-2.0
"""The units in packaging/ as systemd reads them."""

import shutil
import subprocess

import pytest

from harness import ROOT

UNITS = sorted((ROOT / "packaging").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_every_line(unit, tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    # Where the program is installed it need not be here.
    copy = tmp_path / unit.name
    text = unit.read_text("utf-8")
    assert "/usr/bin/ballast " in text
    copy.write_text(text.replace("/usr/bin/ballast ", "/bin/true "), "utf-8")
    told = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True,
                          text=True, timeout=60, check=False)
    assert told.returncode == 0, told.stderr
    about = [line for line in told.stderr.splitlines() if unit.name in line]
    assert not about, told.stderr


def test_the_balancer_has_no_right_it_does_not_need():
    text = (ROOT / "packaging/ballast-lb.service").read_text("utf-8")
    assert "CapabilityBoundingSet=CAP_BPF CAP_NET_ADMIN CAP_PERFMON\n" in text
    for unit in UNITS:
        assert "NoNewPrivileges=yes" in unit.read_text("utf-8"), unit.name
