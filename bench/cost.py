#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of one operation: redis-server, twemproxy and Ballast side by side, each its own
share, without pipelining and with 16 requests in flight; medians of interleaved repetitions."""

import contextlib
import pathlib
import statistics
import sys

import common
from harness import RedisServer, Server, Tier, free_port, ping, run

CONNECTIONS = 50
KEYS = 16
VALUE = "v" * 64
# (what, against what, pipeline) -> the largest good ratio
BARS = {("cold GET", "twemproxy GET"): {1: 0.9, 16: 0.9},
        ("cold SET", "twemproxy SET"): {1: 0.9, 16: 0.9},
        ("hot GET", "redis GET"): {1: 1.0, 16: 1.2}}


class Twemproxy(Server):
    """nutcracker before one redis-server."""

    def __init__(self, shard):
        super().__init__("twemproxy")
        self.port = free_port()
        self.stats_port = free_port()
        (self.directory / "nutcracker.yml").write_text(
            f"bench:\n  listen: 127.0.0.1:{self.port}\n  hash: fnv1a_64\n"
            f"  distribution: ketama\n  redis: true\n  servers:\n   - {shard.address}:1\n",
            encoding="utf-8")
        self.begin()

    def argv(self):
        return ["nutcracker", "-c", self.directory / "nutcracker.yml", "-s", self.stats_port]

    def ready(self):
        return ping(self.port)


def cpu_ns(pid):
    """Time on a processor of all threads, from the scheduler."""
    return sum(int(path.read_text(encoding="ascii").split()[0])
               for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def one_run(server, command, pipeline, requests):
    words = {"GET": ["GET", "key:__rand_int__"], "SET": ["SET", "key:__rand_int__", VALUE]}
    argv = ["redis-benchmark", "-p", server.port, "-c", CONNECTIONS, "-P", pipeline, "-q",
            "-n", requests, "-r", KEYS, *words[command]]
    before = cpu_ns(server.pid)
    run(argv, timeout_s=300)
    return (cpu_ns(server.pid) - before) / requests / 1000


def start(stack):
    def redis():
        return stack.enter_context(RedisServer())

    def tier(mechanism):
        options = ["--mechanism", mechanism, "--log-level", "warning"]
        return stack.enter_context(Tier([[redis()]], 1, options))
    alone, proxy = redis(), stack.enter_context(Twemproxy(redis()))
    cold, hot = tier("nocache"), tier("distcache")
    for server in (alone, proxy, cold, hot):
        common.load(f"127.0.0.1:{server.port}", "--keys", KEYS, "--load", "--seconds", 0)
    common.load(hot.address, "--keys", KEYS, "--uniform", "--seconds", 3)
    return {"redis GET": (alone, "GET"), "twemproxy GET": (proxy, "GET"),
            "cold GET": (cold, "GET"), "hot GET": (hot, "GET"),
            "redis SET": (alone, "SET"), "twemproxy SET": (proxy, "SET"),
            "cold SET": (cold, "SET")}


def hit_share(tier, before):
    after = common.status_of(tier)
    hits = sum(row["hits"] for row in after["nodes"]) - sum(row["hits"] for row in before["nodes"])
    return hits / max(after["router"]["requests"] - before["router"]["requests"], 1)


def measure(options):
    with contextlib.ExitStack() as stack:
        cases = start(stack)
        hot = cases["hot GET"][0]
        before = common.status_of(hot)
        costs = {pipeline: {name: [] for name in cases} for pipeline in (1, 16)}
        for turn in range(options.repetitions):
            for pipeline, found in costs.items():
                for name, (server, command) in cases.items():
                    common.say(f"turn {turn + 1} of {options.repetitions}, pipeline {pipeline}: "
                               f"{name}")
                    requests = options.requests * (4 if pipeline > 1 else 1)
                    found[name].append(one_run(server, command, pipeline, requests))
        share = hit_share(hot, before)
    medians = {pipeline: {name: statistics.median(values) for name, values in found.items()}
               for pipeline, found in costs.items()}
    return medians, share


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="default %(default)s")
    parser.add_argument("--requests", type=int, default=100_000,
                        help="of one run without pipelining; with it four times as many "
                             "(default %(default)s)")
    options = parser.parse_args()
    medians, share = measure(options)
    lines = [f"{'CPU µs per operation':24}{'pipeline 1':>12}{'pipeline 16':>13}"]
    lines += [f"{name:24}{cost:12.2f}{medians[16][name]:13.2f}"
              for name, cost in medians[1].items()]
    lines.append("")
    ratios, good = [], share > 0.99
    for (what, against), bars in BARS.items():
        for pipeline, bar in bars.items():
            ratio = medians[pipeline][what] / medians[pipeline][against]
            good = good and ratio <= bar
            ratios.append({"what": what, "against": against, "pipeline": pipeline,
                           "ratio": ratio, "bar": bar, "good": ratio <= bar})
            lines.append(f"{what} / {against}, pipeline {pipeline}: {ratio:.2f} "
                         f"({'within' if ratio <= bar else 'OVER'} {bar})")
    lines.append(f"hot GETs answered by a copy: {100 * share:.1f} %")
    versions = common.versions()
    lines.append("; ".join(versions.values()))
    return common.finish(options, {"cost_us": medians, "ratios": ratios, "hit_share": share,
                                   "versions": versions}, "\n".join(lines), good)


if __name__ == "__main__":
    sys.exit(main())
