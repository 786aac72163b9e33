// SPDX-License-Identifier: Apache-2.0
// Where clients connect: reads each command, finds its shard, and for a read worth caching the less
// loaded of its copies. The data path starts in execute().
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "balance/choice.h"
#include "balance/placement.h"
#include "base/random.h"
#include "cache/client.h"
#include "cache/collapse.h"
#include "cache/layer.h"
#include "cache/session.h"
#include "cache/shard.h"
#include "model/tier.h"
#include "proto/command_table.h"
#include "telemetry/metrics.h"

namespace ballast::cache {

// One command being executed. `wire` is its RESP form.
struct Call {
  Client& client;
  std::span<const std::string_view> args;
  std::string_view wire;
  Nanos now;
  const proto::CommandInfo* info;
};

class Router {
 public:
  Router(io::Loop& loop, const model::TierConfig& config, RequestPool& pool, Layer& layer,
         std::vector<std::unique_ptr<Shard>>& shards);
  ~Router();

  // From the reply of COMMAND; until then no client is accepted.
  void set_commands(proto::CommandTable table);
  bool has_commands() const { return !routes_.empty(); }
  void set_server_info(std::string redis_version) { redis_version_ = std::move(redis_version); }

  void accept(io::Fd fd, const std::shared_ptr<io::TlsContext>& tls);
  void drain();  // closes each client once its replies are out

  // One command of a client. False: it must wait, the client offers it again when something pending
  // is over.
  bool execute(Client& client, std::span<const std::string_view> args, std::string_view wire,
               Nanos now);

  void on_client_gone(Client& client, const std::string& cause);
  // Takes note of what is kept for the client, to within a small step.
  void count_held(Client& client) {
    const size_t held = client.held();
    if (held <= client.counted + kHeldStep) [[likely]]
      return;
    held_ += held - client.counted;
    client.counted = held;
    if (held_ > recount_at_) loop_.defer(&shedding_);
  }
  void update_plain(Client& client);
  const proto::CommandLimits& command_limits(const Client& client) const;
  bool needs_password() const { return !config_.password.empty(); }
  size_t client_output_limit() const { return config_.client_output_limit; }

  io::Loop& loop() { return loop_; }
  RequestPool& pool() { return pool_; }
  size_t shards() const { return shards_.size(); }
  Shard& shard(size_t index) { return *shards_[index]; }
  uint32_t shard_of(std::string_view key) const;
  size_t clients() const { return clients_.size(); }
  telemetry::RouterMetrics& metrics() { return metrics_; }
  size_t held_bytes() const;  // over all clients

  void push_to(uint64_t client, std::string_view bytes);  // if it is still there

  // A read that was waiting for a node's turn (rate limit).
  void serve_read(Request& request, Nanos now);
  // A read whose node had no copy.
  void read_at_shard(uint32_t shard, Request& request, Nanos now);

 private:
  using Handler = bool (Router::*)(Call&);
  struct Route {
    Handler handler = nullptr;  // null: to the shard of its keys
    bool cacheable = false;
  };
  struct Named {
    std::string_view name;
    Handler handler;
  };
  static std::span<const Named> handlers();

  // router.cc: the data path.
  static constexpr size_t kHeldStep = 64 * 1024;
  // At the end of a turn nobody is at work on a client.
  struct Shedding final : io::Loop::Deferred {
    explicit Shedding(Router& owner) : router(owner) {}
    void on_turn_end() override { router.shed(); }
    Router& router;
  };
  void shed();
  bool dispatch(Call& call);
  bool by_keys(Call& call, bool cacheable);
  bool guard_state(Call& call, bool& done);
  bool get(Client& client, std::string_view key, std::string_view wire, Nanos now);
  bool cached_read(Call& call, std::string_view key, std::string_view command);
  bool cold_read(Client& client, uint32_t shard, uint64_t hash, std::string_view wire, Nanos now);
  bool single_shard(Call& call, uint32_t shard);
  bool write_overtakes(const Client& client, uint64_t hash) const;
  bool keyless(Call& call);
  bool find_keys(const Call& call, int& shard, bool& across);
  bool sort_keys(const Call& call);
  bool unknown_keys(Call& call);
  bool may_write_unnamed_keys(const Call& call) const;
  bool refuse_arity(Call& call);
  static std::string unknown_command(std::span<const std::string_view> args);
  std::string_view canonical(const Call& call);

  // fanout.cc: commands over several shards.
  struct Join;
  struct Part;
  enum class Carrier : uint8_t { kLink, kControl, kFlush };
  void gather(Call& call, std::string_view wire, Carrier carrier,
              std::function<std::string(const std::vector<std::string>&)> combine);
  bool split(Call& call);
  std::function<void(Join&)> rejoined(const Call& call, const std::vector<Part>& parts) const;
  bool fan_out(Call& call, std::string_view wire);
  bool scan(Call& call);
  bool random_key(Call& call);
  bool flush_all(Call& call);
  bool channel_counts(Call& call);
  bool while_busy(Call& call);

  // session_commands.cc: what the router answers itself.
  bool hello(Call& call);
  bool hello_options(Call& call, size_t next, std::string_view& name);
  bool auth(Call& call);
  bool select(Call& call);
  bool copy(Call& call);
  static bool leaves_database(const Call& call);
  bool ping(Call& call);
  bool echo(Call& call);
  bool time(Call& call);
  bool quit(Call& call);
  bool reset(Call& call);
  bool config(Call& call);
  bool cluster(Call& call);
  bool refuse(Call& call);
  bool sign_in(Client& client, std::string_view user, std::string_view password);

  // client_command.cc
  struct ClientSubcommand;
  static std::span<const ClientSubcommand> client_subcommands();
  bool client_command(Call& call);
  bool client_id(Call& call);
  bool client_getname(Call& call);
  bool client_setname(Call& call);
  bool client_setinfo(Call& call);
  bool client_reply_mode(Call& call);
  bool client_switch(Call& call);
  bool client_tracking(Call& call);
  bool client_tracking_state(Call& call);
  bool client_unblock(Call& call);
  bool client_refuse(Call& call);
  bool client_help(Call& call);
  bool own_error(Call& call, std::string_view text);

  // client_list.cc
  bool client_info(Call& call);
  bool client_list(Call& call);
  bool client_kill(Call& call);
  void client_list_line(std::string& out, const Client& client, Nanos now) const;
  std::vector<Client*> clients_by_id() const;

  // info.cc
  bool info(Call& call);
  std::string info_text(std::span<const std::string> sections,
                        const std::vector<std::string>& replies) const;
  void info_own_rows(std::string& text, std::string_view section) const;

  // transaction.cc
  bool multi(Call& call);
  bool exec(Call& call);
  bool discard(Call& call);
  bool watch(Call& call);
  bool unwatch(Call& call);
  static bool watch_stands(const Session& session, const Client& client);
  bool queue(Call& call);
  void end_transaction(Client& client);
  Dedicated& dedicated(Client& client, uint32_t shard);
  std::unique_ptr<Dedicated> take_spare(uint32_t shard, uint8_t proto);

  // peer_commands.cc
  bool peer(Call& call);
  bool peer_read(Call& call);
  bool peer_write(Call& call);
  bool peer_home(Call& call);
  void append_peer_reply(std::string& out, uint16_t member, const Node::Reply* reply, Nanos now);

  // blocking.cc
  bool blocking(Call& call, uint32_t shard);
  bool blocks(const Call& call) const;
  bool subscribe(Call& call);
  bool publish(Call& call);
  bool pubsub(Call& call);
  static std::string unknown_subcommand(const Call& call);

  io::Loop& loop_;
  const model::TierConfig& config_;
  RequestPool& pool_;
  Layer& layer_;
  std::vector<std::unique_ptr<Shard>>& shards_;
  balance::SlotMap slots_;
  Collapse collapse_;
  proto::CommandTable table_;
  std::vector<Route> routes_;  // beside table_.all()
  proto::CommandLimits limits_;
  proto::CommandLimits unauthenticated_limits_;
  boost::unordered_flat_map<uint64_t, std::unique_ptr<Client>> clients_;
  uint64_t next_client_ = 1;
  std::map<std::pair<uint32_t, uint8_t>, std::unique_ptr<Dedicated>> spares_;  // by shard, protocol
  std::string redis_version_ = "7.0.0";
  uint32_t get_index_ = UINT32_MAX;  // of GET in table_.all()
  Random random_;
  std::vector<proto::KeyPosition> positions_;  // of the command at hand
  std::string inline_wire_;
  std::string canonical_;
  Nanos started_;
  Shedding shedding_{*this};
  size_t held_ = 0;  // over all clients, an upper bound but for a step each
  size_t recount_at_ = 0;
  telemetry::RouterMetrics metrics_;
};

}  // namespace ballast::cache
