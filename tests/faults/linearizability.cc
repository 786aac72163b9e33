// SPDX-License-Identifier: Apache-2.0
#include "linearizability.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "nil_search.h"
#include "zones.h"

namespace ballast::faults {
namespace {

using Operations = std::vector<Operation>;

struct Outcome {
  Contradiction contradiction;
  bool by_search = false;
  Nanos at_ns = kNever;
};

std::optional<Outcome> decide(const Operations& operations, const CheckOptions& options) {
  Zones zones;
  if (auto found = make_zones(operations, options, zones)) return Outcome{std::move(*found)};
  if (auto found = find_conflict(operations, zones)) return Outcome{std::move(*found)};
  const auto failure = search_nil(operations, zones);
  if (!failure) return std::nullopt;
  const std::string reason = failure->undecided
                                 ? "too many orders of effects to decide"
                                 : "no order of effects explains this: nothing emptied the "
                                   "register in time, or what did came before a value seen later";
  return Outcome{{reason, {failure->operation}}, true, failure->at_ns};
}

// What may be left out of a history without making a right one wrong: a read of nil, or a write
// together with all reads of its value. What may have emptied the register stays.
using Unit = std::vector<size_t>;

std::vector<Unit> make_units(const Operations& operations, Nanos until_ns) {
  std::unordered_map<Value, Unit> by_value;
  std::vector<Unit> units;
  std::unordered_set<Value> expiring;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    if (op.kind == OpKind::kDelete) continue;
    if (op.ttl_ns > 0) expiring.insert(op.value);
    if (op.value != kNil) {
      by_value[op.value].push_back(i);
    } else if (op.invoke_ns <= until_ns) {
      units.push_back({i});
    }
  }
  for (auto& [value, unit] : by_value) {
    if (expiring.contains(value)) continue;
    const bool is_early = std::any_of(
        unit.begin(), unit.end(), [&](size_t i) { return operations[i].invoke_ns <= until_ns; });
    if (is_early) units.push_back(std::move(unit));
  }
  return units;
}

Operations join(const Operations& operations, const std::vector<Unit>& units) {
  std::unordered_set<Value> expiring;
  for (const Operation& op : operations) {
    if (op.ttl_ns > 0) expiring.insert(op.value);
  }
  Operations joined;
  std::copy_if(operations.begin(), operations.end(), std::back_inserter(joined),
               [&](const Operation& op) {
                 return op.kind == OpKind::kDelete || expiring.contains(op.value);
               });
  for (const Unit& unit : units) {
    for (const size_t index : unit) joined.push_back(operations[index]);
  }
  return joined;
}

// Keeps, of what may have emptied the register, what overlaps the operations left over.
Operations drop_far(const Operations& operations, const std::vector<Unit>& units) {
  Nanos from_ns = kNever;
  Nanos until_ns = 0;
  for (const Unit& unit : units) {
    for (const size_t index : unit) {
      const Operation& op = operations[index];
      from_ns = std::min(from_ns, op.invoke_ns);
      until_ns = std::max(until_ns, op.response_ns == kNever ? op.invoke_ns : op.response_ns);
    }
  }
  Operations near = join(operations, units);
  std::erase_if(near, [&](const Operation& op) {
    const Nanos reach_ns = op.response_ns == kNever ? kNever : op.response_ns + op.ttl_ns;
    return op.invoke_ns > until_ns || reach_ns < from_ns;
  });
  return near;
}

// Leaves out ever smaller chunks of units as long as the search still fails (delta debugging).
Operations shrink(const Operations& operations, const CheckOptions& options, Nanos until_ns) {
  constexpr int kMaxTrials = 400;
  std::vector<Unit> units = make_units(operations, until_ns);
  int trials = 0;
  for (size_t chunk = units.size() / 2; chunk > 0; chunk /= 2) {
    for (size_t from = 0; from < units.size() && trials < kMaxTrials; ++trials) {
      std::vector<Unit> fewer = units;
      const size_t until = std::min(from + chunk, units.size());
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(from),
                  fewer.begin() + static_cast<ptrdiff_t>(until));
      const auto outcome = decide(join(operations, fewer), options);
      if (outcome && outcome->by_search) {
        units.swap(fewer);
      } else {
        from = until;
      }
    }
  }
  return drop_far(operations, units);
}

void sort_by_invocation(Operations& operations) {
  std::sort(operations.begin(), operations.end(), [](const Operation& a, const Operation& b) {
    return std::tie(a.invoke_ns, a.response_ns) < std::tie(b.invoke_ns, b.response_ns);
  });
}

std::string describe_operation(const Operation& op, Nanos origin_ns) {
  const auto ms = [&](Nanos at_ns) {
    return static_cast<double>(at_ns - origin_ns) / static_cast<double>(kMillisecond);
  };
  std::string what;
  if (op.kind == OpKind::kDelete) {
    what = op.is_flush ? "flush" : "delete";
  } else if (op.kind == OpKind::kRead) {
    what = op.value == kNil ? "read -> nil" : fmt::format("read -> {}", op.value);
  } else {
    what = fmt::format("write {}", op.value);
  }
  if (op.ttl_ns > 0) what += fmt::format(" for {:.0f} ms", ms(origin_ns + op.ttl_ns));
  const std::string end =
      op.response_ns == kNever ? "unknown" : fmt::format("{:.3f}", ms(op.response_ns));
  return fmt::format("  [{:.3f}, {}] session {}: {}", ms(op.invoke_ns), end, op.session, what);
}

}  // namespace

std::optional<Violation> check_key(std::string_view key, const Operations& operations,
                                   const CheckOptions& options) {
  auto outcome = decide(operations, options);
  if (!outcome) return std::nullopt;
  Violation violation{std::string(key), std::move(outcome->contradiction.reason), {}};
  if (outcome->by_search) {
    violation.window = shrink(operations, options, outcome->at_ns);
  } else {
    auto& indexes = outcome->contradiction.operations;
    std::sort(indexes.begin(), indexes.end());
    indexes.erase(std::unique(indexes.begin(), indexes.end()), indexes.end());
    for (const size_t index : indexes) violation.window.push_back(operations[index]);
  }
  sort_by_invocation(violation.window);
  return violation;
}

std::string describe(const Violation& violation) {
  std::string text = fmt::format("key {}: {}", violation.key, violation.reason);
  const Nanos origin_ns = violation.window.empty() ? 0 : violation.window.front().invoke_ns;
  for (const Operation& op : violation.window) text += "\n" + describe_operation(op, origin_ns);
  return text;
}

void History::add(const std::string& key, const Operation& operation) {
  keys_[key].push_back(operation);
  ++operations_;
}

void History::add_flush(Nanos invoke_ns, Nanos response_ns, int32_t session) {
  Operation flush{OpKind::kDelete, kNil, invoke_ns, response_ns};
  flush.session = session;
  flush.is_flush = true;
  flushes_.push_back(flush);
  ++operations_;
}

std::vector<Violation> History::check(const CheckOptions& options) const {
  std::vector<Violation> violations;
  for (const auto& [key, operations] : keys_) {
    Operations all = operations;
    all.insert(all.end(), flushes_.begin(), flushes_.end());
    if (auto violation = check_key(key, all, options)) violations.push_back(std::move(*violation));
  }
  return violations;
}

}  // namespace ballast::faults
