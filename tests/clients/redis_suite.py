# SPDX-License-Identifier: Apache-2.0
"""Redis's own test suite as a library: fetches it, runs a unit against a server, reads the result.

The suite comes from Debian's source package at test time, into the build folder. Its private copy
gets one line, which loads redis_suite_overlay.tcl: this version of the suite has no RESP3 mode.
"""

import dataclasses
import glob
import os
import pathlib
import re
import shutil
import subprocess

from harness import ROOT, HarnessError, free_port, run

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = ROOT / "build/redis-src"
SKIP_FILE = HERE / "redis_suite_skip.txt"
TAGS = "-needs:repl -needs:debug -needs:save -needs:config-maxmemory -slow"
UNIT_TIMEOUT_S = 300

UNITS = [
    "unit/protocol", "unit/auth", "unit/dump", "unit/keyspace", "unit/scan", "unit/expire",
    "unit/multi", "unit/pubsub", "unit/querybuf", "unit/limits", "unit/tracking", "unit/sort",
    "unit/other", "unit/quit", "unit/info-command", "unit/introspection", "unit/introspection-2",
    "unit/scripting", "unit/functions", "unit/bitops", "unit/bitfield", "unit/geo",
    "unit/hyperloglog", "unit/lazyfree", "unit/type/string", "unit/type/incr", "unit/type/hash",
    "unit/type/list", "unit/type/list-2", "unit/type/list-3", "unit/type/set", "unit/type/zset",
    "unit/type/stream", "unit/type/stream-cgroups",
]


def fetch():
    """The folder of the suite; fetched once, then kept in the build folder."""
    found = _source_folder()
    if not found:
        SOURCE.mkdir(parents=True, exist_ok=True)
        options = _apt_options(SOURCE / "apt")
        run(["apt-get", *options, "update"], timeout_s=300)
        done = subprocess.run(["apt-get", *options, "source", "redis"], cwd=SOURCE, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        found = _source_folder()
        if done.returncode != 0 or not found:
            raise HarnessError(f"apt-get source redis:\n{done.stdout.decode(errors='replace')}")
    _load_overlay(found)
    return found


def _source_folder():
    for name in sorted(glob.glob(str(SOURCE / "redis-*/runtest"))):
        return pathlib.Path(name).parent
    return None


def _load_overlay(folder):
    client = folder / "tests/support/redis.tcl"
    line = f"source {{{HERE / 'redis_suite_overlay.tcl'}}}\n"
    text = client.read_text(encoding="utf-8")
    if line not in text:
        kept = [one for one in text.splitlines(keepends=True)
                if "redis_suite_overlay" not in one]
        client.write_text("".join(kept) + line, encoding="utf-8")


def _apt_options(folder):
    """Options for an apt of our own: the machine's sources as deb-src, lists in folder."""
    parts = folder / "sources"
    for path in (parts, folder / "lists/partial", folder / "cache/archives/partial"):
        path.mkdir(parents=True, exist_ok=True)
    lines, stanzas = [], []
    for name in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]:
        if os.path.exists(name):
            text = pathlib.Path(name).read_text(encoding="utf-8")
            lines += [re.sub(r"^deb(?:-src)?\s", "deb-src ", one.strip())
                      for one in text.splitlines() if re.match(r"\s*deb(-src)?\s", one)]
    for name in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        text = pathlib.Path(name).read_text(encoding="utf-8")
        stanzas.append(re.sub(r"(?mi)^Types:.*$", "Types: deb-src", text))
    (parts / "source.list").write_text("\n".join(dict.fromkeys(lines)) + "\n", encoding="utf-8")
    (parts / "source.sources").write_text("\n\n".join(stanzas) + "\n", encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts,
        "Dir::State::lists": folder / "lists", "Dir::Cache": folder / "cache",
        # The sandbox user of apt cannot write below a home folder.
        "APT::Sandbox::User": "root",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


@dataclasses.dataclass
class Skip:
    """One line of the skip file: a test of a unit that is left out, and why."""

    unit: str
    test: str
    reason: str
    protocol: str  # "" for both
    everywhere: bool  # left out on a stock server too

    def applies(self, unit, protocol, kind):
        return (self.unit == unit and self.protocol in ("", protocol)
                and (self.everywhere or kind == "tier"))

    def expression(self):
        """A regular expression for Tcl and Python: `*` is any text, ` except ` takes out."""
        wanted, _, kept = self.test.partition(" except ")
        ahead = f"(?!{_glob(kept)}$)" if kept else ""
        return f"^{ahead}{_glob(wanted)}$"

    def pattern(self):
        """What the suite's --skipfile takes: a name, or '/' and a regular expression."""
        return "/" + self.expression() if "*" in self.test else self.test

    def matches(self, name):
        return bool(re.match(self.expression(), name))


def _glob(text):
    # Tcl takes an escaped punctuation mark or space as itself, as Python does.
    return ".*".join(re.escape(part) for part in text.split("*"))


def read_skips(path=SKIP_FILE):
    """Every Skip of the file; raises with the line's number where a line is not well formed."""
    skips, section = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line in ("[everywhere]", "[tier]"):
            section = line
            continue
        fields = [field.strip() for field in line.split(" | ")]
        if section is None or len(fields) != 3 or not all(fields):
            raise HarnessError(f"{path}:{number}: wanted, in a section: unit | test | reason")
        unit, _, protocol = fields[0].partition("@")
        skips.append(Skip(unit, fields[1], fields[2], protocol, section == "[everywhere]"))
    return skips


@dataclasses.dataclass
class Outcome:
    """What a unit did; an error outside of a test's body counts as failed."""

    passed: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)
    ignored: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)
    finished: bool = False
    output: str = ""


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RESULT = re.compile(r"^\[(ok|skip|ignore|err|exception|TIMEOUT)\]: (.*)$")
_DETAIL_LINES = 8


def parse(output):
    """The Outcome of a run from what runtest printed."""
    outcome = Outcome(output=output)
    details = 0
    for line in _COLOUR.sub("", output).splitlines():
        if line.startswith("!!! WARNING") or "The End" in line:
            # What follows repeats the failures.
            break
        found = _RESULT.match(line)
        if not found:
            outcome.finished = outcome.finished or bool(re.match(r"^\[\d+/\d+ done\]", line))
            if details and not line.startswith("["):
                outcome.failed[-1] += f"\n{line[:300]}"
                details -= 1
            continue
        kind, text = found.groups()
        details = 0
        if kind == "ok":
            outcome.passed.append(re.sub(r" \(\d+ ms\)$", "", text))
        elif kind == "skip":
            outcome.skipped.append(text)
        elif kind == "ignore":
            outcome.ignored.append(text)
        else:
            outcome.failed.append(text)
            details = _DETAIL_LINES
    return outcome


def _base_port():
    """Where the suite looks for a port of its own: it wants the port 10,000 higher free too."""
    while True:
        port = free_port()
        if 2000 < port < 50000:
            return port


def run_unit(unit, port, protocol, skips, workdir):
    """Runs one unit against 127.0.0.1:port; protocol is "resp2" or "resp3"."""
    folder = fetch()
    skipfile = pathlib.Path(workdir) / "skip.txt"
    skipfile.write_text("".join(f"{skip.pattern()}\n" for skip in skips), encoding="utf-8")
    tclsh = shutil.which("tclsh8.6") or shutil.which("tclsh")
    if not tclsh:
        raise HarnessError("tclsh is not there: package tcl")
    argv = [tclsh, "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port),
            "--singledb", "--ignore-encoding", "--ignore-digest", "--durable", "--tags", TAGS,
            "--timeout", "120", "--baseport", str(_base_port()), "--skipfile", str(skipfile),
            "--single", unit]
    env = {**os.environ, "BALLAST_SUITE_RESP3": "1" if protocol == "resp3" else "0"}
    # A session of its own, so that a run past its time is ended together with its helpers.
    child = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True)
    try:
        output, _ = child.communicate(timeout=UNIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        output, _ = child.communicate()
        output += f"\n[TIMEOUT]: {unit} ran longer than {UNIT_TIMEOUT_S} s\n".encode()
    return parse(output.decode(errors="replace"))
