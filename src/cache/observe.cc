// SPDX-License-Identifier: Apache-2.0
// What a tier's process tells of itself: /status, /metrics, /readyz. On the loop's thread.
#include <algorithm>

#include "cache/tier.h"

namespace ballast::cache {
namespace {

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

telemetry::Status Tier::status() const {
  const Nanos now = now_ns();
  telemetry::Status status;
  status.tier = config_.tier;
  status.role = model::to_string(role_);
  status.uptime_seconds = static_cast<double>(now - started_) / static_cast<double>(kSecond);
  status.ready = ready();
  for (const auto& shard : shards_) {
    telemetry::ShardStatus row;
    row.name = shard->options().text;
    row.rack = shard->options().rack;
    row.up = shard->ready();
    row.requests = shard->stats().requests;
    row.rate = shard->load(now);
    row.error = shard->why();
    status.shards.push_back(std::move(row));
  }
  std::vector<telemetry::HotKey> hottest;
  for (const auto& member : layer_->members()) {
    if (!member->node) continue;
    const Node& node = *member->node;
    const NodeStats stats = node.stats();
    telemetry::NodeStatus row;
    row.name = member->name;
    row.layer = member->spine ? "spine" : "leaf";
    row.copies = stats.copies;
    row.bytes = stats.bytes;
    row.load = node.load(now);
    row.requests = stats.hits + stats.misses;
    row.hits = stats.hits;
    row.misses = stats.misses;
    row.lease_ok = true;
    for (uint32_t shard = 0; shard < shards_.size(); ++shard)
      if (member->spine || shards_[shard]->options().rack == member->rack)
        row.lease_ok &= node.lease_runs(shard, now);
    for (auto& [key, count] : node.hottest(10)) hottest.push_back({key, row.name, count});
    status.nodes.push_back(std::move(row));
  }
  std::stable_sort(hottest.begin(), hottest.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  if (hottest.size() > 10) hottest.resize(10);
  status.hottest = std::move(hottest);
  const telemetry::RouterMetrics& router = router_->metrics();
  status.router.clients = router_->clients();
  status.router.requests = router.commands;
  status.router.hit_ratio =
      ratio(router.hot_reads, router.hot_reads + router.cold_reads + router.joined_reads);
  status.router.cold_reads = router.cold_reads;
  status.router.writes = router.writes;
  return status;
}

telemetry::Snapshot Tier::snapshot() const {
  const Nanos now = now_ns();
  telemetry::Snapshot snapshot;
  snapshot.tier = config_.tier;
  snapshot.role = model::to_string(role_);
  snapshot.uptime_seconds = static_cast<double>(now - started_) / static_cast<double>(kSecond);
  snapshot.router = router_->metrics();
  snapshot.router.clients = router_->clients();
  snapshot.router.held_bytes = router_->held_bytes();
  snapshot.durations = durations_;
  for (const auto& member : layer_->members()) {
    if (!member->node) continue;
    const NodeStats stats = member->node->stats();
    telemetry::NodeMetrics row;
    row.node = member->name;
    row.layer = member->spine ? "spine" : "leaf";
    row.requests = stats.hits + stats.misses;
    row.hits = stats.hits;
    row.misses = stats.misses;
    row.limited = member->limited;
    row.admissions = stats.admissions;
    row.fills = stats.fills;
    row.fills_dropped = stats.fills_dropped;
    row.invalidations = stats.invalidations;
    row.evictions = stats.evictions;
    row.lapses = stats.lapses;
    row.copies = stats.copies;
    row.copy_bytes = stats.bytes;
    row.load = member->node->load(now);
    for (uint32_t shard = 0; shard < shards_.size(); ++shard)
      row.leases += member->node->lease_runs(shard, now);
    snapshot.durations.turned_hot.merge(member->node->turned_hot());
    snapshot.nodes.push_back(std::move(row));
  }
  for (const auto& shard : shards_) {
    const HomeStats home = shard->home_stats();
    telemetry::ShardMetrics row;
    row.shard = shard->options().text;
    row.rack = shard->options().rack;
    row.requests = shard->stats().requests;
    row.disconnects = shard->stats().disconnects;
    row.admissions = home.admissions;
    row.refusals = home.refusals;
    row.fills = home.fills;
    row.invalidations = home.invalidations;
    row.writes_delayed = home.writes_delayed;
    row.lease_waits = home.lease_waits;
    row.pushes = home.pushes;
    row.drops = home.drops;
    row.up = shard->ready();
    row.pending = shard->in_flight();
    row.entries = home.entries;
    row.waiting = home.waiting;
    snapshot.router.timeouts += shard->stats().timeouts;
    snapshot.router.late_replies += shard->late_replies();
    snapshot.shards.push_back(std::move(row));
  }
  return snapshot;
}

telemetry::Readiness Tier::readiness() const {
  telemetry::Readiness readiness;
  readiness.checks.push_back(
      {"listening", listener_ != nullptr, listener_ != nullptr ? "" : "not yet"});
  readiness.checks.push_back({"draining", leave_by_ == 0, leave_by_ == 0 ? "" : "leaving"});
  for (const auto& shard : shards_)
    if (answers_for(*shard))
      readiness.checks.push_back({"shard " + shard->options().text, shard->ready(), shard->why()});
  readiness.ready = std::all_of(readiness.checks.begin(), readiness.checks.end(),
                                [](const telemetry::Check& check) { return check.good; });
  return readiness;
}

}  // namespace ballast::cache
