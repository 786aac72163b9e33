# SPDX-License-Identifier: Apache-2.0
"""Real web servers of unequal capacity behind a balancer, and clients that keep to a plan. One
network serves every way of forwarding: client and servers are in different subnets, the balancer is
in both."""

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
from control import SECRET, VIPS, add_web  # noqa: E402
from control_group import ControlGroup  # noqa: E402
from network import NGINX, Unavailable  # noqa: E402

CORES = (0.1, 0.1, 0.3, 0.7)
SIZES = [32_768 << step for step in range(7)]
TAIL = 1.2  # the next larger size is 2^-TAIL as frequent
FREQUENCIES = [2 ** (-TAIL * step) for step in range(len(SIZES))]
PATIENCE_S = 10
GATEWAYS = ("10.0.0.2", "fd00::2")
CLIENT_NETS = ("10.1.0.0/24", "fd01::/64")

# Sessions of some requests in a row on one connection, at times that are given; prints of each
# request when it was done and the seconds it took, -1 if it failed. The first counts from when its
# session was due.
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
    i, due = 0, begin + at
    await asyncio.sleep(max(0, due - time.monotonic()))
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, 80), patience)
        for i, name in enumerate(names):
            await asyncio.wait_for(ask(reader, writer, name, i + 1 == len(names)), patience)
            done = time.monotonic()
            took.append((done - begin, done - due))
            due = done
        writer.close()
    except (OSError, ValueError, EOFError, asyncio.TimeoutError):
        took.extend([(time.monotonic() - begin, -1)] * (len(names) - i))

async def main():
    begin = time.monotonic() + 0.2
    await asyncio.gather(*(session(begin, at, names) for at, names in plan['sessions']))
    print(json.dumps(took))

asyncio.run(main())
"""


def make_files(folder):
    """Text that takes its time to compress."""
    draw = random.Random(7)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(5000)]
    text = " ".join(draw.choices(words, k=SIZES[-1] // 5)).encode()
    for size in SIZES:
        (folder / f"text{size}").write_bytes(text[:size])


class Farm:
    """The hosts, the servers and their agents; `close` ends what the network does not."""

    def __init__(self, net):
        self.net = net
        self.groups = []
        net.host("client", "10.1.0.3/24", "fd01::3/64")
        net.load("decap")
        net.host("lb", "10.0.0.2/24", "10.1.0.2/24", "fd00::2/64", "fd01::2/64")
        net.pass_through("switch", "p-lb")
        for setting in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"):
            net.inside("lb", "sh", "-c", f"echo 1 > /proc/sys/{setting}")
        for to in (*VIPS, "10.0.0.0/24", "fd00::/64"):
            net.inside("client", "ip", "route", "add", to, "via",
                       "fd01::2" if ":" in to else "10.1.0.2")
        self.files = net.folder / "files"
        self.files.mkdir()
        self.files.chmod(0o755)
        make_files(self.files)
        for i in range(len(CORES)):
            self.add_server(i)
        self.answer("l2")

    def add_server(self, i):
        net, name = self.net, f"web{i}"
        add_web(net, i, serve=False)
        folder = net.folder / name
        folder.mkdir()
        config = folder / "nginx.conf"
        listens = "".join(f"listen {address}:80; " for address in
                          (VIPS[0], f"[{VIPS[1]}]", f"10.0.0.1{i}", f"[fd00::1{i}]"))
        config.write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;\n"
            "events { worker_connections 4096; }\n"
            "http { access_log off; gzip on; gzip_comp_level 9; gzip_types *; gzip_min_length 0; "
            "default_type text/plain; keepalive_timeout 30;\n"
            f"server {{ {listens} root {self.files}; }} }}\n", encoding="utf-8")
        try:
            group = ControlGroup(f"ballast-bench-{os.getpid()}-{i}")
        except OSError as error:
            raise Unavailable(f"no control group can be made: {error}") from error
        self.groups.append(group)
        web = net.start(name, NGINX, "-p", folder, "-c", config, "-e", folder / "error")
        group.enter(web.pid)
        net.start(name, common.ballast_binary(), "lb", "agent", "--listen", "[::]:4780",
                  "--cgroup", group.name, "--port", "80",
                  env={**os.environ, "BALLAST_LB_SECRET": SECRET})

    def answer(self, forwarding):
        """Answers to clients go straight there, or by the balancer that translates addresses."""
        for i in range(len(CORES)):
            for to, gateway in zip(CLIENT_NETS, GATEWAYS):
                way = ["via", gateway] if forwarding == "nat" else []
                self.net.inside(f"web{i}", "ip", "route", "replace", to, *way, "dev", "eth0")

    def cost_s(self):
        """Of a mean request, in seconds of a core; then the servers are limited."""
        costs = []
        for size in SIZES:
            before = self.groups[0].used_s()
            for _ in range(8):
                self.net.inside("client", "curl", "-s", "-o", "/dev/null", "-H",
                                "Accept-Encoding: gzip", f"http://10.0.0.10/text{size}")
            costs.append((self.groups[0].used_s() - before) / 8)
        for group, cores in zip(self.groups, CORES):
            group.limit(cores, period_us=20_000)
        return statistics.fmean(costs, FREQUENCIES)

    def measure(self, plan):
        """What became of the requests of a plan; the throughput is of those done while new ones
        still came."""
        done = subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.net.space('client')}", "/usr/bin/python3", "-c",
             CLIENT], input=json.dumps(plan), capture_output=True, text=True, timeout=300,
            check=True)
        took = json.loads(done.stdout)
        good = sorted(seconds for _, seconds in took if seconds >= 0)
        in_time = sum(seconds >= 0 and at <= plan["seconds"] for at, seconds in took)
        return {"throughput": in_time / plan["seconds"], "mean_s": statistics.mean(good),
                "p99_s": good[int(0.99 * (len(good) - 1))], "failed": len(took) - len(good)}

    def close(self):
        for process in self.net.processes:
            process.kill()
        for process in self.net.processes:
            process.wait()
        for group in self.groups:
            group.close()


def make_plan(host, rate, seconds, requests, seed):
    """Sessions of `requests` requests each, at Poisson times."""
    draw = random.Random(seed)
    sessions, at = [], 0.0
    while at < seconds:
        at += draw.expovariate(rate / requests)
        names = [f"text{size}" for size in draw.choices(SIZES, FREQUENCIES, k=requests)]
        sessions.append((at, names))
    return {"host": host, "patience": PATIENCE_S, "seconds": seconds, "sessions": sessions}
