// SPDX-License-Identifier: Apache-2.0
// Every metric, defined once: X(kind, field, name, help) makes the plain field that the data path's
// thread counts in, the line in /metrics and the row in docs/reference/cache-metrics.md. Fields
// have one writer; a scrape takes a copy on that thread and exposition() turns it into text
// elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"

namespace ballast::telemetry {

// Of a router; no labels.
#define BALLAST_ROUTER_METRICS(X)                                                               \
  X(counter, connections, "client_connections_total", "Client connections accepted")            \
  X(counter, connections_refused, "client_connections_refused_total",                           \
    "Client connections refused, max_clients being reached")                                    \
  X(counter, clients_closed_slow, "clients_closed_slow_total",                                  \
    "Clients closed for not reading their replies")                                             \
  X(counter, protocol_errors, "client_protocol_errors_total",                                   \
    "Clients closed for malformed or oversized requests")                                       \
  X(counter, auth_failures, "client_auth_failures_total", "AUTH and HELLO refused")             \
  X(counter, received_bytes, "client_received_bytes_total", "Bytes received from clients")      \
  X(counter, sent_bytes, "client_sent_bytes_total", "Bytes sent to clients")                    \
  X(counter, commands, "commands_total", "Commands received")                                   \
  X(counter, command_errors, "command_errors_total", "Commands that the tier itself refused")   \
  X(counter, hot_reads, "reads_hot_total", "Reads answered by a copy")                          \
  X(counter, cold_reads, "reads_cold_total", "Reads sent to a shard")                           \
  X(counter, joined_reads, "reads_joined_total",                                                \
    "Reads of a hot key without a good copy, answered by another's read of the shard")          \
  X(counter, sampled_reads, "reads_sampled_total",                                              \
    "Reads of keys not known to be cached, sent to a node so that it sees what is hot")         \
  X(counter, missed_reads, "reads_missed_total",                                                \
    "Reads of a cached key for which a node was asked that had no copy of it")                  \
  X(counter, writes, "writes_total", "Commands that may write, sent to a shard")                \
  X(counter, split_commands, "split_commands_total", "Commands split over several shards")      \
  X(counter, timeouts, "shard_timeouts_total", "Commands unanswered within shard_timeout")      \
  X(counter, late_replies, "shard_late_replies_total", "Replies dropped, coming after timeout") \
  X(gauge, clients, "clients", "Client connections open")                                       \
  X(gauge, held_bytes, "client_held_bytes",                                                     \
    "Kept for clients: commands not answered, replies not taken yet, in bytes")

// Of a leaf or a spine; labels node and layer.
#define BALLAST_NODE_METRICS(X)                                                              \
  X(counter, requests, "node_requests_total", "Reads that reached the node")                 \
  X(counter, hits, "node_hits_total", "Reads answered by a copy")                            \
  X(counter, misses, "node_misses_total", "Reads without a good copy")                       \
  X(counter, limited, "node_limited_total", "Reads that waited for their turn by node_rate") \
  X(counter, admissions, "node_admissions_total", "Copies asked for")                        \
  X(counter, fills, "node_fills_total", "Values taken into copies")                          \
  X(counter, fills_dropped, "node_fills_dropped_total",                                      \
    "Values dropped, being older than an invalidation or for a copy that has gone")          \
  X(counter, invalidations, "node_invalidations_total", "Invalidations received")            \
  X(counter, evictions, "node_evictions_total", "Copies given up for hotter ones")           \
  X(counter, lapses, "node_lease_lapses_total", "Leases that ran out before renewal")        \
  X(gauge, copies, "node_copies", "Copies held")                                             \
  X(gauge, copy_bytes, "node_copy_bytes", "Memory of the copies held, in bytes")             \
  X(gauge, load, "node_load", "Requests within the last window")                             \
  X(gauge, leases, "node_leases", "Shards whose lease runs")

// Of a shard and its home; labels shard and rack.
#define BALLAST_SHARD_METRICS(X)                                                                 \
  X(counter, requests, "shard_requests_total", "Commands sent to the shard")                     \
  X(counter, disconnects, "shard_disconnects_total", "Connections to the shard lost")            \
  X(counter, admissions, "home_admissions_total", "Copies granted to nodes")                     \
  X(counter, refusals, "home_refusals_total", "Copies refused")                                  \
  X(counter, fills, "home_fills_total", "Values sent to copies")                                 \
  X(counter, invalidations, "home_invalidations_total", "Invalidations sent, repeats included")  \
  X(counter, writes_delayed, "home_writes_delayed_total", "Writes that waited for copies to go") \
  X(counter, lease_waits, "home_lease_waits_total",                                              \
    "Waits for a lease to run out because a node did not acknowledge")                           \
  X(counter, pushes, "home_pushes_total", "Changes by other writers, told by the shard")         \
  X(counter, drops, "home_drops_total", "Times all copies of the shard were dropped")            \
  X(gauge, up, "shard_up", "1 when the shard answers and its home may write to it")              \
  X(gauge, pending, "shard_pending", "Commands sent and not yet answered")                       \
  X(gauge, entries, "home_entries", "Keys with copies or traces of them")                        \
  X(gauge, waiting, "home_waiting_writes", "Writes waiting for copies to go")

// Of a router: X(field, name, path label or "", help); recorded in nanoseconds, shown in seconds.
#define BALLAST_HISTOGRAMS(X)                                                        \
  X(hot_read, "request_duration_seconds", "hot",                                     \
    "From a command's being read to its reply, by path (hot: copies waited for)")    \
  X(cold_read, "request_duration_seconds", "cold",                                   \
    "From a command's being read to its reply, by path (hot: copies waited for)")    \
  X(write, "request_duration_seconds", "write",                                      \
    "From a command's being read to its reply, by path (hot: copies waited for)")    \
  X(write_wait, "write_wait_seconds", "", "How long writes waited for copies to go") \
  X(turned_hot, "turned_hot_seconds", "", "From asking for a key's copy to its first hit")

#define BALLAST_FIELD(kind, field, name, help) uint64_t field = 0;
#define BALLAST_HISTOGRAM_FIELD(field, name, path, help) Histogram field;

struct RouterMetrics {
  BALLAST_ROUTER_METRICS(BALLAST_FIELD)
};
struct NodeMetrics {
  std::string node;
  std::string layer;  // leaf or spine
  BALLAST_NODE_METRICS(BALLAST_FIELD)
};
struct ShardMetrics {
  std::string shard;  // host:port
  std::string rack;
  BALLAST_SHARD_METRICS(BALLAST_FIELD)
};
struct Durations {
  BALLAST_HISTOGRAMS(BALLAST_HISTOGRAM_FIELD)
};

#undef BALLAST_FIELD
#undef BALLAST_HISTOGRAM_FIELD

// One scrape's copy of everything a process counts.
struct Snapshot {
  std::string tier;
  std::string role;
  double uptime_seconds = 0;
  RouterMetrics router;
  std::vector<NodeMetrics> nodes;
  std::vector<ShardMetrics> shards;
  Durations durations;
};

// Prometheus text format 0.0.4.
std::string exposition(const Snapshot& snapshot);

// docs/reference/cache-metrics.md.
std::string metrics_page();

}  // namespace ballast::telemetry
