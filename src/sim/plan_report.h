// SPDX-License-Identifier: Apache-2.0
// A plan's two forms: text for people, JSON for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan.h"
#include "sim/zipf_fit.h"
#include "trace/workload.h"

namespace ballast::sim {

struct PlanReport {
  std::string source;  // "Zipf 0.99" or the trace's name
  std::optional<trace::Workload> workload;
  ZipfFit fit;              // of the workload, if there is one
  size_t measured = 0;      // keys of it that entered with their measured share
  double alpha = 0;         // without a workload
  uint64_t objects = 0;     // there are, as given or estimated
  size_t shown = 10;        // hottest keys
  size_t value_size = 128;  // bytes
  Target target;
  Plan plan;
  std::vector<std::string> assumed;  // one sentence each

  // Bytes of copies that a node of the plan holds.
  double node_memory() const;
};

// What a copy takes beside its value: the key, the table's entry, the reply's frame.
inline constexpr size_t kCopyOverhead = 400;

std::string plan_text(const PlanReport& report);
std::string plan_json(const PlanReport& report);

}  // namespace ballast::sim
