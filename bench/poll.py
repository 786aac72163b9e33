#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A balancer's poll loop: 1,000 instances asked every 100 ms; how late polls leave, and the share
of a core it takes. One agent answers under all their addresses."""

import json
import subprocess
import sys
import time

import common
from harness import ballast_binary, free_port, run

INSTANCES = 1000
LATE_BAR_MS = 20
CORE_BAR = 0.1
SECRET = {"BALLAST_LB_SECRET": "only for this benchmark"}


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="default %(default)s")
    options = parser.parse_args()
    port = free_port()
    agent = subprocess.Popen([str(ballast_binary()), "lb", "agent", "--listen", f"0.0.0.0:{port}"],
                             env=SECRET, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        words = [f"127.0.{n // 250}.{n % 250 + 1}:{port}" for n in range(INSTANCES)]
        done = run([ballast_binary(), "lb", "load", "--json", "--seconds", options.seconds, *words],
                   env=SECRET, timeout_s=options.seconds + 30)
    finally:
        agent.terminate()
        agent.wait()
    found = json.loads(done.stdout)
    late_ms = found["late_us"]["p99"] / 1000
    core = found["processor_seconds"] / options.seconds
    answers = sum(row["answers"] for row in found["agents"])
    polls = sum(row["polls"] for row in found["agents"])
    good = late_ms < LATE_BAR_MS and core < CORE_BAR and answers > 0.99 * polls
    text = (f"{INSTANCES} instances every 100 ms: {polls} polls, {answers} answered; late by "
            f"{late_ms:.2f} ms (p99, bar {LATE_BAR_MS}), {100 * core:.1f} % of a core (bar "
            f"{100 * CORE_BAR:.0f})")
    return common.finish(options, {"polls": polls, "answers": answers, "late_p99_ms": late_ms,
                                   "core": core}, text, good)


if __name__ == "__main__":
    sys.exit(main())
