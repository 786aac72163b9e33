#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real servers of unequal capacity behind one VIP: ECMP, static weights, least connections and AWFD
in one run, by DSR and NAT, IPv4 and IPv6, with and without keep-alive. nginx compresses answers of
heavy-tailed sizes, each in a control group with a share of a core; requests come at random times,
the same for all, at a share of what the servers can do together."""

import itertools
import pathlib
import subprocess
import sys
import time

import common
from web_farm import CORES, VIPS, Farm, make_plan

from control import Balancer, vip
from network import Network, Unavailable

KEEP_ALIVE = 4  # requests in a row on a connection
NAMES = [f"web{i}" for i in range(len(CORES))]
# What `lb.toml` says: scheduler, load source, static weights.
SCHEDULERS = {"ecmp": ("ecmp", "none", None),
              "static, equal": ("static", "none", [1] * len(CORES)),
              "static, by cores": ("static", "none", [round(10 * cores) for cores in CORES]),
              "least connections": ("least-connections", "none", None),
              "awfd": ("awfd", "agent", None)}
BARS = {"throughput": "requests a second", "mean_s": "mean completion, s",
        "p99_s": "99th percentile, s"}


def vip_of(forwarding, family, scheduler):
    name, load, weights = SCHEDULERS[scheduler]
    made = vip(VIPS[0 if family == 4 else 1], names=NAMES, family=family, scheduler=name,
               load=load, forwarding=forwarding)
    for instance, weight in zip(made["instance"], weights or []):
        instance["weight"] = weight
    return made


def run_case(farm, balancer, options, rate, case):
    """One row for every scheduler."""
    forwarding, family, requests = case
    farm.answer(forwarding)
    plan = make_plan(VIPS[0 if family == 4 else 1], rate, options.seconds, requests, options.seed)
    rows = {}
    for scheduler in SCHEDULERS:
        balancer.apply([vip_of(forwarding, family, scheduler)])
        balancer.wait_weights("weights", **dict.fromkeys(NAMES, True))
        time.sleep(2)
        rows[scheduler] = farm.measure(plan)
        common.say(f"{case_name(case)}, {scheduler}: {rows[scheduler]}")
    return rows


def case_name(case):
    forwarding, family, requests = case
    way = "DSR" if forwarding == "l2" else forwarding.upper()
    return f"{way}, IPv{family}, {'keep-alive' if requests > 1 else 'close'}"


def run_all(net, options):
    farm = Farm(net)
    try:
        time.sleep(1)
        cost = farm.cost_s()
        rate = options.load * sum(CORES) / cost
        common.say(f"a request costs {1e3 * cost:.1f} ms of a core; {rate:.0f} a second")
        balancer = Balancer(net, [vip_of("l2", 4, next(iter(SCHEDULERS)))])
        try:
            cases = itertools.product(options.forwarding.split(","), options.families,
                                      (1, KEEP_ALIVE))
            results = {case_name(case): run_case(farm, balancer, options, rate, case)
                       for case in cases}
        finally:
            balancer.close()
        return {"cost_s": cost, "rate": rate, "results": results}
    finally:
        farm.close()


def table(results):
    lines = [f"| {'':<40} | requests/s | mean s | p99 s | failed |",
             f"|{'-' * 42}|--:|--:|--:|--:|"]
    for case, rows in results.items():
        lines += [f"| {case + ', ' + name:<40} | {one['throughput']:.1f} | {one['mean_s']:.3f} | "
                  f"{one['p99_s']:.3f} | {one['failed']} |" for name, one in rows.items()]
    return "\n".join(lines)


def plot(results, path):
    """Bars by gnuplot: a row for each measure, a group for each case."""
    colours = ("#bbbbbb", "#888888", "#66ccee", "#228833", "#4477aa")
    script = [f"set terminal svg size 1000,{300 * len(BARS)} font 'sans-serif,13' "
              "background 'white'",
              f'set output "{path}"', f"set multiplot layout {len(BARS)},1",
              "set style data histograms", "set style histogram clustered gap 1",
              "set style fill solid", "set grid ytics", "set key outside right top",
              "set bmargin 5", "set lmargin 8", "set rmargin 26"]
    for key, title in BARS.items():
        script += [f"$data{key} << EOD"]
        script += ["\t".join([f'"{case}"'.replace(", ", "\\n")] +
                             [str(one[key]) for one in rows.values()])
                   for case, rows in results.items()]
        columns = [f'$data{key} using {i + 2}:xtic(1) title "{name}" linecolor rgb "{colour}"'
                   for i, (name, colour) in enumerate(zip(SCHEDULERS, colours))]
        script += ["EOD", f'set title "{title}"', "set yrange [0:*]",
                   'set datafile separator "\\t"', "plot " + ", ".join(columns)]
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def is_better(results, by=1.2):
    """Whether AWFD is better than what knows nothing of capacity, by so much, in all cases."""
    return all(rows["awfd"]["throughput"] >= by * rows[other]["throughput"] and
               rows["awfd"]["mean_s"] * by <= rows[other]["mean_s"]
               for rows in results.values() for other in ("ecmp", "static, equal"))


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--load", type=float, default=0.9, help="of what all servers can do (0.9)")
    parser.add_argument("--seconds", type=float, default=12, help="for each scheduler (12)")
    parser.add_argument("--seed", type=int, default=11, help="of the requests' times (11)")
    parser.add_argument("--forwarding", default="l2,nat", help="l2, ipip, gue, nat (l2,nat)")
    parser.add_argument("--families", type=lambda text: [int(each) for each in text.split(",")],
                        default=[4, 6], help="of addresses (4,6)")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE", help="an SVG of the results")
    options = parser.parse_args()
    try:
        net = Network()
    except Unavailable as reason:
        print(f"SKIP {reason}", file=sys.stderr)
        return 0
    try:
        seen = run_all(net, options)
    except Unavailable as reason:
        print(f"SKIP {reason}", file=sys.stderr)
        return 0
    finally:
        net.close()
    results = seen["results"]
    if options.plot:
        plot(results, options.plot)
    text = table(results) + f"\n\nnginx limited to {', '.join(map(str, CORES))} cores, load " \
        f"{options.load:g} of it: {seen['rate']:.0f} requests a second of " \
        f"{1e3 * seen['cost_s']:.1f} ms; keep-alive: {KEEP_ALIVE} requests a connection"
    return common.finish(options, seen, text, is_better(results))


if __name__ == "__main__":
    sys.exit(main())
