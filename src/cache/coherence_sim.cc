// SPDX-License-Identifier: Apache-2.0
// The world's parts: event queue, shard, home and node processes, readers and writers, and the
// faults among them. Long because the parts of one world know each other.
#include "cache/coherence_sim.h"

#include <algorithm>

#include "balance/hash.h"

namespace ballast::cache::sim {
namespace {

constexpr Nanos kMs = kMillisecond;

std::string key_name(size_t key) { return key == 0 ? "" : "key" + std::to_string(key); }

std::string encode(uint64_t value) {
  if (value == 0) return "_\r\n";
  const std::string digits = std::to_string(value);
  return "$" + std::to_string(digits.size()) + "\r\n" + digits + "\r\n";
}

uint64_t decode(std::string_view reply) {
  if (reply == "_\r\n") return 0;
  reply.remove_prefix(reply.find('\n') + 1);
  return std::stoull(std::string(reply));
}

// A process's clock and its pauses. Events that reach a paused process wait, in order.
struct Process {
  Nanos offset = 0;
  double rate = 1;
  Nanos paused_until = 0;
  bool dead = false;
  Nanos local(Nanos t) const { return offset + static_cast<Nanos>(static_cast<double>(t) * rate); }
};

// One connection to the shard: commands run in order while it is alive.
struct Connection {
  bool alive = true;
  Nanos last_arrival = 0;
  Nanos last_answer = 0;
};

struct World;

struct HomeProcess : HomeOutput {
  HomeProcess(World& world_in, uint64_t epoch_in);
  void send(Incarnation node, ToNode message) override;
  void read(uint64_t read_id, std::string_view key,
            std::span<const CachedCommand> commands) override;
  void ping(uint64_t ping_id) override;
  void write_ready(uint64_t token) override;

  struct Write {
    std::vector<size_t> keys;
    bool all = false;
    Nanos arrived = 0;
    bool sent = false;
  };
  void arrive(std::vector<size_t> keys, bool all);
  void to_shard(uint64_t token);
  void end(const Write& write);
  void fence(bool unknown);
  void lost();
  Nanos now() const;

  World& world;
  uint64_t epoch;
  std::shared_ptr<Process> process = std::make_shared<Process>();
  Home home;
  std::shared_ptr<Connection> tracking, writing;
  std::vector<std::shared_ptr<Connection>> made;  // by the last fence, lost ones too
  std::map<uint64_t, Write> writes;
  uint64_t next_token = 0;
  bool superseded = false;
  bool fencing = false;
  Nanos troubled = 0;  // global time of the last pause or loss
};

struct NodeProcess : NodeOutput {
  NodeProcess(World& world_in, Incarnation incarnation, std::shared_ptr<Process> process_in);
  void send(uint32_t shard, ToHome message) override;
  Nanos now() const;

  World& world;
  std::shared_ptr<Process> process;
  Node node;
  size_t home = 0;                // index of the home process it speaks to
  HomeProcess* beside = nullptr;  // in the same process
  Nanos cut_until = 0;
};

struct World {
  World(uint64_t seed, const Plan& plan_in) : random(seed), plan(plan_in) {}

  Outcome run();
  void at(Nanos when, std::function<void()> action) {
    events.push({std::max(when, time), ++sequence, std::move(action)});
  }
  // Runs `action` in the process at `when` or when its pause is over; never if it is dead.
  void in(const std::shared_ptr<Process>& process, Nanos when, std::function<void()> action);
  bool chance(double p) { return random.unit() < p; }
  Nanos between(Nanos low, Nanos high) {
    return low + static_cast<Nanos>(random.below(static_cast<uint64_t>(high - low + 1)));
  }
  Nanos delay() {
    if (!quiet && chance(0.03)) return between(5 * kMs, plan.lease * 3 / 2);
    return between(kMs / 20, 2 * kMs);
  }
  void message(Nanos cut_until, const std::function<void(Nanos)>& deliver);
  void fail(std::string what) {
    if (outcome.violation.empty()) {
      outcome.violation = std::move(what) + " at " + std::to_string(time / 1000) + " us";
    }
  }
  Process make_clock();

  // The shard.
  void command(const std::shared_ptr<Connection>& connection, std::function<void()> execute);
  void answer(const std::shared_ptr<Connection>& connection,
              const std::shared_ptr<Process>& process, std::function<void()> deliver);
  void change(size_t key);
  void push(const std::shared_ptr<Connection>& connection, HomeProcess* owner, size_t key);

  // Actors and faults.
  void start_home();
  void start_node(HomeProcess* beside);
  void reader();
  void read_at_node(size_t node, size_t key);
  void read_at_shard(size_t key, uint64_t floor);
  void read_done(size_t key, uint64_t value, uint64_t floor);
  void writer();
  void bypass();
  void fault();
  void tick_home(HomeProcess* home);
  void tick_node(NodeProcess* node);
  uint64_t floor(size_t key) const {
    return key == kBypassed ? acked[key] : std::max(acked[key], seen[key]);
  }

  struct Event {
    Nanos when;
    uint64_t sequence;
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };
  Random random;
  Plan plan;
  Nanos time = 0;
  uint64_t sequence = 0;
  bool quiet = false;  // no more faults
  std::priority_queue<Event> events;
  std::vector<std::unique_ptr<HomeProcess>> homes;
  std::vector<std::unique_ptr<NodeProcess>> nodes;

  std::array<uint64_t, kKeys> stored{};  // the number of the key's last write, by the shard's order
  std::array<std::set<HomeProcess*>, kKeys> tracked;
  std::array<uint64_t, kKeys> acked{};  // the highest write a writer heard of
  std::array<uint64_t, kKeys> seen{};   // the highest value a finished read returned
  Outcome outcome;
};

Process World::make_clock() {
  Process process;
  process.offset = between(0, 1000 * kSecond);
  process.rate = 1 + (random.unit() - 0.5) * 0.03;  // margin is 5 % of a lease
  return process;
}

void World::in(const std::shared_ptr<Process>& process, Nanos when, std::function<void()> action) {
  at(when, [this, process, action = std::move(action)]() mutable {
    if (process->dead) return;
    if (process->paused_until > time) {
      in(process, process->paused_until, std::move(action));
    } else {
      action();
    }
  });
}

// Calls deliver(arrival) no, one or two times.
void World::message(Nanos cut_until, const std::function<void(Nanos)>& deliver) {
  if (!quiet && (time < cut_until || chance(0.02))) return;
  deliver(time + delay());
  if (!quiet && chance(0.03)) deliver(time + delay());
}

void World::command(const std::shared_ptr<Connection>& connection, std::function<void()> execute) {
  connection->last_arrival = std::max(connection->last_arrival + 1, time + delay());
  at(connection->last_arrival, [connection, execute = std::move(execute)] {
    if (connection->alive) execute();
  });
}

// Answers that were sent before a connection is ended still arrive.
void World::answer(const std::shared_ptr<Connection>& connection,
                   const std::shared_ptr<Process>& process, std::function<void()> deliver) {
  connection->last_answer = std::max(connection->last_answer + 1, time + delay());
  in(process, connection->last_answer, std::move(deliver));
}

void World::push(const std::shared_ptr<Connection>& connection, HomeProcess* owner, size_t key) {
  answer(connection, owner->process, [connection, owner, key] {
    if (owner->tracking != connection) return;
    const std::string name = key_name(key);
    owner->home.on_push(name, balance::key_hash(name), owner->now());
  });
}

void World::change(size_t key) {
  ++stored[key];
  for (HomeProcess* owner : tracked[key]) {
    if (owner->tracking && owner->tracking->alive) push(owner->tracking, owner, key);
  }
  tracked[key].clear();
}

HomeProcess::HomeProcess(World& world_in, uint64_t epoch_in)
    : world(world_in),
      epoch(epoch_in),
      home(HomeConfig{.epoch = epoch_in,
                      .lease = world_in.plan.lease,
                      .drift_margin = world_in.plan.lease / 20,
                      .patience = world_in.plan.lease / 10,
                      .repeat = world_in.plan.lease / 20},
           *this) {
  *process = world.make_clock();
}

Nanos HomeProcess::now() const { return process->local(world.time); }

void HomeProcess::send(Incarnation node, ToNode message) {
  NodeProcess* target = world.nodes[node - 1].get();
  if (target->beside == this) {
    target->node.on_message(0, std::move(message), now());
    return;
  }
  world.message(target->cut_until, [&](Nanos when) {
    world.in(target->process, when,
             [target, message] { target->node.on_message(0, message, target->now()); });
  });
}

void HomeProcess::read(uint64_t read_id, std::string_view key, std::span<const CachedCommand>) {
  if (!tracking) return;
  const size_t index = key.empty() ? 0 : static_cast<size_t>(key.back() - '0');
  auto connection = tracking;
  // Two commands, between which others may run: the time to live, then the value.
  world.command(connection, [this, connection, index, read_id] {
    world.tracked[index].insert(this);
    world.answer(connection, process, [this, connection, read_id] {
      if (tracking == connection) home.on_read_begun(read_id);
    });
  });
  world.command(connection, [this, connection, index, read_id] {
    world.tracked[index].insert(this);
    const std::string reply = encode(world.stored[index]);
    world.answer(connection, process, [this, connection, read_id, reply] {
      if (tracking != connection) return;
      const std::string_view replies[] = {reply};
      home.on_read(read_id, reply == "_\r\n" ? -2 : -1, replies, now());
    });
  });
}

void HomeProcess::ping(uint64_t ping_id) {
  if (!tracking) return;
  auto connection = tracking;
  world.command(connection, [this, connection, ping_id] {
    world.answer(connection, process, [this, connection, ping_id] {
      if (tracking == connection) home.on_pong(ping_id, now());
    });
  });
}

void HomeProcess::write_ready(uint64_t token) { to_shard(token); }

void HomeProcess::arrive(std::vector<size_t> keys, bool all) {
  const uint64_t token = ++next_token;
  Write& write = writes[token];
  write = {std::move(keys), all, world.time, false};
  bool go = false;
  if (all) {
    go = home.flush_begin(token, now());
  } else {
    std::vector<std::string> names;
    for (size_t key : write.keys) names.push_back(key_name(key));
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::vector<uint64_t> hashes;
    for (const auto& name : names) hashes.push_back(balance::key_hash(name));
    go = home.write_begin(views, hashes, token, now());
  }
  if (go) to_shard(token);
}

void HomeProcess::to_shard(uint64_t token) {
  Write& write = writes.at(token);
  write.sent = true;
  if (!writing) return;  // lost meanwhile: the next fence ends it
  auto connection = writing;
  const std::vector<size_t> keys = write.keys;
  const Nanos limit = world.plan.lease * 6 / 5 + 30 * kMs;
  if (!world.quiet && troubled + 2 * world.plan.lease < write.arrived &&
      world.time - write.arrived > limit) {
    world.fail("I4: a write waited for " + std::to_string((world.time - write.arrived) / kMs) +
               " ms");
  }
  world.command(connection, [this, connection, keys, token] {
    std::vector<std::pair<size_t, uint64_t>> done;
    for (size_t key : keys) {
      world.change(key);
      done.emplace_back(key, world.stored[key]);
    }
    world.answer(connection, process, [this, connection, done, token] {
      if (writing != connection) return;  // closed here: its writer got an error
      const Write ended = writes.at(token);
      writes.erase(token);
      end(ended);
      world.at(world.time + world.delay(), [this, done] {
        ++world.outcome.writes;
        for (auto [key, value] : done) world.acked[key] = std::max(world.acked[key], value);
      });
    });
  });
}

void HomeProcess::end(const Write& write) {
  if (write.all) {
    home.flush_end(now());
    return;
  }
  for (size_t key : write.keys) {
    const std::string name = key_name(key);
    const std::string_view views[] = {name};
    const uint64_t hashes[] = {balance::key_hash(name)};
    home.write_end(views, hashes, now());
  }
}

// Connects, ends the connections of lower epochs and its own former ones, then is fenced.
void HomeProcess::fence(bool unknown) {
  if (fencing || superseded) return;
  fencing = true;
  world.at(world.time + world.delay(), [this, unknown] {
    for (auto& other : world.homes) {
      if (other->epoch > epoch) superseded = true;
    }
    if (superseded) return;
    for (auto& other : world.homes) {
      for (auto& former : other->made) former->alive = false;
      if (other.get() == this) continue;
      HomeProcess* former = other.get();
      world.in(former->process, world.time + world.between(0, 2 * world.plan.lease),
               [former] { former->lost(); });
    }
    // They exist, named, from now on: a later home finds and ends them, whatever this one knows.
    auto t = std::make_shared<Connection>();
    auto w = std::make_shared<Connection>();
    made = {t, w};
    world.in(process, world.time + world.delay(), [this, unknown, t, w] {
      fencing = false;
      tracking = t;
      writing = w;
      for (auto it = writes.begin(); it != writes.end();) {
        auto current = it++;
        if (!current->second.sent) continue;
        const Write ended = current->second;
        writes.erase(current);
        end(ended);
      }
      home.on_fenced(unknown, now());
    });
  });
}

void HomeProcess::lost() {
  if (!tracking) return;
  troubled = world.time;
  tracking = writing = nullptr;
  home.on_lost(now());
  fence(false);
}

NodeProcess::NodeProcess(World& world_in, Incarnation incarnation,
                         std::shared_ptr<Process> process_in)
    : world(world_in),
      process(std::move(process_in)),
      node(NodeConfig{.incarnation = incarnation,
                      .shards = 1,
                      .objects = 2,
                      .lease = world_in.plan.lease,
                      .heartbeat = world_in.plan.lease * 3 / 10,
                      .window = world_in.plan.lease,
                      .seed = incarnation},
           *this) {}

Nanos NodeProcess::now() const { return process->local(world.time); }

void NodeProcess::send(uint32_t, ToHome message) {
  HomeProcess* target = world.homes[home].get();
  const Incarnation self = node.incarnation();
  if (target == beside) {
    target->home.on_message(self, std::move(message), now());
    return;
  }
  world.message(cut_until, [&](Nanos when) {
    world.in(target->process, when,
             [target, self, message] { target->home.on_message(self, message, target->now()); });
  });
}

void World::tick_home(HomeProcess* home) {
  in(home->process, time + between(2 * kMs, 4 * kMs), [this, home] {
    home->home.tick(home->now());
    tick_home(home);
  });
}

void World::tick_node(NodeProcess* node) {
  in(node->process, time + between(3 * kMs, 8 * kMs), [this, node] {
    node->node.tick(node->now());
    tick_node(node);
  });
}

void World::start_home() {
  homes.push_back(std::make_unique<HomeProcess>(*this, homes.size() + 1));
  HomeProcess* home = homes.back().get();
  home->troubled = time;
  home->fence(homes.size() > 1);
  tick_home(home);
  start_node(home);
  // The nodes learn of it one by one.
  const size_t index = homes.size() - 1;
  for (auto& node : nodes) {
    NodeProcess* moved = node.get();
    if (moved->beside != nullptr) continue;
    at(time + between(0, 2 * plan.lease),
       [moved, index] { moved->home = std::max(moved->home, index); });
  }
}

void World::start_node(HomeProcess* beside) {
  auto process = beside != nullptr ? beside->process : std::make_shared<Process>(make_clock());
  const Incarnation incarnation = nodes.size() + 1;
  nodes.push_back(std::make_unique<NodeProcess>(*this, incarnation, process));
  NodeProcess* node = nodes.back().get();
  node->beside = beside;
  node->home = homes.size() - 1;
  in(process, time + delay(), [this, node] {
    node->node.on_home(0, true, node->now());
    tick_node(node);
  });
}

void World::read_done(size_t key, uint64_t value, uint64_t floor) {
  ++outcome.reads;
  if (value < floor) {
    fail("I1: key " + std::to_string(key) + " read as " + std::to_string(value) + " after " +
         std::to_string(floor));
  }
  seen[key] = std::max(seen[key], value);
}

void World::read_at_shard(size_t key, uint64_t floor) {
  at(time + delay(), [this, key, floor] {
    const uint64_t value = stored[key];
    at(time + delay(), [this, key, floor, value] { read_done(key, value, floor); });
  });
}

void World::read_at_node(size_t index, size_t key) {
  NodeProcess* node = nodes[index].get();
  const uint64_t floor = this->floor(key);
  in(node->process, time + delay(), [this, node, key, floor] {
    const std::string name = key_name(key);
    const auto* reply = node->node.lookup({0, name, balance::key_hash(name), ""}, 1, node->now());
    if (reply == nullptr) return read_at_shard(key, floor);
    ++outcome.hits;
    const uint64_t value = decode(reply->resp3);
    at(time + delay(), [this, key, floor, value] { read_done(key, value, floor); });
  });
}

void World::reader() {
  const size_t key = random.below(kKeys);
  if (chance(0.15)) {
    read_at_shard(key, floor(key));
  } else {
    read_at_node(random.below(nodes.size()), key);
  }
  at(time + between(kMs / 2, 2 * kMs), [this] { reader(); });
}

void World::writer() {
  // Some clients still hold a connection to a former home.
  HomeProcess* home = chance(0.2) ? homes[random.below(homes.size())].get() : homes.back().get();
  std::vector<size_t> keys{random.below(kKeys)};
  const bool all = chance(0.02);
  if (all) {
    keys = {0, 1, 2};
  } else if (chance(0.2)) {
    keys.push_back(random.below(kKeys));
  }
  if (keys.size() == 2 && keys[0] == keys[1]) keys.pop_back();
  in(home->process, time + delay(), [home, keys, all] { home->arrive(keys, all); });
  at(time + between(2 * kMs, 25 * kMs), [this] { writer(); });
}

void World::bypass() {
  at(time + between(10 * kMs, 60 * kMs), [this] {
    change(kBypassed);
    bypass();
  });
}

void World::fault() {
  if (quiet) return;
  at(time + between(10 * kMs, 80 * kMs), [this] { fault(); });
  HomeProcess* home = homes.back().get();
  NodeProcess* node = nodes[random.below(nodes.size())].get();
  const Nanos length = between(plan.lease / 10, plan.lease * 5 / 2);
  switch (random.below(8)) {
    case 0:
    case 1:
      node->process->paused_until = time + length;
      if (node->beside != nullptr) node->beside->troubled = time + length;
      break;
    case 2:
    case 3:
      node->cut_until = time + length;
      break;
    case 4:
      home->process->paused_until = time + length;
      home->troubled = time + length;
      break;
    case 5:
      if (!home->tracking) break;
      home->tracking->alive = false;
      if (chance(0.5)) home->writing->alive = false;
      in(home->process, time + between(0, plan.lease / 2), [home] { home->lost(); });
      break;
    case 6:
      if (homes.size() >= 4) break;
      ++outcome.takeovers;
      if (chance(0.3)) home->process->dead = true;
      start_home();
      break;
    default:
      if (nodes.size() >= 8) break;
      if (node->beside == nullptr && chance(0.5)) node->process->dead = true;
      start_node(nullptr);
  }
}

Outcome World::run() {
  start_home();
  start_node(nullptr);
  start_node(nullptr);
  for (int i = 0; i < 2; ++i) {
    at(40 * kMs, [this] { reader(); });
    at(40 * kMs, [this] { writer(); });
  }
  bypass();
  if (plan.faults) at(80 * kMs, [this] { fault(); });
  at(plan.length - 3 * plan.lease, [this] { quiet = true; });
  while (!events.empty() && events.top().when < plan.length && outcome.violation.empty()) {
    Event event = std::move(const_cast<Event&>(events.top()));
    events.pop();
    time = event.when;
    ++outcome.events;
    event.action();
  }
  return outcome;
}

}  // namespace

Outcome run(uint64_t seed, const Plan& plan) { return World(seed, plan).run(); }

}  // namespace ballast::cache::sim
