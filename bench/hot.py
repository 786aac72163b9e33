#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Time from a key turning hot to its first answer by a copy, under a load of other keys."""

import contextlib
import socket
import statistics
import subprocess
import sys
import time

import common
from harness import RedisServer, Tier, ballast_binary, encode

MOST_S = 1.0
GIVE_UP_S = 10.0


def hits(tier):
    return sum(row["hits"] for row in common.status_of(tier)["nodes"])


def turn_hot(tier, number):
    """Seconds until copies answer reads of one fresh key, read over and over."""
    batch = encode("GET", f"hot:{number}") * 16
    with socket.create_connection(("127.0.0.1", tier.port), 10) as link:
        before, begun = hits(tier), time.monotonic()
        while (passed := time.monotonic() - begun) < GIVE_UP_S:
            link.sendall(batch)
            got = 0
            while got < 16 * len(b"$-1\r\n"):
                got += len(link.recv(65536))
            if hits(tier) > before:
                return passed
    return GIVE_UP_S


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--times", type=int, default=10, help="default %(default)s")
    options = parser.parse_args()
    with RedisServer() as shard, Tier([[shard]], 2) as tier, contextlib.ExitStack() as stack:
        # Uniform keys, so many that none of them is worth a copy.
        other = stack.enter_context(subprocess.Popen(
            [str(ballast_binary()), "bench", "--target", tier.address, "--keys", "10000000",
             "--uniform", "--rate", "2000", "--seconds", "600"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL))
        stack.callback(other.kill)
        time.sleep(2)
        seconds = []
        for number in range(options.times):
            common.say(f"key {number + 1} of {options.times}")
            seconds.append(turn_hot(tier, number))
    good = max(seconds) < MOST_S
    text = (f"a key turned hot is answered by a copy after {statistics.median(seconds):.2f} s "
            f"(median of {options.times}), at most {max(seconds):.2f} s "
            f"({'within' if good else 'OVER'} {MOST_S:g})")
    return common.finish(options, {"seconds": seconds}, text, good)


if __name__ == "__main__":
    sys.exit(main())
