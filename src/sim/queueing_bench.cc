// SPDX-License-Identifier: Apache-2.0
// Simulated requests a second of one core at the paper's scale: 32 spines, 32 racks of 32.
#include <benchmark/benchmark.h>

#include "sim/fluid.h"
#include "sim/queueing.h"

namespace ballast::sim {
namespace {

void queueing_at_scale(benchmark::State& state) {
  Scenario scenario;
  scenario.writes = static_cast<double>(state.range(0)) / 100;
  const Layout layout = make_layout(scenario);
  QueueingOptions options;
  options.rate = fluid_bound(layout).rate * 0.95;
  options.exponential_service = state.range(1) != 0;
  QueueingModel model(layout, options);
  Nanos now = 0;
  uint64_t requests = 0;
  for (auto _ : state) {
    now += kSecond / 4;
    model.run(now);
    requests += model.take_counts().requests;
  }
  state.SetItemsProcessed(static_cast<int64_t>(requests));
}
BENCHMARK(queueing_at_scale)
    ->ArgNames({"writes_percent", "exponential"})
    ->Args({0, 1})
    ->Args({0, 0})
    ->Args({5, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ballast::sim
