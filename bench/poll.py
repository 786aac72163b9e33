#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A balancer with 1,000 instances whose load it asks every 100 ms: how late polls leave, the share
of a core that the whole process takes, and what a steady load has it write. One idle agent answers
under all addresses."""

import os
import pathlib
import statistics
import sys
import time

import common

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/netns"))
from control import SECRET, VIPS, Balancer  # noqa: E402
from control_group import ControlGroup  # noqa: E402
from network import Network, Unavailable  # noqa: E402

INSTANCES = 1000
LATE_BAR_MS = 20
CORE_BAR = 0.1
ADDRESSES = [f"10.9.{i // 250}.{i % 250 + 1}" for i in range(INSTANCES)]
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def vips(count):
    """The instances among so many VIPs."""
    each = INSTANCES // count
    return [{"name": f"vip{i}", "address": VIPS[0], "port": 80 + i, "load": "agent",
             "forwarding": "ipip", "health": "none",
             "instance": [{"name": f"web{i * each + j}", "address": address} for j, address in
                          enumerate(ADDRESSES[i * each:(i + 1) * each])]} for i in range(count)]


def build(net, group):
    net.host("lb", "10.0.0.2/24")
    net.host("webs", "10.0.0.3/24")
    net.inside("lb", "ip", "route", "add", "10.9.0.0/16", "via", "10.0.0.3")
    net.inside("webs", "ip", "route", "add", "local", "10.9.0.0/16", "dev", "lo")
    net.start("webs", common.ballast_binary(), "lb", "agent", "--listen", "0.0.0.0:4780",
              "--cgroup", group.name, env={**os.environ, "BALLAST_LB_SECRET": SECRET})


def processor_s(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS_A_SECOND


def answers(status):
    return sum(each["load"]["answers"] for vip in status["vips"] for each in vip["instances"])


def measure(net, seconds, count):
    balancer = Balancer(net, vips(count))
    try:
        time.sleep(3)
        before, spent, begun = balancer.status(), processor_s(balancer.pid), time.monotonic()
        time.sleep(seconds)
        core = (processor_s(balancer.pid) - spent) / (time.monotonic() - begun)
        after = balancer.status()
    finally:
        balancer.close()
    return {"core": core, "late_p99_ms": after["control"]["poll_late_p99_ms"],
            "answers_per_s": (answers(after) - answers(before)) / seconds,
            "map_writes": after["control"]["map_writes"] - before["control"]["map_writes"],
            "weights": sum(each["weight"] > 0 for vip in after["vips"]
                           for each in vip["instances"])}


def together(runs):
    """Medians, but every write counts."""
    return {**{key: statistics.median(run[key] for run in runs) for key in runs[0]},
            "map_writes": sum(run["map_writes"] for run in runs)}


def is_good(one):
    return (one["late_p99_ms"] < LATE_BAR_MS and one["core"] < CORE_BAR and one["map_writes"] == 0
            and one["answers_per_s"] > 9.9 * INSTANCES and one["weights"] == INSTANCES)


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of a run; default %(default)s")
    parser.add_argument("--rounds", type=int, default=3,
                        help="runs of each, whose medians count; default %(default)s")
    options = parser.parse_args()
    try:
        net = Network()
        group = ControlGroup(f"ballast-bench-{os.getpid()}")
    except (Unavailable, OSError) as reason:
        print(f"SKIP {reason}", file=sys.stderr)
        return 0
    try:
        build(net, group)
        runs = [{count: measure(net, options.seconds, count) for count in (1, 10, 100)}
                for _ in range(options.rounds)]
        results = {count: together([run[count] for run in runs]) for count in runs[0]}
    finally:
        net.close()
        group.close()
    text = f"{INSTANCES} instances asked every 100 ms, bars {LATE_BAR_MS} ms, " \
        f"{100 * CORE_BAR:.0f} % and no write\n"
    text += "\n".join(f"{count:>4} VIPs: {one['answers_per_s']:.0f} answers/s, polls late by "
                      f"{one['late_p99_ms']:.2f} ms (p99), {100 * one['core']:.1f} % of a core, "
                      f"{one['map_writes']} map writes" for count, one in results.items())
    return common.finish(options, {"results": results}, text, all(map(is_good, results.values())))


if __name__ == "__main__":
    sys.exit(main())
