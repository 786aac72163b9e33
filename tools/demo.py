#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The demonstration: the same skewed load on the same 32 real redis-servers, once without a cache
and once with each way of caching.

Each shard, leaf and spine is limited to a rate, so that two cores can stand for four racks; the
limits, not the processor, decide the throughput. Results go to stdout, progress to stderr.
"""

import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness import (HarnessError, RedisServer, Tier, ballast_binary, run,  # noqa: E402
                     wait_until)

VALUE_SIZE = 64
SAMPLE = 4  # so slow a rack would be known only after minutes by one read in 64
LEAST_GAIN = 3.0
MECHANISMS = {
    "nocache": "NoCache",
    "partition": "CachePartition",
    "replication": "CacheReplication",
    "distcache": "DistCache",
}


class Say:
    """Progress on stderr: one line rewritten on a terminal, whole lines elsewhere."""

    def __init__(self):
        self.terminal = sys.stderr.isatty()

    def __call__(self, words, passing=False):
        if self.terminal:
            sys.stderr.write(f"\r\x1b[K{words}")
        elif not passing:
            sys.stderr.write(f"{words}\n")
        sys.stderr.flush()

    def clear(self):
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


say = Say()


def status_of(tier):
    url = f"http://127.0.0.1:{tier.admin_port}/status"
    with urllib.request.urlopen(url, timeout=5) as reply:
        return json.load(reply)


def difference(before, after):
    """What happened between two /status documents: requests by shard, by node, and hits."""
    def gained(field, key):
        old = {row["name"]: row[key] for row in before[field]}
        return [row[key] - old[row["name"]] for row in after[field]]
    return {
        "shards": gained("shards", "requests"),
        "nodes": gained("nodes", "requests"),
        "hits": sum(gained("nodes", "hits")),
        "reads": (after["router"]["requests"] - before["router"]["requests"]
                  - after["router"]["writes"] + before["router"]["writes"]),
    }


def busiest(counts):
    """The largest count over the mean; None where nothing was counted."""
    return max(counts) * len(counts) / sum(counts) if sum(counts) else None


def start_shards(options, stack):
    count = options.racks * options.shards
    say(f"starting {count} redis-servers in {options.racks} racks")

    def start(number):
        return RedisServer(name=f"shard{number}")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(start, number) for number in range(count)]
        concurrent.futures.wait(jobs)
    for job in jobs:
        if job.exception() is None:
            stack.enter_context(job.result())
    shards = [job.result() for job in jobs]
    return [shards[i:i + options.shards] for i in range(0, count, options.shards)]


def load(options, racks):
    say(f"writing {options.keys:,} keys")
    with Tier(racks, options.spines, ["--mechanism", "nocache"]) as tier:
        run([ballast_binary(), "bench", "--target", tier.address, "--keys", options.keys, "--load",
             "--value-size", VALUE_SIZE, "--seconds", 0])
        tier.stop()


def watch(child, until, words):
    """Waits until that instant, or until the process ends."""
    while (left := until - time.monotonic()) > 0 and child.poll() is None:
        say(f"{words}: {left:.0f} s left", passing=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(min(left, 0.5))


def measure(options, racks, mechanism):
    limits = ["--mechanism", mechanism, "--shard-rate", options.rate,
              "--node-rate", options.rate * options.shards,
              "--cache-objects", options.cache_objects, "--shard-timeout", "20s",
              "--sample", SAMPLE]
    argv = [ballast_binary(), "bench", "--keys", options.keys, "--zipf", options.zipf,
            "--writes", options.writes,
            "--value-size", VALUE_SIZE, "--connections", options.connections, "--verify", "--json",
            "--seconds", options.seconds, "--warmup", options.warmup]
    words = f"{MECHANISMS[mechanism]}: {options.warmup} s of warm-up, {options.seconds} s measured"
    say(words)
    with Tier(racks, options.spines, limits) as tier:
        wait_until(lambda: status_of(tier)["ready"], what="the tier")
        child = subprocess.Popen([str(word) for word in argv + ["--target", tier.address]],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            begun = time.monotonic() + options.warmup
            watch(child, begun, words)
            before = status_of(tier)
            watch(child, begun + options.seconds - 0.2, words)
            moved = difference(before, status_of(tier))
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
            child.wait()
        if not out.startswith(b"{"):
            raise HarnessError(f"ballast bench failed: {err.decode(errors='replace')}")
        tier.stop()
    return result_row(options, mechanism, json.loads(out), moved)


def result_row(options, mechanism, bench, moved):
    verify = bench["verify"]
    return {
        "mechanism": mechanism,
        "throughput": bench["throughput"],
        "units": bench["throughput"] / options.rate,
        "p50_ms": bench["latency"]["all"]["p50_us"] / 1000,
        "p99_ms": bench["latency"]["all"]["p99_us"] / 1000,
        "busiest_shard": busiest(moved["shards"]),
        "busiest_node": busiest(moved["nodes"]),
        "hit_ratio": moved["hits"] / max(moved["reads"], 1),
        "errors": bench["errors"],
        "error_texts": bench["error_texts"],
        "checked_reads": sum(verify[name] for name in verify if name != "unsure_keys"),
        "stale_reads": verify["stale_reads"],
        "other_violations": (verify["lost_values"] + verify["foreign_replies"]
                             + verify["out_of_order"]),
    }


def table(rows):
    heads = ["mechanism", "requests/s", "in units of", "p50", "p99", "busiest", "busiest", "hit",
             "stale"]
    units = ["", "", "one shard", "ms", "ms", "shard/mean", "node/mean", "ratio", "reads"]

    def ratio(value):
        return "-" if value is None else f"{value:.2f}"
    cells = [heads, units]
    for row in rows:
        cells.append([MECHANISMS[row["mechanism"]], f"{row['throughput']:,.0f}",
                      f"{row['units']:.1f}", f"{row['p50_ms']:.1f}", f"{row['p99_ms']:.1f}",
                      ratio(row["busiest_shard"]), ratio(row["busiest_node"]),
                      f"{100 * row['hit_ratio']:.0f} %", f"{row['stale_reads']}"])
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    return "\n".join(
        ("  ".join([line[0].ljust(widths[0])]
                   + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])])).rstrip()
        for line in cells)


def verdict(rows):
    """What is wrong with the results, as sentences; empty if all is good."""
    by_name = {row["mechanism"]: row for row in rows}
    wrong = [f"{MECHANISMS[row['mechanism']]}: {row['stale_reads']} stale reads and "
             f"{row['other_violations']} other violations"
             for row in rows if row["stale_reads"] or row["other_violations"]]
    for row in rows:
        if row["errors"]:
            first = next(iter(row["error_texts"]), "")
            wrong.append(f"{MECHANISMS[row['mechanism']]}: {row['errors']} errors: {first}")
    if not {"distcache", "nocache"} <= by_name.keys():
        return None, wrong
    gain = by_name["distcache"]["throughput"] / max(by_name["nocache"]["throughput"], 1)
    if gain < LEAST_GAIN:
        wrong.append(f"DistCache carries {gain:.1f} times NoCache, not {LEAST_GAIN:g} times")
    return gain, wrong


def show(options, rows):
    gain, wrong = verdict(rows)
    if options.json:
        print(json.dumps({"rate": options.rate, "connections": options.connections,
                          "cache_objects": options.cache_objects, "gain": gain, "wrong": wrong,
                          "rows": rows}, indent=2))
        return wrong
    shards = options.racks * options.shards
    node_rate = options.rate * options.shards
    print(f"""
{shards} redis-servers in {options.racks} racks, {options.racks} leaves, {options.spines} spines;
{options.keys:,} keys, Zipf {options.zipf}, {100 * options.writes:g} % writes, \
{VALUE_SIZE}-byte values.
A shard answers {options.rate:,} requests/s at most, a leaf or spine {node_rate:,};
{options.cache_objects:,} objects a node; {options.connections} connections.

{table(rows)}

{sum(row['checked_reads'] for row in rows):,} reads were checked while running.""")
    if wrong:
        print("\n".join(wrong))
    elif gain:
        print(f"DistCache carries {gain:.1f} times what the shards carry alone; no stale read.")
    program = ballast_binary()
    with contextlib.suppress(ValueError):
        program = program.relative_to(pathlib.Path.cwd())
    print(f"""
With your own shards and your own client:

  {program} cache up --rack 10.0.0.1:6379,10.0.0.2:6379 --rack 10.0.0.3:6379 --listen :7000
  redis-cli -p 7000
""")
    return wrong


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("--rate", type=int, default=400, metavar="R",
                        help="requests a second of one shard (default %(default)s)")
    parser.add_argument("--connections", type=int, default=512, metavar="N",
                        help="client connections (default %(default)s)")
    parser.add_argument("--cache-objects", type=int, default=200, metavar="N",
                        help="objects a node holds (default %(default)s)")
    parser.add_argument("--warmup", type=int, default=8, metavar="S",
                        help="seconds before measuring (default %(default)s)")
    parser.add_argument("--seconds", type=int, default=10, metavar="S",
                        help="seconds measured (default %(default)s)")
    parser.add_argument("--racks", type=int, default=4, metavar="N",
                        help="racks, each with a leaf (default %(default)s)")
    parser.add_argument("--shards", type=int, default=8, metavar="N",
                        help="redis-servers in each rack (default %(default)s)")
    parser.add_argument("--spines", type=int, default=4, metavar="N", help="default %(default)s")
    parser.add_argument("--keys", type=int, default=100_000, metavar="N",
                        help="default %(default)s")
    parser.add_argument("--zipf", type=float, default=0.99, metavar="A",
                        help="skew of the requests (default %(default)s)")
    parser.add_argument("--writes", type=float, default=0.02, metavar="SHARE",
                        help="share of writes (default %(default)s)")
    parser.add_argument("--mechanism", action="append", choices=MECHANISMS,
                        help="only this one; may be repeated (default all)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(arguments)


def stop_on_signal(*_):
    raise KeyboardInterrupt


def main():
    options = parse(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_on_signal)
    try:
        with contextlib.ExitStack() as stack:
            racks = start_shards(options, stack)
            load(options, racks)
            rows = [measure(options, racks, mechanism)
                    for mechanism in options.mechanism or MECHANISMS]
            say("stopping the redis-servers", passing=True)
        say.clear()
        return 1 if show(options, rows) else 0
    except KeyboardInterrupt:
        say.clear()
        print("demo: interrupted; everything it started has been stopped", file=sys.stderr)
        return 130
    except (HarnessError, OSError) as error:
        say.clear()
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
