// SPDX-License-Identifier: Apache-2.0
// One sample's value out of Prometheus's text format 0.0.4.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ballast::proto {

// Samples of this name that have these labels, whatever others.
struct MetricSelector {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
};

// name or name{label="value",…}, with \\ \" and \n in values; only equality.
Result<MetricSelector> parse_metric_selector(std::string_view text);

// May be infinite or not a number. kInvalid: no such sample, more than one (it is not guessed which
// is meant), or a line of that name that is broken; lines of other names are not looked at.
Result<double> find_metric(std::string_view exposition, const MetricSelector& selector);

}  // namespace ballast::proto
