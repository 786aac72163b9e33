// SPDX-License-Identifier: Apache-2.0
// Simulated flows a second on one core.
#include <benchmark/benchmark.h>

#include "sim/flow_model.h"

namespace ballast::sim {
namespace {

void flows(benchmark::State& state) {
  FlowModelOptions options;
  options.capacities.assign(100, 125e6);
  options.flow_rate = 2.5e6;
  options.load = 0.9;
  options.sizes = *FlowSizes::of_law("web-search", 1e6);
  options.background.most = 0.9;
  options.dispatching = static_cast<Dispatching>(state.range(0));
  state.SetLabel(std::string(dispatching_name(options.dispatching)));
  FlowModel model(options);
  Nanos now = 0;
  uint64_t arrived = 0;
  for (auto _ : state) {
    now += kSecond;
    model.run(now);
    arrived += model.take_counts().arrived;
  }
  state.SetItemsProcessed(static_cast<int64_t>(arrived));
}
BENCHMARK(flows)
    ->DenseRange(0, static_cast<int>(Dispatching::kIdeal))
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ballast::sim
