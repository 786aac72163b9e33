// SPDX-License-Identifier: Apache-2.0
// One shard as its home sees it: the pipelined links (one for each RESP version), the tracking
// connection, the fence that makes this process the only writer, and the coherence state machine
// between them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "balance/choice.h"
#include "balance/token_bucket.h"
#include "base/ring.h"
#include "cache/home.h"
#include "cache/link.h"
#include "telemetry/metrics.h"

namespace ballast::cache {

// How messages reach a node, in this process or another.
class Peer;

class NodeSender {
 public:
  virtual ~NodeSender() = default;
  virtual void send_to_node(uint32_t shard, Incarnation node, ToNode message) = 0;
};

struct ShardOptions {
  uint32_t index = 0;
  std::string text;  // "host:port", as errors name it
  std::string rack;
  io::Address address;
  io::Address session_address;  // for connections of a client's own: the shard, or its leaf
  std::string name_prefix;      // "ballast:<tier>:<rack>:"
  std::string user;
  std::string password;
  bool caching = true;   // keep a tracking connection and a home
  bool home = true;      // this process is the rack's home; else only reads go over these links
  Peer* leaf = nullptr;  // the process that is, if this one is not
  std::string session_user;
  std::string session_password;
  Nanos timeout = 2 * kSecond;
  Nanos connect_timeout = kSecond;
  double rate = 0;  // requests a second, 0: no limit
  HomeConfig coherence;
};

struct ShardStats {
  uint64_t requests = 0, errors = 0, timeouts = 0, disconnects = 0;
};

class Shard final : public LinkOwner, public HomeOutput {
 public:
  Shard(io::Loop& loop, RequestPool& pool, NodeSender& nodes, telemetry::Durations& durations,
        ShardOptions options);
  ~Shard() override;

  void open();
  void shut_down();

  // To the shard by the link of request.proto. The request's deadline is set here.
  void read(std::string_view wire, Request& request, Nanos now);
  // The same for a command that writes request.keys: the home sees to the copies first.
  void write(std::string_view wire, Request& request, Nanos now);
  // Past the queue of commands, for what ends a long script: on the tracking connection if there is
  // one; the answer is RESP3 then.
  void control(std::string_view wire, Request& request, Nanos now);
  // FLUSHALL and its kind: request.flush.
  void flush(std::string_view wire, Request& request, Nanos now);
  // A write on another connection to this shard (transaction, blocking command): `ready` is called,
  // perhaps at once, when it may be sent; `guard` must then be ended by end_guard.
  void guard(Request& guard, Nanos now, std::function<void()> ready);
  void end_guard(Request& guard, Nanos now);
  // The same when the connection `client_id` that carried it broke: the shard may not know yet, so
  // it is told to end that connection first.
  void end_guard_once_dead(Request& guard, int64_t client_id);
  // A connection of our own that carries writes, so that the fence spares it.
  void own_connection(int64_t client_id) { own_ids_.insert(client_id); }
  void forget_connection(int64_t client_id) { own_ids_.erase(client_id); }

  void tick(Nanos now);

  bool down(uint8_t proto) const { return links_[proto == 3]->down(); }
  bool up() const;
  bool ready() const;         // up, fenced and past every lease
  std::string why() const;    // why it is not up
  std::string error() const;  // the RESP error for requests to it while it is down
  // Its own -BUSY error, without the dash, while a script keeps it from anything else; else empty.
  const std::string& busy() const { return busy_; }
  Home& home() { return home_; }
  const ShardOptions& options() const { return options_; }
  const ShardStats& stats() const { return stats_; }
  uint64_t late_replies() const { return links_[0]->late() + links_[1]->late(); }
  HomeStats home_stats() const { return home_.stats(); }
  uint32_t load(Nanos now) const { return window_.load(now); }  // requests in the last second
  size_t in_flight() const {
    return links_[0]->in_flight() + links_[1]->in_flight() + gate_.size() + fill_gate_.size();
  }

  void on_link_up(Link& link) override;
  void on_link_down(Link& link, const std::string& cause) override;
  void on_answer(Request& request, std::string_view piece, bool last, Nanos now) override;
  void on_timeout(Request& request) override;
  void on_failure(Request& request, const std::string& cause) override;
  void on_push(Link& link, std::string_view push) override;

  void send(Incarnation node, ToNode message) override;
  void read(uint64_t read_id, std::string_view key,
            std::span<const CachedCommand> commands) override;
  void ping(uint64_t ping_id) override;
  void write_ready(uint64_t token) override;

 private:
  struct Waiting {
    Request* request;
    std::function<void()> ready;  // for guards
    Nanos deadline;
  };
  struct Fill;
  static constexpr uint8_t kTracking = 4;  // as a request's proto: by the tracking connection

  Link& link(uint8_t proto) { return proto == kTracking ? *tracking_ : *links_[proto == 3]; }
  void forward(std::string_view wire, Request& request, Nanos now);
  bool enter(Nanos now);
  void hold_at(Ring<Request*>& gate, std::string_view wire, Request& request, Nanos now);
  void send_now(std::string_view wire, Request& request, Nanos now);
  void begin_and_send(std::string_view wire, Request& request, Nanos now);
  void leave_gate(Nanos now);
  bool begin(Request& request, Nanos now);
  void end_write(Request& request, Nanos now);
  void wait(Request& request, std::string_view wire, Nanos now, std::function<void()> ready);
  void fail_waiting(Nanos now);
  void ask_tracking(std::string_view wire, std::function<void(Request&)> done, bool gated);
  void look_for_script();
  void start_fence();
  void on_client_list(std::string_view list);
  void fence_stands();

  io::Loop& loop_;
  RequestPool& pool_;
  NodeSender& nodes_;
  telemetry::Durations& durations_;
  ShardOptions options_;
  Home home_;
  std::array<std::unique_ptr<Link>, 2> links_;
  std::unique_ptr<Link> tracking_;
  balance::TokenBucket bucket_;
  balance::LoadWindow window_;
  Ring<Request*> gate_;       // over the rate limit, with their wire
  Ring<Request*> fill_gate_;  // goes first: a copy takes load off the shard
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_token_ = 1;
  std::vector<Request*> orphans_;  // writes whose connection broke: over only once the fence stands
  std::set<int64_t> own_ids_;
  uint64_t fence_round_ = 0;  // an answer to an earlier round's question is void
  size_t kills_left_ = 0;
  bool fenced_ = false;
  std::string stepped_down_;  // the other home's connection name, if a later one is there
  Nanos next_fence_ = 0;
  std::string busy_;
  uint64_t answers_ = 0;       // on the links
  uint64_t answers_seen_ = 0;  // by the last tick
  bool asked_busy_ = false;
  ShardStats stats_;
};

}  // namespace ballast::cache
