#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Simulated requests a second on one core: the queueing model of 32 spines and 32 racks of 32
servers, as `ballast sim cache` runs it; the median of repetitions."""

import json
import sys

import common
from harness import ballast_binary, run

BAR = 10e6


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="default %(default)s")
    options = parser.parse_args()
    folder = ballast_binary().resolve().parent
    run(["cmake", "--build", folder, "--target", "queueing_bench"], timeout_s=600)
    words = [f"--benchmark_repetitions={options.repetitions}",
             "--benchmark_report_aggregates_only=true", "--benchmark_format=json"]
    found = json.loads(run([folder / "queueing_bench", *words], timeout_s=300).stdout)
    rates = {row["run_name"]: row["items_per_second"] for row in found["benchmarks"]
             if row["aggregate_name"] == "median"}
    lines = [f"{name}: {rate / 1e6:.1f} M simulated requests a second on one core "
             f"({'within' if rate >= BAR else 'BELOW'} {BAR / 1e6:g} M)"
             for name, rate in rates.items()]
    return common.finish(options, {"simulated_per_second": rates}, "\n".join(lines),
                         all(rate >= BAR for rate in rates.values()))


if __name__ == "__main__":
    sys.exit(main())
