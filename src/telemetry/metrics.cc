// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics.h"

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
using Labels = std::vector<ClientMetric::Label>;

constexpr Nanos kBounds[] = {
    50 * kMicrosecond,  100 * kMicrosecond,  250 * kMicrosecond,  500 * kMicrosecond,
    1 * kMillisecond,   2500 * kMicrosecond, 5 * kMillisecond,    10 * kMillisecond,
    25 * kMillisecond,  50 * kMillisecond,   100 * kMillisecond,  250 * kMillisecond,
    500 * kMillisecond, 1 * kSecond,         2500 * kMillisecond, 5 * kSecond,
    10 * kSecond,
};

// NOLINTNEXTLINE(readability-identifier-naming): the rows of the metrics' table say it so
enum class Kind { counter, gauge };

double seconds(double nanos) { return nanos / static_cast<double>(kSecond); }

// Families in the order they are first named; samples of one family stay together, as the format
// wants.
class Families {
 public:
  void add(Kind kind, const char* name, const char* help, const Labels& labels, double value) {
    ClientMetric metric;
    metric.label = labels;
    if (kind == Kind::counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    family(name, help, kind == Kind::counter ? MetricType::Counter : MetricType::Gauge)
        .push_back(std::move(metric));
  }

  void add(const char* name, const char* help, const Labels& labels, const Histogram& histogram) {
    ClientMetric metric;
    metric.label = labels;
    metric.histogram.sample_count = histogram.count();
    metric.histogram.sample_sum = seconds(histogram.sum());
    for (const Nanos bound : kBounds) {
      metric.histogram.bucket.push_back(
          {histogram.count_at_most(bound), seconds(static_cast<double>(bound))});
    }
    family(name, help, MetricType::Histogram).push_back(std::move(metric));
  }

  std::string text() const {
    return static_cast<const prometheus::Serializer&>(prometheus::TextSerializer())
        .Serialize(families_);
  }

 private:
  std::vector<ClientMetric>& family(const char* name, const char* help, MetricType type) {
    const auto [at, fresh] = index_.emplace(name, families_.size());
    if (fresh) families_.push_back({fmt::format("ballast_{}", name), help, type, {}});
    return families_[at->second].metric;
  }

  std::vector<MetricFamily> families_;
  std::map<std::string, size_t> index_;
};

void table_rows(std::string& page, Kind kind, const char* name, const char* labels,
                const char* help) {
  page += fmt::format("| `ballast_{}` | {} | {} | {} |\n", name,
                      kind == Kind::counter ? "counter" : "gauge", labels, help);
}

}  // namespace

std::string exposition(const Snapshot& snapshot) {
  Families families;
  const BuildInfo& build = build_info();
  families.add(Kind::gauge, "build_info", "What the program was built from; always 1",
               {{"version", build.version}, {"compiler", build.compiler}}, 1);
  families.add(Kind::gauge, "process_info", "Which tier and role this process is; always 1",
               {{"tier", snapshot.tier}, {"role", snapshot.role}}, 1);
  families.add(Kind::gauge, "uptime_seconds", "Time since the process started", {},
               snapshot.uptime_seconds);
#define BALLAST_ADD(kind, field, name, help) \
  families.add(Kind::kind, name, help, labels, static_cast<double>(of.field));
  {
    const Labels labels;
    const RouterMetrics& of = snapshot.router;
    BALLAST_ROUTER_METRICS(BALLAST_ADD)
  }
  for (const NodeMetrics& of : snapshot.nodes) {
    const Labels labels{{"node", of.node}, {"layer", of.layer}};
    BALLAST_NODE_METRICS(BALLAST_ADD)
  }
  for (const ShardMetrics& of : snapshot.shards) {
    const Labels labels{{"shard", of.shard}, {"rack", of.rack}};
    BALLAST_SHARD_METRICS(BALLAST_ADD)
  }
#undef BALLAST_ADD
#define BALLAST_ADD(field, name, path, help)                                    \
  families.add(name, help, *(path) == '\0' ? Labels() : Labels{{"path", path}}, \
               snapshot.durations.field);
  BALLAST_HISTOGRAMS(BALLAST_ADD)
#undef BALLAST_ADD
  return families.text();
}

std::string metrics_page() {
  std::string page = R"(# ballast cache: metrics

<!-- Written by `ballast help --metrics`; a test compares this page with it. -->

At `/metrics` of the admin address, text format 0.0.4. Counters start at 0 with the process. No label ever holds a key.
Histograms' buckets run from 50 µs to 10 s; a value up to 1/128 above a bucket's bound may be counted in it.

| metric | type | labels | meaning |
|---|---|---|---|
| `ballast_build_info` | gauge | version, compiler | What the program was built from; always 1 |
| `ballast_process_info` | gauge | tier, role | Which tier and role this process is; always 1 |
| `ballast_uptime_seconds` | gauge | – | Time since the process started |
)";
#define BALLAST_ROW(kind, field, name, help) table_rows(page, Kind::kind, name, labels, help);
  const char* labels = "–";
  BALLAST_ROUTER_METRICS(BALLAST_ROW)
  labels = "node, layer";
  BALLAST_NODE_METRICS(BALLAST_ROW)
  labels = "shard, rack";
  BALLAST_SHARD_METRICS(BALLAST_ROW)
#undef BALLAST_ROW
  std::string last;
#define BALLAST_ROW(field, name, path, help)                              \
  if (last != (name)) {                                                   \
    page += fmt::format("| `ballast_{}` | histogram | {} | {} |\n", name, \
                        *(path) == '\0' ? "–" : "path", help);            \
    last = name;                                                          \
  }
  BALLAST_HISTOGRAMS(BALLAST_ROW)
#undef BALLAST_ROW
  return page;
}

}  // namespace ballast::telemetry
