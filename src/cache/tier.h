// SPDX-License-Identifier: Apache-2.0
// A tier's process put together: loop, shards, nodes, router, listener; runs until it is told to
// leave.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/layer.h"
#include "cache/router.h"
#include "cache/shard.h"
#include "io/listener.h"
#include "model/tier.h"
#include "telemetry/admin.h"
#include "telemetry/metrics.h"
#include "telemetry/status.h"

namespace ballast::cache {

struct TierHooks {
  std::function<void(uint16_t port)> on_listening;    // clients can connect
  std::function<Result<model::TierConfig>()> reload;  // SIGHUP
};

class Tier final : public io::Loop::Handler {
 public:
  static Result<std::unique_ptr<Tier>> create(model::TierConfig config, model::Role role,
                                              TierHooks hooks = {});
  ~Tier() override;

  // Until SIGTERM or SIGINT: clients get the replies they wait for, then it returns. A second
  // signal ends it at once.
  Result<> run();

  io::Loop& loop() { return *loop_; }
  // On the loop's thread only.
  bool ready() const;
  telemetry::Status status() const;
  telemetry::Snapshot snapshot() const;
  telemetry::Readiness readiness() const;

  void on_ready(uint32_t epoll_events) override;  // signals

 private:
  Tier(model::TierConfig config, model::Role role, TierHooks hooks);
  Result<> build();
  const model::Endpoint& listen_endpoint() const;
  Result<> watch_signals();
  // A router is ready when all shards are, a leaf when its own are: leaves start before each other.
  bool answers_for(const Shard& shard) const;
  void tick();
  void load_commands();
  void start_listening();
  void leave();
  void reload();

  model::TierConfig config_;
  model::Role role_;
  TierHooks hooks_;
  std::unique_ptr<io::Loop> loop_;
  RequestPool pool_;
  telemetry::Durations durations_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<io::Listener> listener_;
  std::shared_ptr<io::TlsContext> tls_;
  io::Fd signals_;
  io::Address listen_address_;
  Nanos started_ = 0;
  Nanos asked_commands_ = 0;
  Nanos tell_waiting_ = 0;  // when to say next that no shard has answered
  Nanos leave_by_ = 0;
  Result<> outcome_;
};

}  // namespace ballast::cache
