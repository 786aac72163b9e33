#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a tier with 10,000 idle client connections, each of which has sent one command."""

import contextlib
import pathlib
import resource
import socket
import sys

import common
from harness import RedisServer, Tier, encode

MOST_MIB = 200


def resident_mib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines()
                if line.startswith("VmRSS")) / 1024


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--connections", type=int, default=10_000, help="default %(default)s")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = ["--max-clients", options.connections + 10]
    with RedisServer() as shard, Tier([[shard]], 1, limit) as tier, contextlib.ExitStack() as stack:
        before = resident_mib(tier.pid)
        common.say(f"opening {options.connections} connections")
        for _ in range(options.connections):
            link = stack.enter_context(socket.create_connection(("127.0.0.1", tier.port), 10))
            link.sendall(encode("GET", "key"))
            if (reply := link.recv(64)) != b"$-1\r\n":
                raise SystemExit(f"a connection was refused: {reply}")
        after = resident_mib(tier.pid)
        counted = common.status_of(tier)["router"]["clients"]
        if counted != options.connections:
            raise SystemExit(f"the tier counts {counted} clients")
    good = after < MOST_MIB
    text = (f"{options.connections} idle connections: {after:.0f} MiB resident, {before:.0f} MiB "
            f"without them ({'within' if good else 'OVER'} {MOST_MIB})")
    return common.finish(options, {"connections": options.connections, "resident_mib": after,
                                   "resident_mib_before": before}, text, good)


if __name__ == "__main__":
    sys.exit(main())
