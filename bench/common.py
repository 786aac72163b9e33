# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: the harness of the tests, the machine's description, one way out."""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))

from harness import ballast_binary, run  # noqa: E402


def say(words):
    print(words, file=sys.stderr, flush=True)


def parser(words):
    made = argparse.ArgumentParser(description=words)
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), platform.machine())
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(),
            "load_average": os.getloadavg()[0]}


def first_line(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace").strip().splitlines()[0]


def versions():
    return {"ballast": first_line(str(ballast_binary()), "version"),
            "redis": first_line("redis-server", "--version"),
            "twemproxy": first_line("nutcracker", "--version")}


def status_of(tier):
    url = f"http://127.0.0.1:{tier.admin_port}/status"
    with urllib.request.urlopen(url, timeout=5) as reply:
        return json.load(reply)


def load(address, *words):
    """One run of `ballast bench`; what it measured."""
    done = run([ballast_binary(), "bench", "--target", address, "--json", *words], timeout_s=300)
    return json.loads(done.stdout)


def finish(options, results, text, good):
    """Prints JSON or the text; the exit status."""
    results = {**results, "good": good, "machine": machine()}
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        here = results["machine"]
        print(f"{text}\n{here['cores']} cores, {here['cpu']}, kernel {here['kernel']}, load "
              f"average {here['load_average']:.1f}\n")
    return 0 if good else 1
