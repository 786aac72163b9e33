#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the files and folders which the Markdown pages name or link to are there."""

import re

import check_layers
import tree

CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`((?:src|tests|bench|fuzz|tools|docs|cmake|packaging)/[a-z0-9_./-]*)`")
LINKED = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def check(root):
    found = []
    table = check_layers.render(check_layers.load_table(root))
    for name in tree.files(root):
        if not name.endswith(".md"):
            continue
        text = CODE_BLOCK.sub("", tree.text_of(root, name) or "").replace(table, "")
        found += [f"{name}: names {path}, which is not there"
                  for path in NAMED.findall(text) if not (root / path).exists()]
        found += [f"{name}: links to {path}, which is not there"
                  for path in LINKED.findall(text)
                  if not ((root / name).parent / path).exists()]
    return found


if __name__ == "__main__":
    tree.main(check, __doc__)
