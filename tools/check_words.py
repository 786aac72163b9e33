#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what stands in the files: licence lines, file heads, folder READMEs, and words and
ornaments that the house does without (STYLE.md)."""

import pathlib
import re

import tree

LICENSED = (".cc", ".h", ".c", ".py", ".sh", ".js", ".mjs", ".cmake", ".pml", ".toml",
            "CMakeLists.txt")
SPDX = "SPDX-License-Identifier: "
# Written in pieces, so that this file passes its own check.
OPEN_WORK = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
SYNC_PLEA = re.compile(r"\b(must|to) be kept in s" r"ync\b", re.IGNORECASE)
BAR = re.compile(r"^\s*(//|#|/?\*)\s?[-=*#/~_]{8,}")
README_LIMIT = 10
TEST_SUFFIXES = ("_test.cc", "_bench.cc", "_fuzz.cc")


def needs_head(root, name):
    """A source beside a header of the same name is explained there, a test by its subject."""
    if name.endswith(".cc"):
        header = pathlib.Path(root) / (name.removesuffix(".cc") + ".h")
        return not header.exists() and not name.endswith(TEST_SUFFIXES)
    return name.endswith((".h", ".py")) and not name.endswith("__init__.py")


def has_head(name, lines):
    after = next((i + 1 for i, line in enumerate(lines) if SPDX in line), None)
    if after is None or after >= len(lines):
        return False
    return lines[after].startswith('"""' if name.endswith(".py") else "//")


def check_words(name, lines):
    found = []
    for number, line in enumerate(lines, 1):
        if OPEN_WORK.search(line):
            found.append(f"{name}:{number}: open work belongs into an issue, not into a comment")
        if SYNC_PLEA.search(line):
            found.append(f"{name}:{number}: write a check instead of this plea")
        if BAR.match(line) and not name.endswith(".md"):
            found.append(f"{name}:{number}: a bar; leave it out")
    return found


def check_readmes(root, names):
    found = []
    for folder in sorted({name.split("/")[1] for name in names if name.startswith("src/") and
                          name.count("/") > 1}):
        text = tree.text_of(root, f"src/{folder}/README.md")
        if text is None:
            found.append(f"src/{folder}: has no README.md (purpose, layer, start here, rule)")
        elif len(text.splitlines()) > README_LIMIT:
            found.append(f"src/{folder}/README.md: more than {README_LIMIT} lines")
    return found


def check(root):
    names = tree.files(root)
    found = check_readmes(root, names)
    for name in names:
        text = tree.text_of(root, name)
        if text is None:
            continue
        lines = text.splitlines()
        licensed = name.endswith(LICENSED) or tree.is_shell(name, text)
        if licensed and not any(SPDX in line for line in lines[:3]):
            found.append(f"{name}: no SPDX line within the first three")
        elif needs_head(root, name) and not has_head(name, lines):
            found.append(f"{name}: no head after the SPDX line that says the file's role")
        found += check_words(name, lines)
    return found


if __name__ == "__main__":
    tree.main(check, __doc__)
