// SPDX-License-Identifier: Apache-2.0
// Every metric of the balancer, defined once: X(kind, field, name, help) makes the plain field, the
// line in /metrics and the row in docs/reference/lb-metrics.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"

namespace ballast::lb {

class Balancer;

// Of the process; no labels.
#define BALLAST_LB_METRICS(X)                                                                      \
  X(gauge, connections, "lb_connections", "Entries in the connection table")                       \
  X(gauge, capacity, "lb_connections_capacity", "Entries that the connection table takes")         \
  X(counter, aged, "lb_connections_aged_total", "Entries deleted after they were idle too long")   \
  X(gauge, leaving, "lb_instances_leaving",                                                        \
    "Instances not configured any more that have connections left")                                \
  X(counter, generation, "lb_configuration_changes_total", "Changes of the VIPs")                  \
  X(counter, rounds, "lb_rounds_total", "Times all weights were reckoned")                         \
  X(counter, map_writes, "lb_map_writes_total", "Entries written into the packet path's tables")   \
  X(counter, write_errors, "lb_map_write_errors_total", "Writes of them that failed, tried again") \
  X(counter, strays, "lb_poll_strays_total", "Answers of agents to no question under way")

// Of a VIP; label vip.
#define BALLAST_LB_VIP_METRICS(X)                                               \
  X(counter, packets, "lb_vip_packets_total",                                   \
    "Packets sent to its instances, those that left among them")                \
  X(counter, bytes, "lb_vip_bytes_total", "Their bytes, from the IP header on") \
  X(counter, flows, "lb_vip_flows_total", "Flows that were given an instance")  \
  X(gauge, connections, "lb_vip_connections", "Connections open")               \
  X(gauge, instances, "lb_vip_instances", "Instances configured")               \
  X(gauge, usable, "lb_vip_instances_usable", "Of those, with a weight above 0")

// Of an instance of a VIP; labels vip and vip_instance (Prometheus has an instance of its own).
#define BALLAST_LB_INSTANCE_METRICS(X)                                                        \
  X(counter, packets, "lb_instance_packets_total", "Packets sent to the instance")            \
  X(counter, bytes, "lb_instance_bytes_total", "Their bytes, from the IP header on")          \
  X(counter, flows, "lb_instance_flows_total", "Flows that were given it")                    \
  X(gauge, connections, "lb_instance_connections", "Connections open")                        \
  X(gauge, weight, "lb_instance_weight", "Its weight now")                                    \
  X(gauge, share, "lb_instance_share_ratio", "Its part of new flows, 0 to 1")                 \
  X(gauge, utilisation, "lb_instance_utilisation_ratio",                                      \
    "The load that its weight was reckoned with, 0 to 1")                                     \
  X(gauge, available, "lb_instance_available", "Capacity that is free, by its static weight") \
  X(gauge, up, "lb_instance_up", "1 when it is healthy, not in maintenance, with a next hop") \
  X(counter, checks, "lb_instance_health_checks_total", "Health checks that ended")           \
  X(counter, bad_checks, "lb_instance_health_checks_bad_total", "Of those, bad ones")         \
  X(counter, polls, "lb_instance_polls_total", "Polls of its load")                           \
  X(counter, answers, "lb_instance_poll_answers_total", "Of those, answered")                 \
  X(counter, refused, "lb_instance_poll_refused_total",                                       \
    "Answers that were forged, unreadable, or with a figure that cannot be")                  \
  X(gauge, missed, "lb_instance_polls_missed", "Polls in a row without an answer, up to now")

// X(field, name, help); recorded in nanoseconds, shown in seconds.
#define BALLAST_LB_HISTOGRAMS(X)                                                     \
  X(lateness, "lb_poll_lateness_seconds", "How late polls left after they were due") \
  X(round_trips, "lb_poll_round_trip_seconds", "From an agent's poll until its answer was seen")

#define BALLAST_FIELD(kind, field, name, help) double field = 0;
#define BALLAST_HISTOGRAM_FIELD(field, name, help) Histogram field;

struct VipMetrics {
  std::string vip;
  BALLAST_LB_VIP_METRICS(BALLAST_FIELD)
};
struct InstanceMetrics {
  std::string vip;
  std::string instance;
  BALLAST_LB_INSTANCE_METRICS(BALLAST_FIELD)
};
struct InterfaceMetrics {
  std::string interface;
  std::string mode;  // mode_of() it
};
// One scrape's copy of everything that is counted.
struct LbMetrics {
  double uptime_seconds = 0;  // collect_metrics() leaves it so
  BALLAST_LB_METRICS(BALLAST_FIELD)
  BALLAST_LB_HISTOGRAMS(BALLAST_HISTOGRAM_FIELD)
  std::vector<uint64_t> counters;  // by enum bl_counter
  std::vector<InterfaceMetrics> interfaces;
  std::vector<VipMetrics> vips;
  std::vector<InstanceMetrics> instances;
};

#undef BALLAST_FIELD
#undef BALLAST_HISTOGRAM_FIELD

// On the balancer's loop.
LbMetrics collect_metrics(const Balancer& balancer);

// Prometheus text format 0.0.4; any thread.
std::string exposition(const LbMetrics& metrics);

// docs/reference/lb-metrics.md.
std::string lb_metrics_page();

}  // namespace ballast::lb
