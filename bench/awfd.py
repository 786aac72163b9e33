#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real servers of unequal capacity behind one VIP: ECMP, equal static weights, least connections
and AWFD in one run. nginx compresses answers of heavy-tailed sizes, each in a control group with a
share of a core; requests come at random times, at a share of what all instances can do together."""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import common

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/netns"))
from control import SECRET, VIPS, Balancer, add_web, build, vip  # noqa: E402
from network import NGINX, Network, Unavailable  # noqa: E402

CORES = (0.06, 0.12, 0.18, 0.24)
SIZES = [32_768 << step for step in range(7)]
TAIL = 1.2  # the next larger size is 2^-TAIL as frequent
GROUPS = pathlib.Path("/sys/fs/cgroup")
SCHEDULERS = ("ecmp", "static", "least-connections", "awfd")
PATIENCE_S = 10

# One request a connection, or some in a row on it; at times that are given. Prints the seconds that
# each took, -1 for one that failed.
CLIENT = """
import asyncio, json, sys, time
plan = json.load(sys.stdin)
host, patience = plan['host'], plan['patience']
took = []

async def ask(reader, writer, name, last):
    writer.write(f'GET /{name} HTTP/1.1\\r\\nHost: web\\r\\nAccept-Encoding: gzip\\r\\n'
                 f'Connection: {"close" if last else "keep-alive"}\\r\\n\\r\\n'.encode())
    head = await reader.readuntil(b'\\r\\n\\r\\n')
    if b' 200 ' not in head.split(b'\\r\\n')[0]:
        raise OSError(head[:40])
    while size := int(await reader.readline(), 16):
        await reader.readexactly(size + 2)
    await reader.readline()

async def session(begin, at, names):
    await asyncio.sleep(max(0, begin + at - time.monotonic()))
    due = time.monotonic()
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, 80), patience)
        for i, name in enumerate(names):
            await asyncio.wait_for(ask(reader, writer, name, i + 1 == len(names)), patience)
            took.append(time.monotonic() - due)
            due = time.monotonic()
        writer.close()
    except (OSError, ValueError, EOFError, asyncio.TimeoutError):
        took.append(-1)

async def main():
    begin = time.monotonic() + 0.2
    await asyncio.gather(*(session(begin, at, names) for at, names in plan['sessions']))
    print(json.dumps({'took': took, 'seconds': time.monotonic() - begin}))

asyncio.run(main())
"""


class Group:
    """A control group of version 1 or 2 with a share of a core."""

    def __init__(self, name):
        self.name = name
        self.second = (GROUPS / "cgroup.controllers").exists()
        self.folders = ([GROUPS / name] if self.second
                        else [GROUPS / "cpu" / name, GROUPS / "cpuacct" / name])
        try:
            if self.second:
                (GROUPS / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
            for folder in self.folders:
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise Unavailable(f"no control group can be made: {error}") from error

    def limit(self, cores):
        period = 20_000
        quota = int(cores * period)
        if self.second:
            (self.folders[0] / "cpu.max").write_text(f"{quota} {period}", encoding="ascii")
        else:
            (self.folders[0] / "cpu.cfs_period_us").write_text(str(period), encoding="ascii")
            (self.folders[0] / "cpu.cfs_quota_us").write_text(str(quota), encoding="ascii")

    def enter(self, pid):
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def used_s(self):
        if self.second:
            lines = (self.folders[0] / "cpu.stat").read_text("ascii").split()
            return int(lines[lines.index("usage_usec") + 1]) / 1e6
        return int((self.folders[1] / "cpuacct.usage").read_text("ascii")) / 1e9

    def close(self):
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)


def make_files(folder, seed=7):
    """Text that takes its time to compress."""
    random.seed(seed)
    words = ["".join(random.choices("abcdefghij", k=random.randint(2, 9))) for _ in range(5000)]
    text = " ".join(random.choices(words, k=SIZES[-1] // 6)).encode()
    for size in SIZES:
        (folder / f"text{size}").write_bytes(text[:size])


def start_web(net, i, groups, address):
    add_web(net, i, serve=False)
    folder = net.folder / f"web{i}"
    folder.mkdir()
    folder.chmod(0o755)
    make_files(folder)
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;\n"
        "events { worker_connections 4096; }\nhttp { access_log off; gzip on; gzip_comp_level 9; "
        "gzip_types *; gzip_min_length 0; default_type text/plain; keepalive_timeout 30; "
        f"server {{ listen {address}:80; listen 10.0.0.1{i}:80; root {folder}; }} }}\n",
        encoding="utf-8")
    group = Group(f"ballast-bench-{os.getpid()}-{i}")
    groups.append(group)
    web = net.start(f"web{i}", NGINX, "-p", folder, "-c", config, "-e", folder / "error")
    group.enter(web.pid)
    net.start(f"web{i}", common.ballast_binary(), "lb", "agent", "--listen", "0.0.0.0:4780",
              "--cgroup", f"/{group.name}", "--port", "80",
              env={**os.environ, "BALLAST_LB_SECRET": SECRET})


def weights_of_sizes():
    shares = [2 ** (-TAIL * step) for step in range(len(SIZES))]
    return [share / sum(shares) for share in shares]


def mean_cost_s(net, group):
    """Of a request, in seconds of a core: each size asked for without a limit."""
    costs = []
    for size in SIZES:
        before = group.used_s()
        for _ in range(4):
            net.inside("client", "curl", "-s", "-o", "/dev/null", "-H", "Accept-Encoding: gzip",
                       f"http://10.0.0.10/text{size}")
        costs.append((group.used_s() - before) / 4)
    return sum(share * cost for share, cost in zip(weights_of_sizes(), costs))


def plan(host, rate, seconds, requests, seed):
    """Sessions of `requests` requests each at Poisson times: the same for every scheduler."""
    draw = random.Random(seed)
    sessions, at = [], 0.0
    while at < seconds:
        at += draw.expovariate(rate / requests)
        names = [f"text{size}" for size in draw.choices(SIZES, weights_of_sizes(), k=requests)]
        sessions.append((at, names))
    return {"host": host, "patience": PATIENCE_S, "sessions": sessions}


def measure(net, plan_of):
    done = subprocess.run(["nsenter", f"--net=/run/netns/{net.space('client')}", "/usr/bin/python3",
                           "-c", CLIENT], input=json.dumps(plan_of), capture_output=True, text=True,
                          timeout=300, check=True)
    said = json.loads(done.stdout)
    good = sorted(took for took in said["took"] if took >= 0)
    return {"throughput": len(good) / said["seconds"], "mean_s": statistics.mean(good),
            "p99_s": good[int(0.99 * (len(good) - 1))], "failed": len(said["took"]) - len(good)}


def run_all(net, options):
    build(net, webs=0)
    groups = []
    try:
        for i in range(len(CORES)):
            start_web(net, i, groups, VIPS[0])
        time.sleep(1)
        cost = mean_cost_s(net, groups[0])
        rate = options.load * sum(CORES) / cost
        for group, cores in zip(groups, CORES):
            group.limit(cores)
        common.say(f"a request costs {1e3 * cost:.1f} ms of a core; {rate:.0f} a second")
        results = {}
        names = [f"web{i}" for i in range(len(CORES))]
        balancer = Balancer(net, [vip(names=names, scheduler="ecmp")])
        try:
            balancer.wait_weights("weights", **{name: True for name in names})
            for keep in (1, 4):
                for scheduler in SCHEDULERS:
                    load = "agent" if scheduler == "awfd" else "none"
                    balancer.apply([vip(names=names, scheduler=scheduler, load=load,
                                        forwarding=options.forwarding)])
                    time.sleep(2)
                    name = scheduler + (", 4 a connection" if keep > 1 else "")
                    common.say(name)
                    results[name] = measure(net, plan(VIPS[0], rate, options.seconds, keep, 11))
        finally:
            balancer.close()
        return results
    finally:
        for process in net.processes:
            process.kill()
        for group in groups:
            group.close()


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--load", type=float, default=0.9,
                        help="of what all instances can do (0.9)")
    parser.add_argument("--seconds", type=float, default=25, help="for each scheduler (25)")
    parser.add_argument("--forwarding", default="l2", help="l2, ipip or gue (l2)")
    options = parser.parse_args()
    try:
        net = Network()
    except Unavailable as reason:
        print(f"SKIP {reason}", file=sys.stderr)
        return 0
    try:
        results = run_all(net, options)
    except Unavailable as reason:
        print(f"SKIP {reason}", file=sys.stderr)
        return 0
    finally:
        net.close()
    text = f"{'':<36}requests/s   mean s    p99 s   failed\n"
    text += "\n".join(f"{name:<36}{one['throughput']:>10.1f} {one['mean_s']:>8.3f} "
                      f"{one['p99_s']:>8.3f} {one['failed']:>8}" for name, one in results.items())
    text += f"\nnginx limited to {', '.join(map(str, CORES))} cores, load {options.load:g} of it"
    return common.finish(options, {"results": results}, text, True)


if __name__ == "__main__":
    sys.exit(main())
