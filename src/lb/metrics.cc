// SPDX-License-Identifier: Apache-2.0
#include "lb/metrics.h"

#include "loader/lb_program.h"
#include "telemetry/families.h"

namespace ballast::lb {
namespace {

using telemetry::Families;
using telemetry::Kind;
using telemetry::Labels;
using telemetry::metric_row;

constexpr const char* kDrops = "lb_drops_total";
constexpr const char* kDropsHelp = "Packets dropped, by reason";
constexpr const char* kEvents = "lb_events_total";
constexpr const char* kEventsHelp = "What else the packet path counted, by event";
constexpr const char* kInterface = "lb_interface_info";
constexpr const char* kInterfaceHelp = "Where the packet path is attached, and how; always 1";

}  // namespace

std::string exposition(const LbMetrics& metrics) {
  Families families;
  families.add_process(metrics.uptime_seconds);
  for (const InterfaceMetrics& each : metrics.interfaces)
    families.add(Kind::gauge, kInterface, kInterfaceHelp,
                 {{"interface", each.interface}, {"mode", each.mode}}, 1);
#define BALLAST_ADD(kind, field, name, help) families.add(Kind::kind, name, help, labels, of.field);
  {
    const Labels labels;
    const LbMetrics& of = metrics;
    BALLAST_LB_METRICS(BALLAST_ADD)
  }
  for (const VipMetrics& of : metrics.vips) {
    const Labels labels{{"vip", of.vip}};
    BALLAST_LB_VIP_METRICS(BALLAST_ADD)
  }
  for (const InstanceMetrics& of : metrics.instances) {
    const Labels labels{{"vip", of.vip}, {"vip_instance", of.instance}};
    BALLAST_LB_INSTANCE_METRICS(BALLAST_ADD)
  }
#undef BALLAST_ADD
  const auto& names = loader::counter_names();
  for (size_t i = 0; i < metrics.counters.size() && i < names.size(); ++i) {
    const auto count = static_cast<double>(metrics.counters[i]);
    if (names[i].is_drop)
      families.add(Kind::counter, kDrops, kDropsHelp, {{"reason", names[i].name}}, count);
    else
      families.add(Kind::counter, kEvents, kEventsHelp, {{"event", names[i].name}}, count);
  }
#define BALLAST_ADD(field, name, help) families.add(name, help, {}, metrics.field);
  BALLAST_LB_HISTOGRAMS(BALLAST_ADD)
#undef BALLAST_ADD
  return families.text();
}

std::string lb_metrics_page() {
  std::string page = R"(# ballast lb: metrics

<!-- Written by `ballast help --lb-metrics`; a test compares this page with it. -->

At `/metrics` of `[lb]`'s `admin`, text format 0.0.4; `/livez` says that the process is there, `/readyz?verbose` whether it takes
packets and which VIPs have no instance. What the packet path counts goes on over a restart that keeps its tables; the rest
starts at 0 with the process. `packaging/grafana-lb.json` is a dashboard of these.

)";
  page += telemetry::metric_rows_of_process();
  page += metric_row(kInterface, "gauge", "interface, mode", kInterfaceHelp);
#define BALLAST_ROW(kind, field, name, help) \
  page += metric_row(name, word_of(Kind::kind), labels, help);
  const char* labels = "";
  BALLAST_LB_METRICS(BALLAST_ROW)
  labels = "vip";
  BALLAST_LB_VIP_METRICS(BALLAST_ROW)
  labels = "vip, vip_instance";
  BALLAST_LB_INSTANCE_METRICS(BALLAST_ROW)
#undef BALLAST_ROW
  page += metric_row(kDrops, "counter", "reason", kDropsHelp);
  page += metric_row(kEvents, "counter", "event", kEventsHelp);
#define BALLAST_ROW(field, name, help) page += metric_row(name, "histogram", "", help);
  BALLAST_LB_HISTOGRAMS(BALLAST_ROW)
#undef BALLAST_ROW
  page += "\n| reason or event | meaning |\n|---|---|\n";
  for (const loader::CounterName& each : loader::counter_names())
    page += std::string("| `") + each.name + "` | " + each.words + " |\n";
  return page;
}

}  // namespace ballast::lb
