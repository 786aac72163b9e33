# SPDX-License-Identifier: Apache-2.0
"""The project's files as the checks see them, and how a check reports what it found."""

import argparse
import os
import pathlib
import subprocess
import sys

# Data and texts of others, which follow no rule of ours.
NOT_OURS = ("LICENSE", "fuzz/seeds/", "build/", ".git/")


def files(root):
    """Paths relative to root, sorted: what git tracks or would add, or all files without git."""
    root = pathlib.Path(root)
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-coz", "--exclude-standard"],
            cwd=root, check=True, capture_output=True, text=True).stdout
        names = [name for name in listing.split("\0") if name and (root / name).is_file()]
    else:
        names = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, found in os.walk(root) for name in found]
    return sorted(name for name in names if not name.startswith(NOT_OURS))


def text_of(root, name):
    """The file's text; None if there is no such file or it is not text."""
    try:
        return (pathlib.Path(root) / name).read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def is_shell(name, text):
    return name.endswith(".sh") or text.startswith(("#!/bin/bash", "#!/bin/sh"))


def is_cxx(name):
    return name.endswith((".cc", ".h", ".c"))


def main(check, description):
    """Runs check(root) -> list of findings over the tree named on the command line."""
    parser = argparse.ArgumentParser(description=description)
    default = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", default=default, help="the tree to check (default: this one)")
    findings = check(pathlib.Path(parser.parse_args().root))
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)
