#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks lengths: files, lines, and Python and shell functions. C++ functions are measured by
clang-tidy (readability-function-size)."""

import ast
import re

import tree

FILE_LIMIT = 800
FILE_EXPLAINS = 500  # a longer file says why within its first lines
EXPLANATION = re.compile(r"(^|\W)Long because ")
HEAD_LINES = 12
FUNCTION_LIMIT = 70
LINE_LIMIT = 100
LINK = re.compile(r"https?://")
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)  # a page's text, wrapped for its readers
CODE = (".cc", ".h", ".c", ".py", ".sh", ".js", ".mjs", ".cmake", ".pml", "CMakeLists.txt")
SHELL_FUNCTION = re.compile(r"^(\w+)\s*\(\)\s*\{\s*$")


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def shell_functions(text):
    """Functions written as NAME() { … } with the closing brace at the line's start."""
    name, start = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        opened = SHELL_FUNCTION.match(line)
        if opened:
            name, start = opened.group(1), number
        elif line.startswith("}") and name:
            yield name, start, number - start + 1
            name = None


def check_file(name, text):
    lines = text.splitlines()
    found = []
    if len(lines) > FILE_LIMIT:
        found.append(f"{name}: {len(lines)} lines, the limit is {FILE_LIMIT}")
    elif len(lines) > FILE_EXPLAINS and not EXPLANATION.search("\n".join(lines[:HEAD_LINES])):
        found.append(f'{name}: {len(lines)} lines; over {FILE_EXPLAINS} the head says why '
                     '("Long because …")')
    measured = text
    if tree.is_cxx(name):
        measured = RAW_STRING.sub(lambda match: "\n" * match.group().count("\n"), text)
    for number, line in enumerate(measured.splitlines(), 1):
        if len(line) > LINE_LIMIT and not LINK.search(line):
            found.append(f"{name}:{number}: {len(line)} columns, the limit is {LINE_LIMIT}")
    functions = []
    if name.endswith(".py"):
        functions = python_functions(text)
    elif tree.is_shell(name, text):
        functions = shell_functions(text)
    for function, number, length in functions:
        if length > FUNCTION_LIMIT:
            found.append(f"{name}:{number}: {function} has {length} lines, "
                         f"the limit is {FUNCTION_LIMIT}")
    return found


def check(root):
    found = []
    for name in tree.files(root):
        text = tree.text_of(root, name)
        if text is not None and (name.endswith(CODE) or tree.is_shell(name, text)):
            found += check_file(name, text)
    return found


if __name__ == "__main__":
    tree.main(check, __doc__)
