// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics.h"

#include "telemetry/families.h"

namespace ballast::telemetry {

constexpr const char* kProcessHelp = "Which tier and role this process is; always 1";

std::string exposition(const Snapshot& snapshot) {
  Families families;
  families.add_process(snapshot.uptime_seconds);
  families.add(Kind::gauge, "process_info", kProcessHelp,
               {{"tier", snapshot.tier}, {"role", snapshot.role}}, 1);
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

)";
  page += metric_rows_of_process();
  page += metric_row("process_info", "gauge", "tier, role", kProcessHelp);
#define BALLAST_ROW(kind, field, name, help) \
  page += metric_row(name, word_of(Kind::kind), labels, help);
  const char* labels = "";
  BALLAST_ROUTER_METRICS(BALLAST_ROW)
  labels = "node, layer";
  BALLAST_NODE_METRICS(BALLAST_ROW)
  labels = "shard, rack";
  BALLAST_SHARD_METRICS(BALLAST_ROW)
#undef BALLAST_ROW
  std::string last;
#define BALLAST_ROW(field, name, path, help)                                    \
  if (last != (name)) {                                                         \
    page += metric_row(name, "histogram", *(path) == '\0' ? "" : "path", help); \
    last = name;                                                                \
  }
  BALLAST_HISTOGRAMS(BALLAST_ROW)
#undef BALLAST_ROW
  return page;
}

}  // namespace ballast::telemetry
