#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sums the JUnit files of a test run: prints why each test was skipped, which failed, how long
each part and the slowest tests took, and one closing line. Exits 1 if anything failed, or if a
part of the run broke off or held no test."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

GTEST_REASON = re.compile(r": Skipped\n(.*?)\n*\[  SKIPPED \]", re.DOTALL)


def skip_reason(case, skipped):
    """pytest puts the reason into the element, ctest the whole output of the test beside it."""
    output = case.findtext("system-out") or ""
    found = GTEST_REASON.search(output)
    if found and found.group(1).strip():
        return " ".join(found.group(1).split())
    message = skipped.get("message") or ""
    return "no reason given" if "SKIP_REGULAR_EXPRESSION" in message or not message else message


def slowest(folder, count=8):
    """[(seconds, part, name)] of the tests that took longest, the longest first."""
    cases = [(float(case.get("time") or 0), part.stem, case.get("name") or "")
             for part in sorted(folder.glob("*.xml"))
             for case in ElementTree.parse(part).iter("testcase")]
    return sorted((case for case in cases if case[0] >= 1), reverse=True)[:count]


def read_part(part):
    """(passed, failed names, {skipped name: reason}) of one JUnit file."""
    passed, failed, skipped = 0, [], {}
    if not part.exists():
        return passed, failed, skipped
    for case in ElementTree.parse(part).iter("testcase"):
        names = [case.get("classname") or "", case.get("name") or ""]
        name = names[1] if names[0] in ("", names[1]) else "::".join(names)
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif skip is not None:
            skipped[name] = skip_reason(case, skip)
        elif case.get("status") in ("notrun", "disabled"):
            skipped[name] = "disabled in the source"
        else:
            passed += 1
    return passed, failed, skipped


def summarize(folder):
    """Prints the summary of every part that has a .status file, which holds the exit status and the
    seconds it took; returns the exit status of the whole."""
    total = [0, 0, 0]
    for status_file in sorted(folder.glob("*.status")):
        name = status_file.stem
        passed, failed, skipped = read_part(folder / f"{name}.xml")
        status, seconds = map(int, status_file.read_text(encoding="utf-8").split())
        if not failed and (status != 0 or passed + len(skipped) == 0):
            failed = [f"the run itself (exit status {status}, {passed} tests passed)"]
        for test, reason in skipped.items():
            print(f"SKIP {name}: {test}: {reason}")
        for test in failed:
            print(f"FAIL {name}: {test}")
        print(f"{name}: {passed} passed, {len(failed)} failed, {len(skipped)} skipped"
              f" in {seconds} s")
        total = [sum(pair) for pair in zip(total, (passed, len(failed), len(skipped)))]
    for seconds, part, test in slowest(folder):
        print(f"slow: {seconds:.0f} s {part}: {test}")
    if sum(total) == 0:
        print("FAIL: no test ran")
        total[1] = 1
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(summarize(pathlib.Path(sys.argv[1])))
