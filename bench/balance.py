#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Load of the busiest node over the mean: eight saturated nodes, 100 hot keys, 20 clients and
one."""

import contextlib
import sys
import time
import subprocess

import common
from harness import RedisServer, Tier, ballast_binary

RACKS = 4
KEYS = 100
NODE_RATE = 500
MOST = 1.15
PIPELINE = 64


def measure(clients, seconds, alpha):
    with contextlib.ExitStack() as stack:
        racks = [[stack.enter_context(RedisServer())] for _ in range(RACKS)]
        tier = stack.enter_context(Tier(racks, RACKS, ["--node-rate", NODE_RATE, "--sample", 1,
                                                       "--shard-timeout", "20s"]))
        child = stack.enter_context(subprocess.Popen(
            [str(word) for word in (
                ballast_binary(), "bench", "--target", tier.address, "--keys", KEYS, "--zipf",
                alpha, "--connections", clients, "--pipeline", PIPELINE, "--warmup", 3,
                "--seconds", seconds + 2, "--load")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        stack.callback(child.kill)
        time.sleep(4)
        before = common.status_of(tier)["nodes"]
        time.sleep(seconds)
        after = common.status_of(tier)["nodes"]
        rates = [(new["requests"] - old["requests"]) / seconds
                 for new, old in zip(after, before)]
    return {"clients": clients, "rates": rates, "ratio": max(rates) * len(rates) / sum(rates),
            "busiest_of_limit": max(rates) / NODE_RATE}


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="default %(default)s")
    parser.add_argument("--zipf", type=float, default=0.5,
                        help="exponent of the hot keys' popularity (default %(default)s)")
    options = parser.parse_args()
    rows = []
    for clients in (20, 1):
        common.say(f"{clients} clients")
        rows.append(measure(clients, options.seconds, options.zipf))
    good = all(row["ratio"] <= MOST for row in rows)
    text = "\n".join(
        f"{row['clients']} clients, 8 nodes, {KEYS} keys: busiest node / mean {row['ratio']:.3f} "
        f"({'within' if row['ratio'] <= MOST else 'OVER'} {MOST}), the busiest at "
        f"{100 * row['busiest_of_limit']:.0f} % of its limit" for row in rows)
    return common.finish(options, {"rows": rows}, text, good)


if __name__ == "__main__":
    sys.exit(main())
