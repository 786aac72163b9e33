// SPDX-License-Identifier: Apache-2.0
#include "telemetry/families.h"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <map>

#include "base/clock.h"
#include "telemetry/build_info.h"

namespace ballast::telemetry {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr const char* kBuildHelp = "What the program was built from; always 1";
constexpr const char* kUptimeHelp = "Time since the process started";

constexpr Nanos kBounds[] = {
    50 * kMicrosecond,  100 * kMicrosecond,  250 * kMicrosecond,  500 * kMicrosecond,
    1 * kMillisecond,   2500 * kMicrosecond, 5 * kMillisecond,    10 * kMillisecond,
    25 * kMillisecond,  50 * kMillisecond,   100 * kMillisecond,  250 * kMillisecond,
    500 * kMillisecond, 1 * kSecond,         2500 * kMillisecond, 5 * kSecond,
    10 * kSecond,
};

double seconds(double nanos) { return nanos / static_cast<double>(kSecond); }

ClientMetric metric_with(const Labels& labels) {
  ClientMetric metric;
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

}  // namespace

class Families::Impl {
 public:
  std::vector<ClientMetric>& family(const char* name, const char* help, MetricType type) {
    const auto [at, fresh] = index_.emplace(name, families_.size());
    if (fresh) families_.push_back({fmt::format("ballast_{}", name), help, type, {}});
    return families_[at->second].metric;
  }

  std::string text() const {
    return static_cast<const prometheus::Serializer&>(prometheus::TextSerializer())
        .Serialize(families_);
  }

 private:
  std::vector<MetricFamily> families_;
  std::map<std::string, size_t> index_;
};

Families::Families() : impl_(std::make_unique<Impl>()) {}
Families::~Families() = default;

void Families::add(Kind kind, const char* name, const char* help, const Labels& labels,
                   double value) {
  ClientMetric metric = metric_with(labels);
  if (kind == Kind::counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  impl_->family(name, help, kind == Kind::counter ? MetricType::Counter : MetricType::Gauge)
      .push_back(std::move(metric));
}

void Families::add(const char* name, const char* help, const Labels& labels,
                   const Histogram& histogram) {
  ClientMetric metric = metric_with(labels);
  metric.histogram.sample_count = histogram.count();
  metric.histogram.sample_sum = seconds(histogram.sum());
  for (const Nanos bound : kBounds) {
    metric.histogram.bucket.push_back(
        {histogram.count_at_most(bound), seconds(static_cast<double>(bound))});
  }
  impl_->family(name, help, MetricType::Histogram).push_back(std::move(metric));
}

void Families::add_process(double uptime_seconds) {
  const BuildInfo& build = build_info();
  add(Kind::gauge, "build_info", kBuildHelp,
      {{"version", build.version}, {"compiler", build.compiler}}, 1);
  add(Kind::gauge, "uptime_seconds", kUptimeHelp, {}, uptime_seconds);
}

std::string Families::text() const { return impl_->text(); }

const char* word_of(Kind kind) { return kind == Kind::counter ? "counter" : "gauge"; }

std::string metric_row(const char* name, const char* type, const char* labels, const char* help) {
  return fmt::format("| `ballast_{}` | {} | {} | {} |\n", name, type,
                     *labels == '\0' ? "–" : labels, help);
}

std::string metric_rows_of_process() {
  return "| metric | type | labels | meaning |\n|---|---|---|---|\n" +
         metric_row("build_info", "gauge", "version, compiler", kBuildHelp) +
         metric_row("uptime_seconds", "gauge", "", kUptimeHelp);
}

}  // namespace ballast::telemetry
