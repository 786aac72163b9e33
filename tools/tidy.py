#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy once over every source of a compile_commands.json, but only where the source, a
project header it includes, its command or the configuration changed since it was last clean."""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@functools.cache
def closure(path):
    """The file and every project header it reaches, as a frozenset of paths."""
    seen, todo = set(), [path]
    while todo:
        current = todo.pop()
        if current in seen or not current.is_file():
            continue
        seen.add(current)
        todo += [ROOT / "src" / name for name in INCLUDE.findall(current.read_text("utf-8"))]
    return frozenset(seen)


def stamp(entry, settings):
    """A name that changes with anything that can change clang-tidy's answer, packages aside."""
    digest = hashlib.sha256(settings + entry["command"].encode())
    for path in sorted(closure(pathlib.Path(entry["file"]))):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def tidy(build, entry):
    done = subprocess.run(
        [TIDY, "-p", str(build), "--quiet", "--warnings-as-errors=*", entry["file"]],
        capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="the folder of compile_commands.json")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at once (default 2)")
    options = parser.parse_args()
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    settings = version + (ROOT / ".clang-tidy").read_bytes()
    stamps = options.build / "tidy"
    stamps.mkdir(parents=True, exist_ok=True)
    entries = {entry["file"]: entry for entry in
               json.loads((options.build / "compile_commands.json").read_text("utf-8"))
               if pathlib.Path(entry["file"]).is_relative_to(ROOT / "src")
               or pathlib.Path(entry["file"]).is_relative_to(ROOT / "tests")
               or pathlib.Path(entry["file"]).is_relative_to(ROOT / "fuzz")}
    # clang-tidy runs all commands that it finds of a source; one is enough.
    single = options.build / "tidy-commands"
    single.mkdir(exist_ok=True)
    (single / "compile_commands.json").write_text(json.dumps(list(entries.values())), "utf-8")
    names = {file: stamps / stamp(entry, settings) for file, entry in entries.items()}
    for old in set(stamps.iterdir()) - set(names.values()):
        old.unlink()
    stale = [entry for file, entry in entries.items() if not names[file].exists()]
    print(f"clang-tidy: {len(stale)} of {len(entries)} sources changed", file=sys.stderr)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(tidy, single, entry): entry["file"] for entry in stale}
        for done in concurrent.futures.as_completed(running):
            status, words = done.result()
            if status == 0:
                names[running[done]].touch()
            else:
                failed += 1
                print(words, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
