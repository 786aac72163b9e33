# SPDX-License-Identifier: Apache-2.0
"""Each check of tools/ finds the fault it is for, in a small tree made for it, and finds nothing in
the same tree without the fault."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_docs  # noqa: E402
import check_layers  # noqa: E402
import check_sizes  # noqa: E402
import check_words  # noqa: E402
import summarize  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HEAD = SPDX + "// The role.\n"
TABLE = """
[base]
layer = 0
job = "ground"
[pure]
layer = 1
job = "algorithms"
[other]
layer = 1
job = "more algorithms"
[top]
layer = 3
job = "a job"
"""


def put(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(name="good")
def good_tree(tmp_path):
    """A tree in which every check finds nothing."""
    put(tmp_path, "tools/layers.toml", "# SPDX-License-Identifier: Apache-2.0" + TABLE)
    table = check_layers.render(check_layers.load_table(tmp_path))
    put(tmp_path, "ARCHITECTURE.md", f"# Layers\n\n{table}\n")
    for folder in ("base", "pure", "other", "top"):
        put(tmp_path, f"src/{folder}/README.md", f"# {folder}\n")
        put(tmp_path, f"src/{folder}/x.h", HEAD + "#pragma once\n")
    put(tmp_path, "src/top/x.cc", SPDX + '#include "top/x.h"\n#include <thread>\n'
        '#include "base/x.h"\n#include "pure/x.h"\n')
    return tmp_path


def test_nothing_is_found_in_a_good_tree(good):
    put(good, "README.md", "[x](src/top/x.h#a) [y](https://example.org/) `src/top/` `src/NAME`\n")
    modules = (check_docs, check_layers, check_sizes, check_words)
    assert [module.check(good) for module in modules] == [[]] * 4


@pytest.mark.parametrize("name,text,words", [
    ("src/base/y.h", '#include "top/x.h"\n', "only lower layers"),
    ("src/pure/y.h", '#include "other/x.h"\n', "only lower layers"),
    ("src/top/y.h", '#include "../base/x.h"\n', "without ../"),
    ("src/top/y.h", '#include "x.h"\n', "not under src/"),
    ("src/top/y.h", "#include <base/x.h>\n", "go in quotes"),
    ("src/pure/y.h", "#include <sys/socket.h>\n", "in a pure folder"),
    ("src/pure/y.h", "#include <thread>\n", "in a pure folder"),
    ("src/pure/y.cc", "int64_t now = now_ns();\n", "calls now_ns"),
    ("src/net/y.h", "", "name of a system include folder"),
    ("src/nowhere/y.h", "", "has no layer"),
    ("ARCHITECTURE.md", "# no table\n", "must show this table"),
    ("ARCHITECTURE.md", "| folder | layer | job |\n|---|---|---|\n| `src/base/` | L9 | ground |\n",
     "must show this table"),
])
def test_layers(good, name, text, words):
    put(good, name, text)
    assert any(words in finding for finding in check_layers.check(good))


PYTHON_LONG = "def f():\n" + "    x = 1\n" * 70
SHELL_LONG = "#!/bin/bash\nf() {\n" + "  :\n" * 69 + "}\n"


@pytest.mark.parametrize("name,text,words", [
    ("a.cc", "\n" * 801, "the limit is 800"),
    ("a.cc", HEAD + "// Long because of its table.\n" + "\n" * 800, "the limit is 800"),
    ("a.py", "\n" * 501, "over 500 the head says why"),
    ("a.cc", "x" * 101, "the limit is 100"),
    ("a.cc", f'x = R"(\n{"x" * 101}\n)";\n{"y" * 102}\n', "a.cc:4: 102 columns"),
    ("a.py", PYTHON_LONG, "f has 71 lines"),
    ("a", SHELL_LONG, "f has 71 lines"),
])
def test_sizes(good, name, text, words):
    put(good, name, text)
    assert any(words in finding for finding in check_sizes.check(good))


@pytest.mark.parametrize("name,text", [
    ("a.cc", HEAD + "// Long because of its table.\n" + "\n" * 600),
    ("a.py", PYTHON_LONG.replace("    x = 1\n", "", 1)),
    ("a.cc", HEAD + f'x = R"(\n{"x" * 101}\n)";\n'),
    ("a.py", "# https://example.org/" + "x" * 100),
])
def test_sizes_at_the_limit(good, name, text):
    put(good, name, text)
    assert check_sizes.check(good) == []


@pytest.mark.parametrize("name,text,words", [
    ("a.cc", "int x;\n", "no SPDX line"),
    ("a", "#!/bin/bash\n", "no SPDX line"),
    ("src/top/y.h", SPDX + "#pragma once\n", "no head"),
    ("src/top/alone.cc", SPDX + "#include <vector>\n", "no head"),
    ("a.py", "# SPDX-License-Identifier: Apache-2.0\nimport os\n", "no head"),
    ("src/top/y.h", HEAD + "// TO" + "DO: more\n", "open work"),
    ("a.md", "FIX" + "ME\n", "open work"),
    ("src/top/y.h", HEAD + "// Must be kept in s" + "ync with z.h\n", "write a check"),
    ("src/top/y.h", HEAD + "// ----------------\n", "a bar"),
    ("a.sh", "# SPDX-License-Identifier: Apache-2.0\n################\n", "a bar"),
    ("src/top/README.md", "\n" * 11, "more than 10 lines"),
    ("src/new/x.h", HEAD, "has no README.md"),
])
def test_words(good, name, text, words):
    put(good, name, text)
    assert any(words in finding for finding in check_words.check(good))


@pytest.mark.parametrize("text,words", [
    ("the loop in `src/top/loop.cc`", "names src/top/loop.cc"),
    ("[the loop](src/top/loop.cc)", "links to src/top/loop.cc"),
    ("[the loop](loop.md#turn)", "links to loop.md"),
])
def test_docs(good, text, words):
    put(good, "docs.md", text)
    assert any(words in finding for finding in check_docs.check(good))


CTEST = """<testsuite><testcase name="a.B" status="run" time="7.4"/>
<testcase name="a.C" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN      ] C
/x/y_test.cc:7: Skipped
no IPv6 here

[  SKIPPED ] C (0 ms)</system-out></testcase>{more}</testsuite>"""


def run_summary(folder, capsys, status="0", more=""):
    put(folder, "unit.xml", CTEST.replace("{more}", more))
    put(folder, "unit.status", f"{status} 12")
    result = summarize.summarize(folder)
    return result, capsys.readouterr().out.splitlines()


def test_summary_counts_and_tells_why(tmp_path, capsys):
    status, lines = run_summary(tmp_path, capsys)
    assert status == 0
    assert "SKIP unit: a.C: no IPv6 here" in lines
    assert "unit: 1 passed, 0 failed, 1 skipped in 12 s" in lines
    assert "slow: 7 s unit: a.B" in lines
    assert lines[-1] == "1 passed, 0 failed, 1 skipped"


@pytest.mark.parametrize("status,more,name", [
    ("8", '<testcase name="a.D" status="fail"><failure/></testcase>', "FAIL unit: a.D"),
    ("0", '<testcase name="a.D"><error/></testcase>', "FAIL unit: a.D"),
    ("2", "", "FAIL unit: the run itself (exit status 2, 1 tests passed)"),
])
def test_summary_fails_with_the_run(tmp_path, capsys, status, more, name):
    result, lines = run_summary(tmp_path, capsys, status, more)
    assert result == 1
    assert name in lines
    assert lines[-1] == "1 passed, 1 failed, 1 skipped"


def test_summary_fails_when_a_part_did_not_run(tmp_path, capsys):
    put(tmp_path, "unit.status", "0 12")
    assert summarize.summarize(tmp_path) == 1
    assert summarize.summarize(tmp_path / "empty") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


DEEP = "void f(int x) {\n" + "".join(f"  if (x > {i}) {{\n" for i in range(4)) + "g(); }}}}}\n"


@pytest.mark.parametrize("source,words", [
    ("int f() {\n" + "  g();\n" * 71 + "  return 0;\n}\n", "readability-function-size"),
    (DEEP, "readability-function-size"),
    ("void f(int a, int b, int c, int d, int e, int h) { g(); }\n", "readability-function-size"),
    ("void BadName() {}\n", "readability-identifier-naming"),
    ("class A {\n  int x = 0;\n};\n", "readability-identifier-naming"),
], ids=["long", "deep", "parameters", "function", "member"])
def test_clang_tidy(tmp_path, source, words):
    if shutil.which("clang-tidy-19") is None:
        pytest.skip("clang-tidy-19 is not installed")
    shutil.copy(ROOT / ".clang-tidy", tmp_path / ".clang-tidy")
    put(tmp_path, "a.cc", "void g();\n" + source)
    done = subprocess.run(
        ["clang-tidy-19", "--quiet", "--warnings-as-errors=*", str(tmp_path / "a.cc"), "--",
         "-std=c++20"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert words in done.stdout


def test_dev_installs_parts_that_packages_txt_has():
    script = (ROOT / "dev").read_text(encoding="utf-8")
    calls = re.findall(r"\bsetup((?: [a-z]+)+)", script)
    used = {part for parts in calls for part in parts.split()}
    parts = re.findall(r"^\[(\w+)\]$", (ROOT / "packages.txt").read_text(encoding="utf-8"), re.M)
    assert used == set(parts)
    assert len(parts) == len(set(parts))
