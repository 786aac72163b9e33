// SPDX-License-Identifier: Apache-2.0
#include "sim/queueing.h"

#include <algorithm>
#include <cmath>

#include "balance/hash.h"
#include "base/check.h"

namespace ballast::sim {
namespace {

constexpr uint64_t kEnoughToJudge = 100;
constexpr Nanos kTick = 10 * kMillisecond;
constexpr size_t kManyFlights = 100'000;

// First the objects with copies, then the servers' requests for all others.
AliasTable make_table(const Layout& layout) {
  std::vector<double> weights;
  weights.reserve(layout.cached.size() + layout.cold_share.size());
  for (const CachedObject& object : layout.cached) weights.push_back(object.share);
  weights.insert(weights.end(), layout.cold_share.begin(), layout.cold_share.end());
  return AliasTable(weights);
}

}  // namespace

QueueingModel::QueueingModel(const Layout& layout, const QueueingOptions& options)
    : layout_(&layout),
      options_(options),
      random_(options.seed),
      table_(make_table(layout)),
      nodes_(layout.scenario.nodes()),
      servers_(layout.scenario.servers()),
      windows_(nodes_.size()),
      valid_at_(layout.cached.size()),
      dead_(nodes_.size()) {
  BALLAST_CHECK(options.rate > 0 && options.routers > 0 && options.requests_per_unit > 0);
  const double unit = static_cast<double>(kSecond) / options.requests_per_unit;
  gap_ = unit / options.rate;
  for (Station& node : nodes_) node.service = unit / layout.scenario.capacity_of_node();
  for (Station& server : servers_) server.service = unit / layout.scenario.server_capacity;
  for (size_t i = 0; i < options.routers; ++i) {
    routers_.push_back(
        {balance::LoadTable(nodes_.size(), options.choice), std::vector<Nanos>(nodes_.size())});
  }
  if (options.admit_objects > 0)
    contents_.emplace(layout, options.admit_objects, balance::mix(options.seed, 5));
}

void QueueingModel::run(Nanos until) {
  const auto end = static_cast<double>(until);
  while (next_ < end) {
    if (contents_ && next_ >= static_cast<double>(next_tick_)) {
      contents_->tick(next_tick_);
      next_tick_ += kTick;
    }
    step(static_cast<Nanos>(next_));
    next_ += options_.paced ? gap_ : gap_ * exponential();
  }
}

Counts QueueingModel::take_counts() {
  Counts counts = counts_;
  counts_ = {};
  for (auto* stations : {&nodes_, &servers_}) {
    for (Station& station : *stations) {
      if (station.offered >= kEnoughToJudge) {
        counts.worst_loss = std::max(counts.worst_loss, static_cast<double>(station.lost) /
                                                            static_cast<double>(station.offered));
      }
      station.offered = station.lost = 0;
    }
  }
  return counts;
}

void QueueingModel::change_layout(const Layout& layout) {
  BALLAST_CHECK(!contents_ && layout.scenario.nodes() == nodes_.size() &&
                layout.scenario.servers() == servers_.size());
  layout_ = &layout;
  table_ = make_table(layout);
  valid_at_.assign(layout.cached.size(), 0);
  flights_.clear();
}

double QueueingModel::backlog() const {
  double sum = 0;
  for (const Station& node : nodes_) sum += std::max(0.0, node.free_at - next_) / node.service;
  return sum;
}

double QueueingModel::largest_backlog() const {
  double most = 0;
  for (const Station& node : nodes_) most = std::max(most, (node.free_at - next_) / node.service);
  return most;
}

void QueueingModel::step(Nanos now) {
  uint32_t drawn = table_.pick(random_.next());
  ++counts_.requests;
  const auto cached = static_cast<uint32_t>(layout_->cached.size());
  if (drawn < cached && shift_ > 0) drawn = static_cast<uint32_t>((drawn + shift_) % cached);
  const double writes = layout_->scenario.writes;
  const double not_reads = writes + layout_->scenario.direct;
  const double kind = not_reads > 0 && drawn < cached ? random_.unit() : 1;
  bool done = false;
  if (drawn >= cached) {
    done = !crosses_dead_spine() && offer(servers_[drawn - cached], now, 1);
  } else if (kind < writes) {
    done = !crosses_dead_spine() && write(drawn, now);
  } else if (kind < not_reads) {
    done = !crosses_dead_spine() && offer(servers_[layout_->cached[drawn].server], now, 1);
  } else {
    done = contents_ ? read_admitted(drawn, now) : read(drawn, now);
  }
  if (!done) ++counts_.lost;
}

bool QueueingModel::crosses_dead_spine() {
  if (!options_.cross_spines) return false;
  const size_t spine = random_.below(layout_->scenario.spines);
  return dead_[layout_->scenario.racks + spine];
}

// Counts among the holders.
size_t QueueingModel::choose(Router& router, std::span<const uint16_t> holders, Nanos now) {
  if (holders.size() == 1) return 0;
  return layout_->scenario.scheme == Scheme::kRandomSplit
             ? random_.below(holders.size())
             : router.loads.choose(holders, now, random_);
}

uint32_t QueueingModel::next_router() {
  return static_cast<uint32_t>(options_.paced ? turn_++ % routers_.size()
                                              : random_.below(routers_.size()));
}

bool QueueingModel::read(uint32_t index, Nanos now) {
  const uint32_t router = next_router();
  const auto holders = layout_->holders_of(layout_->cached[index]);
  const size_t node = holders[choose(routers_[router], holders, now)];
  if (!ask(routers_[router], node, now)) return false;
  if (now < valid_at_[index]) return read_at_server(router, index, now);
  ++counts_.at_nodes;
  return true;
}

// One request at a node, which tells the router its load; false if it is lost.
bool QueueingModel::ask(Router& router, size_t node, Nanos now) {
  router.loads.sent(static_cast<uint16_t>(node));
  if (dead_[node] || (node < layout_->scenario.racks && crosses_dead_spine())) return false;
  if (!offer(nodes_[node], now, 1)) return false;
  windows_[node].count(now);
  if (now >= router.next_report[node]) {
    router.loads.report(static_cast<uint16_t>(node), windows_[node].load(now), now);
    router.next_report[node] = now + options_.telemetry;
  }
  return true;
}

// As cache/layer.cc finds a copy and cache/node.cc counts: of the reads of objects that no node
// holds one in `sample` goes to a node, for as many.
bool QueueingModel::read_admitted(uint32_t index, Nanos now) {
  const CachedObject& object = layout_->cached[index];
  const auto holders = layout_->holders_of(object);
  bool held = false;
  for (size_t i = 0; i < holders.size(); ++i) held = held || holds(index, i);
  if (!held && random_.below(options_.sample) != 0) return offer(servers_[object.server], now, 1);
  const uint32_t router = next_router();
  const size_t pick = choose(routers_[router], holders, now);
  for (size_t i = 0; i < holders.size(); ++i) {
    const size_t at = (pick + i) % holders.size();
    if (!ask(routers_[router], holders[at], now)) return false;
    const bool had = holds(index, at);
    if (contents_->observe(index, at, held ? 1 : options_.sample))
      push(servers_[object.server], now, 1);  // to fill the copy
    if (had && now >= valid_at_[index]) {
      ++counts_.at_nodes;
      return true;
    }
    if (!held) return offer(servers_[object.server], now, 1);
  }
  return read_at_server(router, index, now);
}

bool QueueingModel::read_at_server(uint32_t router, uint32_t index, Nanos now) {
  Station& server = servers_[layout_->cached[index].server];
  if (!options_.collapse) return offer(server, now, 1);
  const auto time = static_cast<double>(now);
  if (flights_.size() > kManyFlights)
    boost::unordered::erase_if(flights_, [&](const auto& each) { return each.second.ends < time; });
  Flight& flight = flights_[uint64_t{router} << 32 | index];
  if (time < flight.begins) return true;
  if (!offer(server, now, 1)) return false;
  flight.begins = std::max(time, flight.ends);
  flight.ends = std::max(server.free_at, flight.begins);
  return true;
}

bool QueueingModel::write(uint32_t index, Nanos now) {
  const CachedObject& object = layout_->cached[index];
  const WriteCost& cost = layout_->scenario.cost;
  Station& server = servers_[object.server];
  const auto holders = layout_->holders_of(object);
  uint32_t copies = 0;
  for (size_t i = 0; i < holders.size(); ++i) copies += holds(index, i);
  if (!offer(server, now, 1 + cost.server_per_copy * copies)) return false;
  if (copies == 0) return true;
  valid_at_[index] = std::max(valid_at_[index], static_cast<Nanos>(server.free_at));
  // Invalidations are repeated until they arrive, so a full queue loses none.
  for (size_t i = 0; i < holders.size(); ++i)
    if (holds(index, i)) push(nodes_[holders[i]], now, cost.node_per_copy);
  return true;
}

bool QueueingModel::offer(Station& station, Nanos now, double requests) {
  ++station.offered;
  if (station.free_at - static_cast<double>(now) > (options_.queue - 1) * station.service) {
    ++station.lost;
    return false;
  }
  push(station, now, options_.exponential_service ? requests * exponential() : requests);
  return true;
}

void QueueingModel::push(Station& station, Nanos now, double requests) {
  station.free_at =
      std::max(station.free_at, static_cast<double>(now)) + requests * station.service;
}

}  // namespace ballast::sim
