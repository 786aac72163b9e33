// SPDX-License-Identifier: Apache-2.0
// The queueing model: requests one by one through routers that choose by stale loads, into nodes
// and servers with finite queues. The choice, the loads and their windows are the product's.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "balance/choice.h"
#include "base/clock.h"
#include "base/random.h"
#include "sim/alias_table.h"
#include "sim/contents.h"
#include "sim/layout.h"

namespace ballast::sim {

struct QueueingOptions {
  double rate = 0;                  // of all requests, in the unit of the capacities; > 0
  double requests_per_unit = 1000;  // a second: how fast a server of capacity 1 is
  size_t routers = 32;
  // A router takes a node's load from its replies, but not more often than this; 0: each reply.
  Nanos telemetry = 0;
  balance::ChoiceOptions choice = {};
  bool paced = false;               // else Poisson
  bool exponential_service = true;  // else fixed
  double queue = 128;               // requests that a node or server holds, in mean service times
  // > 0: nodes start empty and hold so many objects, those that the product's admission picks; the
  // layout's holders are those that may (make_candidates()). 0: all holders hold.
  size_t admit_objects = 0;
  uint32_t sample = 64;       // one in so many reads of objects not cached goes to a node
  bool collapse = true;       // a router's reads of an object without a good copy share reads
  bool cross_spines = false;  // all else also passes a random spine, as in the paper's network
  uint64_t seed = 1;
};

struct Counts {
  uint64_t requests = 0;
  uint64_t lost = 0;
  uint64_t at_nodes = 0;  // answered by a copy
  double worst_loss = 0;  // the largest share that one node or server lost
  double loss() const {
    return requests > 0 ? static_cast<double>(lost) / static_cast<double>(requests) : 0;
  }
};

// Arrivals come in the order of time and every queue is first come, first served, so one number a
// queue (when it will be empty) stands for all its departures, and no event list is needed.
//
// A reply takes no time on its way, and a write to an object with copies makes them invalid until
// the server has done it: reads meanwhile pay at the node and go on to the server, where those of
// one router share a read (cache/collapse.h).
class QueueingModel {
 public:
  // The layout must outlive the model, or the next change_layout().
  QueueingModel(const Layout& layout, const QueueingOptions& options);

  void run(Nanos until);
  // Since the last call. Nodes and servers with fewer than 100 requests have no say in worst_loss.
  Counts take_counts();

  // Other placement or copies, the same nodes and servers; loads and queues stay.
  void change_layout(const Layout& layout);
  // A dead spine of layer 1 answers nothing.
  void set_dead(size_t spine, bool dead) { dead_[layout_->scenario.racks + spine] = dead; }

  // With options.cross_spines: whether requests still take routes over dead spines.
  void set_cross_dead(bool cross) { options_.cross_spines = cross; }

  // The requests for each object are for the one `by` places on, round: another set is hot.
  void shift(size_t by) { shift_ += by; }

  // Requests waiting at all nodes, and at the fullest one, in mean service times.
  double backlog() const;
  double largest_backlog() const;

 private:
  struct Station {
    double free_at = 0;  // ns
    double service = 0;  // ns, mean of one request
    uint64_t offered = 0;
    uint64_t lost = 0;
  };
  struct Router {
    balance::LoadTable loads;
    std::vector<Nanos> next_report;  // by node
  };

  void step(Nanos now);
  bool read(uint32_t index, Nanos now);
  bool read_admitted(uint32_t index, Nanos now);
  bool ask(Router& router, size_t node, Nanos now);
  uint32_t next_router();
  bool write(uint32_t index, Nanos now);
  bool holds(uint32_t index, size_t holder) const {
    return !contents_ || contents_->holds(index, holder);
  }
  bool read_at_server(uint32_t router, uint32_t index, Nanos now);
  size_t choose(Router& router, std::span<const uint16_t> holders, Nanos now);
  bool offer(Station& station, Nanos now, double requests);
  void push(Station& station, Nanos now, double requests);
  double exponential() { return -std::log(1 - random_.unit()); }
  bool crosses_dead_spine();

  const Layout* layout_;
  QueueingOptions options_;
  Random random_;
  AliasTable table_;
  double gap_ = 0;  // ns between requests
  double next_ = 0;
  std::vector<Station> nodes_;
  std::vector<Station> servers_;
  std::vector<balance::LoadWindow> windows_;
  std::vector<Router> routers_;
  std::vector<Nanos> valid_at_;  // by cached object: no copy is good before
  struct Flight {
    double begins = 0;  // ns: what comes before joins it
    double ends = 0;
  };
  boost::unordered_flat_map<uint64_t, Flight> flights_;  // the latest by router and object
  std::vector<bool> dead_;                               // by node
  std::optional<Contents> contents_;
  Nanos next_tick_ = 0;
  size_t shift_ = 0;
  size_t turn_ = 0;
  Counts counts_;
};

}  // namespace ballast::sim
