// SPDX-License-Identifier: Apache-2.0
// Samples become Prometheus's text format 0.0.4, and their families rows of a reference page.
// Tables of metrics (X-macros) name kinds, names without "ballast_", and helps.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace ballast::telemetry {

// NOLINTNEXTLINE(readability-identifier-naming): the rows of the metrics' tables say it so
enum class Kind { counter, gauge };

using Labels = std::vector<std::pair<std::string, std::string>>;

// Families in the order they are first named; samples of one family stay together, as the format
// wants.
class Families {
 public:
  Families();
  ~Families();
  Families(const Families&) = delete;
  Families& operator=(const Families&) = delete;

  void add(Kind kind, const char* name, const char* help, const Labels& labels, double value);
  // Of nanoseconds, shown in seconds.
  void add(const char* name, const char* help, const Labels& labels, const Histogram& histogram);

  // ballast_build_info and ballast_uptime_seconds.
  void add_process(double uptime_seconds);

  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A line of a reference page; no labels are "–".
std::string metric_row(const char* name, const char* type, const char* labels, const char* help);
const char* word_of(Kind kind);

// What a page begins its table with, and the rows of add_process().
std::string metric_rows_of_process();

}  // namespace ballast::telemetry
