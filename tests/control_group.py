# SPDX-License-Identifier: Apache-2.0
"""A control group of version 1 or 2 with a limit on processor time."""

import contextlib
import pathlib
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")


class ControlGroup:
    """Made on the spot; OSError where it may not be."""

    def __init__(self, name):
        self.name = f"/{name}"  # as the agent's --cgroup takes it
        self.second = (CGROUPS / "cgroup.controllers").exists()
        self.folders = ([CGROUPS / name] if self.second
                        else [CGROUPS / "cpu" / name, CGROUPS / "cpuacct" / name])
        try:
            if self.second:
                (CGROUPS / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
            for folder in self.folders:
                folder.mkdir(exist_ok=True)
        except OSError:
            for folder in self.folders:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise

    def limit(self, cores, period_us=100_000):
        quota = str(int(cores * period_us))
        if self.second:
            self.write(self.folders[0] / "cpu.max", f"{quota} {period_us}")
        else:
            self.write(self.folders[0] / "cpu.cfs_period_us", str(period_us))
            self.write(self.folders[0] / "cpu.cfs_quota_us", quota)

    def enter(self, pid):
        for folder in self.folders:
            self.write(folder / "cgroup.procs", str(pid))

    def used_s(self):
        """Processor seconds so far."""
        if self.second:
            words = (self.folders[0] / "cpu.stat").read_text("ascii").split()
            return int(words[words.index("usage_usec") + 1]) / 1e6
        return int((self.folders[1] / "cpuacct.usage").read_text("ascii")) / 1e9

    def close(self):
        """Its processes have ended or end within 10 s."""
        deadline = time.monotonic() + 10
        for folder in self.folders:
            while (folder / "cgroup.procs").read_text("ascii"):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{folder} still has processes")
                time.sleep(0.02)
            folder.rmdir()

    @staticmethod
    def write(file, words):
        file.write_text(words, encoding="ascii")
