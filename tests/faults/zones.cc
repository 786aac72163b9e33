// SPDX-License-Identifier: Apache-2.0
#include "zones.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/check.h"

namespace ballast::faults {
namespace {

using Operations = std::vector<Operation>;

Nanos plus(Nanos a, Nanos b) { return a == kNever ? kNever : a + b; }

Cluster make_cluster(const Operations& operations, size_t write, std::vector<size_t> reads,
                     const CheckOptions& options) {
  Cluster cluster;
  cluster.write = write;
  cluster.reads = std::move(reads);
  const auto consider = [&](size_t index) {
    const Operation& op = operations[index];
    if (op.response_ns < cluster.first_response_ns) {
      cluster.first_response_ns = op.response_ns;
      cluster.first_responder = index;
    }
    if (op.invoke_ns >= cluster.last_invoke_ns) {
      cluster.last_invoke_ns = op.invoke_ns;
      cluster.last_invoker = index;
    }
  };
  cluster.last_invoke_ns = operations[write].invoke_ns;
  consider(write);
  for (const size_t read : cluster.reads) consider(read);
  const Nanos ttl = operations[write].ttl_ns;
  if (ttl > 0) {
    cluster.expires_from_ns = operations[write].invoke_ns + ttl - options.expiry_slack_ns;
    cluster.expires_until_ns = plus(cluster.first_response_ns, ttl + options.expiry_slack_ns);
  }
  return cluster;
}

std::optional<Contradiction> check_cluster(const Operations& operations, const Cluster& cluster) {
  for (const size_t read : cluster.reads) {
    if (operations[read].response_ns < operations[cluster.write].invoke_ns) {
      return Contradiction{"a value was read before it was written", {cluster.write, read}};
    }
  }
  if (cluster.last_invoke_ns > cluster.expires_until_ns) {
    return Contradiction{"a value was read after its time to live was over",
                         {cluster.write, cluster.first_responder, cluster.last_invoker}};
  }
  return std::nullopt;
}

std::vector<size_t> members(const Cluster& cluster) {
  return {cluster.write, cluster.first_responder, cluster.last_invoker};
}

Contradiction between(std::string reason, const Cluster& a, std::vector<size_t> others) {
  for (const size_t index : members(a)) others.push_back(index);
  return {std::move(reason), std::move(others)};
}

}  // namespace

std::optional<Contradiction> make_zones(const Operations& operations, const CheckOptions& options,
                                        Zones& zones) {
  std::unordered_map<Value, size_t> writes;
  std::unordered_map<Value, std::vector<size_t>> reads;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    const bool known = op.response_ns != kNever;
    if (op.kind == OpKind::kWrite) {
      BALLAST_CHECK(op.value != kNil && writes.emplace(op.value, i).second);
    } else if (op.kind == OpKind::kDelete) {
      if (known) {
        zones.deletes.push_back(i);
      } else {
        zones.late_deletes.push_back({i, op.invoke_ns});
      }
    } else if (known && op.value == kNil) {
      zones.nil_reads.push_back(i);
    } else if (known) {
      reads[op.value].push_back(i);
    }
  }
  for (const auto& [value, indexes] : reads) {
    if (!writes.contains(value)) {
      return Contradiction{"a value was read that nobody wrote", {indexes.front()}};
    }
  }
  for (const auto& [value, write] : writes) {
    Cluster cluster = make_cluster(operations, write, std::move(reads[value]), options);
    if (auto contradiction = check_cluster(operations, cluster)) return contradiction;
    if (cluster.first_response_ns == kNever) {
      if (operations[write].ttl_ns > 0) {
        zones.late_deletes.push_back({write, cluster.expires_from_ns});
      }
      continue;
    }
    (cluster.is_forward() ? zones.forward : zones.backward).push_back(std::move(cluster));
  }
  const auto by_first_response = [](const Cluster& a, const Cluster& b) {
    return a.first_response_ns < b.first_response_ns;
  };
  std::sort(zones.forward.begin(), zones.forward.end(), by_first_response);
  std::sort(zones.backward.begin(), zones.backward.end(), by_first_response);
  return std::nullopt;
}

std::optional<Contradiction> find_conflict(const Operations& operations, const Zones& zones) {
  for (size_t i = 1; i < zones.forward.size(); ++i) {
    const Cluster& a = zones.forward[i - 1];
    const Cluster& b = zones.forward[i];
    if (b.first_response_ns < a.last_invoke_ns) {
      return between(
          "an overwritten value was read again: each of two values was seen before and "
          "after the other",
          a, members(b));
    }
  }
  // The forward zones are apart from here on. `holder` finds the one that covers an interval.
  const auto holder = [&](Nanos from, Nanos until) -> const Cluster* {
    const auto after = std::partition_point(
        zones.forward.begin(), zones.forward.end(),
        [&](const Cluster& cluster) { return cluster.first_response_ns < from; });
    if (after == zones.forward.begin()) return nullptr;
    const Cluster& cluster = *std::prev(after);
    return until < cluster.last_invoke_ns ? &cluster : nullptr;
  };
  for (const Cluster& cluster : zones.backward) {
    if (const Cluster* held = holder(cluster.last_invoke_ns, cluster.first_response_ns)) {
      return between("an overwritten value was read again", *held, members(cluster));
    }
  }
  for (const size_t index : zones.deletes) {
    const Operation& op = operations[index];
    if (const Cluster* held = holder(op.invoke_ns, op.response_ns)) {
      return between("a deleted value was read again", *held, {index});
    }
  }
  for (const size_t index : zones.nil_reads) {
    const Operation& op = operations[index];
    if (const Cluster* held = holder(op.invoke_ns, op.response_ns)) {
      return between("nothing was read while a value was there before and after", *held, {index});
    }
  }
  return std::nullopt;
}

}  // namespace ballast::faults
