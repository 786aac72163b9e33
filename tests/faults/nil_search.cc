// SPDX-License-Identifier: Apache-2.0
#include "nil_search.h"

#include <algorithm>
#include <compare>
#include <tuple>

namespace ballast::faults {
namespace {

constexpr size_t kMaxConfigurations = 1 << 14;
constexpr size_t kMaxWaiting = 12;
constexpr int kNilState = -1;

// The order of events at one instant: intervals that touch are concurrent.
enum class Phase { kRelease, kStart, kDeadline, kHold };

enum class Item { kForward, kBackward, kExpiry, kNilRead, kDelete, kLateDelete };

struct Event {
  Nanos at_ns;
  Phase phase;
  Item item;
  int id;  // a state for clusters and expiries, an operation for the others
};

// Something invoked whose effect has not been placed.
struct Pending {
  Nanos deadline_ns;
  int id;
  auto operator<=>(const Pending&) const = default;
};

using PendingList = std::vector<Pending>;  // by deadline

struct Configuration {
  int state = kNilState;  // a forward cluster, or forward.size() + a backward one
  int late_deletes = 0;
  PendingList nil_reads;  // empty while the state is nil
  PendingList deletes;
  PendingList backward;
  auto operator<=>(const Configuration&) const = default;

  void become_nil() {
    state = kNilState;
    nil_reads.clear();
  }
};

void insert(PendingList& list, Pending pending) {
  list.insert(std::upper_bound(list.begin(), list.end(), pending), pending);
}

bool erase(PendingList& list, int id) {
  return std::erase_if(list, [id](const Pending& pending) { return pending.id == id; }) > 0;
}

bool has_deadline_before(const PendingList& list, Nanos at_ns) {
  return !list.empty() && list.front().deadline_ns < at_ns;
}

// Deletes of equal effect: the one that must happen first is spent first, those of unknown outcome,
// which may wait for ever, last.
bool spend_delete(Configuration& configuration) {
  if (!configuration.deletes.empty()) {
    configuration.deletes.erase(configuration.deletes.begin());
    return true;
  }
  if (configuration.late_deletes == 0) return false;
  --configuration.late_deletes;
  return true;
}

class Search {
 public:
  Search(const std::vector<Operation>& operations, const Zones& zones)
      : operations_(operations), zones_(zones) {
    for (size_t i = 0; i < zones.backward.size(); ++i) {
      may_empty_.push_back(can_empty_by_expiry(zones.backward[i]));
    }
    collect_events();
  }

  std::optional<NilFailure> run() {
    std::vector<Configuration> next;
    for (const Event& event : events_) {
      next.clear();
      for (Configuration& configuration : configurations_) step(event, configuration, next);
      if (next.size() > 1) {
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
      }
      if (event.phase == Phase::kHold) held_ = event.id;
      if (event.phase == Phase::kRelease) held_ = kNilState;
      if (next.empty() || next.size() > kMaxConfigurations) {
        return NilFailure{operation_of(event), event.at_ns, truncated_ || !next.empty()};
      }
      configurations_.swap(next);
    }
    return std::nullopt;
  }

 private:
  using Output = std::vector<Configuration>;

  const Cluster& cluster(int state) const {
    const size_t index = static_cast<size_t>(state);
    return index < zones_.forward.size() ? zones_.forward[index]
                                         : zones_.backward[index - zones_.forward.size()];
  }

  int backward_state(size_t index) const { return static_cast<int>(zones_.forward.size() + index); }

  bool may_empty(int state) const {
    return may_empty_[static_cast<size_t>(state) - zones_.forward.size()];
  }

  // A backward cluster whose expiry comes before any forward one takes the register.
  bool can_empty_by_expiry(const Cluster& cluster) const {
    if (cluster.expires_from_ns == kNever) return false;
    const auto next = std::partition_point(
        zones_.forward.begin(), zones_.forward.end(),
        [&](const Cluster& f) { return f.last_invoke_ns <= cluster.first_response_ns; });
    return next == zones_.forward.end() || next->first_response_ns >= cluster.expires_from_ns;
  }

  size_t operation_of(const Event& event) const {
    const bool is_state = event.item == Item::kForward || event.item == Item::kBackward ||
                          event.item == Item::kExpiry;
    return is_state ? cluster(event.id).write : static_cast<size_t>(event.id);
  }

  void add(Nanos at_ns, Phase phase, Item item, int id) {
    if (at_ns != kNever) events_.push_back({at_ns, phase, item, id});
  }

  void add_interval(size_t index, Item item) {
    add(operations_[index].invoke_ns, Phase::kStart, item, static_cast<int>(index));
    add(operations_[index].response_ns, Phase::kDeadline, item, static_cast<int>(index));
  }

  void collect_events() {
    for (size_t i = 0; i < zones_.forward.size(); ++i) {
      const Cluster& forward = zones_.forward[i];
      add(forward.first_response_ns, Phase::kHold, Item::kForward, static_cast<int>(i));
      add(forward.last_invoke_ns, Phase::kRelease, Item::kForward, static_cast<int>(i));
      add(forward.expires_from_ns, Phase::kStart, Item::kExpiry, static_cast<int>(i));
    }
    for (size_t i = 0; i < zones_.backward.size(); ++i) {
      const Cluster& backward = zones_.backward[i];
      add(backward.last_invoke_ns, Phase::kStart, Item::kBackward, backward_state(i));
      add(backward.first_response_ns, Phase::kDeadline, Item::kBackward, backward_state(i));
      add(backward.expires_from_ns, Phase::kStart, Item::kExpiry, backward_state(i));
    }
    for (const size_t index : zones_.nil_reads) add_interval(index, Item::kNilRead);
    for (const size_t index : zones_.deletes) add_interval(index, Item::kDelete);
    for (const LateDelete& late : zones_.late_deletes) {
      add(late.from_ns, Phase::kStart, Item::kLateDelete, static_cast<int>(late.operation));
    }
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.at_ns, a.phase, a.item, a.id) < std::tie(b.at_ns, b.phase, b.item, b.id);
    });
  }

  void step(const Event& event, Configuration& configuration, Output& output) {
    switch (event.phase) {
      case Phase::kRelease:
        if (cluster(event.id).expires_from_ns <= event.at_ns) configuration.become_nil();
        output.push_back(std::move(configuration));
        return;
      case Phase::kStart:
        start(event, configuration);
        output.push_back(std::move(configuration));
        return;
      case Phase::kDeadline:
        deadline(event, configuration, output);
        return;
      case Phase::kHold:
        hold(event, configuration, output);
        return;
    }
  }

  void start(const Event& event, Configuration& configuration) {
    switch (event.item) {
      case Item::kNilRead:
        if (configuration.state != kNilState) insert(configuration.nil_reads, pending(event.id));
        return;
      case Item::kDelete:
        insert(configuration.deletes, pending(event.id));
        return;
      case Item::kLateDelete:
        ++configuration.late_deletes;
        return;
      case Item::kBackward:
        insert(configuration.backward, {cluster(event.id).first_response_ns, event.id});
        if (cluster(event.id).expires_from_ns <= event.at_ns) make_delete(event.id, configuration);
        return;
      case Item::kExpiry:
        if (configuration.state == event.id && held_ == kNilState) configuration.become_nil();
        make_delete(event.id, configuration);
        return;
      case Item::kForward:
        return;
    }
  }

  Pending pending(int id) const { return {operations_[static_cast<size_t>(id)].response_ns, id}; }

  // A value that may come and expire at one instant is as good as a delete from then on.
  void make_delete(int state, Configuration& configuration) const {
    if (!erase(configuration.backward, state)) return;
    insert(configuration.deletes,
           {cluster(state).first_response_ns, static_cast<int>(cluster(state).write)});
  }

  void deadline(const Event& event, Configuration& configuration, Output& output) const {
    const bool held = held_ != kNilState;
    switch (event.item) {
      case Item::kNilRead:
        if (!contains(configuration.nil_reads, event.id)) break;
        if (held || !spend_delete(configuration)) return;
        configuration.become_nil();
        overwrite(configuration, 0, output);
        return;
      case Item::kBackward:
        if (erase(configuration.backward, event.id)) {
          if (held) return;
          configuration.state = event.id;
          overwrite(configuration, 0, output);
          return;
        }
        [[fallthrough]];
      case Item::kDelete:
        if (!erase(configuration.deletes, static_cast<int>(operation_of(event)))) break;
        if (held) return;
        configuration.become_nil();
        overwrite(configuration, 0, output);
        return;
      default:
        break;
    }
    output.push_back(std::move(configuration));
  }

  static bool contains(const PendingList& list, int id) {
    return std::any_of(list.begin(), list.end(), [id](const Pending& p) { return p.id == id; });
  }

  // The forward cluster takes the register: whatever cannot wait for its end happens before it.
  void hold(const Event& event, Configuration& configuration, Output& output) const {
    const Nanos end_ns = cluster(event.id).last_invoke_ns;
    bool emptied = false;
    while (has_deadline_before(configuration.deletes, end_ns)) {
      configuration.deletes.erase(configuration.deletes.begin());
      emptied = true;
    }
    if (!emptied && has_deadline_before(configuration.nil_reads, end_ns)) {
      if (!spend_delete(configuration)) return;
      emptied = true;
    }
    if (emptied) configuration.become_nil();
    configuration.state = event.id;
    overwrite(configuration, end_ns, output);
  }

  // The register has just been given a new content. Backward clusters then fit in unseen before it.
  // Only one whose later expiry might empty the register may also wait; if it can wait past
  // `keep_after_ns`, both are tried.
  void overwrite(Configuration& configuration, Nanos keep_after_ns, Output& output) const {
    PendingList waiting;
    for (const Pending& p : configuration.backward) {
      if (may_empty(p.id) && p.deadline_ns >= keep_after_ns) waiting.push_back(p);
    }
    if (waiting.size() > kMaxWaiting) {
      waiting.resize(kMaxWaiting);
      truncated_ = true;
    }
    const size_t subsets = size_t{1} << waiting.size();
    for (size_t subset = 0; subset < subsets; ++subset) {
      Configuration variant = configuration;
      variant.backward.clear();
      for (size_t i = 0; i < waiting.size(); ++i) {
        if ((subset >> i & 1) != 0) variant.backward.push_back(waiting[i]);
      }
      output.push_back(std::move(variant));
    }
  }

  const std::vector<Operation>& operations_;
  const Zones& zones_;
  std::vector<bool> may_empty_;     // by backward cluster
  mutable bool truncated_ = false;  // not every choice was followed
  std::vector<Event> events_;
  std::vector<Configuration> configurations_ = {Configuration{}};
  int held_ = kNilState;  // the forward cluster that holds the register now
};

}  // namespace

std::optional<NilFailure> search_nil(const std::vector<Operation>& operations, const Zones& zones) {
  return Search(operations, zones).run();
}

}  // namespace ballast::faults
