#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each folder of src/ includes only lower layers or its own, that pure folders stay
pure, and that ARCHITECTURE.md shows the table of tools/layers.toml."""

import re
import subprocess
import tomllib

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PURE_LAYER = 1
IMPURE_HEADERS = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|fstream|iostream|filesystem|chrono|"
    r"ctime|time\.h|unistd\.h|fcntl\.h|poll\.h|pthread\.h|netdb\.h|sys/.*|netinet/.*"
    # inet_pton and inet_ntop only read and write text.
    r"|arpa/(?!inet\.h).*)$")
IMPURE_CALLS = re.compile(r"\b(now_ns|system_seed|getenv|fopen|clock_gettime|log_\w+)\s*\(")
SYSTEM_INCLUDE_FOLDERS = {"arpa", "asm", "bpf", "linux", "net", "netinet", "pcap", "sys", "xdp"}


def load_table(root):
    return tomllib.loads((root / "tools/layers.toml").read_text(encoding="utf-8"))


def render(table):
    """The table as it stands in ARCHITECTURE.md."""
    rows = ["| folder | layer | job |", "|---|---|---|"]
    for folder, row in sorted(table.items(), key=lambda item: (item[1]["layer"], item[0])):
        rows.append(f"| `src/{folder}/` | L{row['layer']} | {row['job']} |")
    return "\n".join(rows)


def system_include_folders():
    """Folder names that -I src would take from the system: the well-known and this machine's."""
    names = set(SYSTEM_INCLUDE_FOLDERS)
    found = subprocess.run(
        ["find", "/usr/include", "-maxdepth", "2", "-mindepth", "1", "-type", "d",
         "(", "-path", "/usr/include/*-linux-gnu/*", "-o", "-not", "-path", "/usr/include/*/*", ")",
         "-printf", "%f\n"], capture_output=True, text=True, check=False).stdout
    return names | set(found.split())


def check_include(root, name, folder, table, match):
    """One finding or None for one #include line."""
    quote, target = match.groups()
    if ".." in target.split("/"):
        return f'includes "{target}": name it from src/, without ../'
    head = target.split("/")[0]
    if quote == "<":
        return f"includes <{target}>: our own headers go in quotes" if head in table else None
    if not (root / "src" / target).is_file():
        return f'includes "{target}", which is not under src/'
    if head != folder and table[head]["layer"] >= table[folder]["layer"]:
        return (f'includes "{target}": {folder} is L{table[folder]["layer"]}, '
                f'{head} is L{table[head]["layer"]}, and only lower layers may be included')
    return None


def check_purity(name, line, match):
    if name.endswith(("_test.cc", "_bench.cc", "_fuzz.cc")):
        return None
    if match and match.group(1) == "<" and IMPURE_HEADERS.match(match.group(2)):
        return f"includes <{match.group(2)}> in a pure folder (no I/O, clock, thread)"
    call = IMPURE_CALLS.search(line.split("//")[0])
    return f"calls {call.group(1)} in a pure folder (no I/O, clock, thread)" if call else None


def check_file(root, name, folder, table):
    found = []
    for number, line in enumerate((tree.text_of(root, name) or "").splitlines(), 1):
        match = INCLUDE.match(line)
        findings = [check_include(root, name, folder, table, match) if match else None]
        if table[folder]["layer"] == PURE_LAYER:
            findings.append(check_purity(name, line, match))
        found += [f"{name}:{number}: {finding}" for finding in findings if finding]
    return found


def check(root):
    table = load_table(root)
    found = []
    taken = system_include_folders()
    names = tree.files(root)
    for folder in sorted({name.split("/")[1] for name in names if name.count("/") > 1 and
                          name.startswith("src/")}):
        if folder in taken:
            found.append(f"src/{folder}: has the name of a system include folder")
        if folder not in table:
            found.append(f"src/{folder}: has no layer; add it to tools/layers.toml")
    for name in names:
        folder = name.split("/")[1] if name.startswith("src/") else None
        if folder in table and tree.is_cxx(name):
            found += check_file(root, name, folder, table)
    if render(table) not in (tree.text_of(root, "ARCHITECTURE.md") or ""):
        found.append("ARCHITECTURE.md: must show this table:\n" + render(table))
    return found


if __name__ == "__main__":
    tree.main(check, __doc__)
