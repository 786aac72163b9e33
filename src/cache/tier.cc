// SPDX-License-Identifier: Apache-2.0
#include "cache/tier.h"

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>

#include <algorithm>
#include <csignal>

#include "base/log.h"

namespace ballast::cache {
namespace {

constexpr Nanos kDrainTime = 10 * kSecond;

// Epochs of homes: later processes have higher ones. Wall time serves only to order process starts.
uint64_t new_epoch() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

// Each client is a descriptor, and so is each connection to a shard.
void raise_descriptor_limit(size_t clients) {
  const rlim_t wanted = clients + 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted)
    log_warning("{} clients need {} open files, and the limit is {} (ulimit -n)", clients, wanted,
                limit.rlim_cur);
}

io::TlsFiles::ClientCertificate asked_of(model::ClientCertificate certificate) {
  using Asked = io::TlsFiles::ClientCertificate;
  switch (certificate) {
    case model::ClientCertificate::kNone:
      return Asked::kNone;
    case model::ClientCertificate::kOptional:
      return Asked::kOptional;
    case model::ClientCertificate::kRequired:
      return Asked::kRequired;
  }
  return Asked::kRequired;
}

}  // namespace

Result<std::unique_ptr<Tier>> Tier::create(model::TierConfig config, model::Role role,
                                           TierHooks hooks) {
  std::unique_ptr<Tier> tier(new Tier(std::move(config), role, std::move(hooks)));
  const auto built = tier->build();
  if (!built) return Unexpected(built.error());
  return tier;
}

Tier::Tier(model::TierConfig config, model::Role role, TierHooks hooks)
    : config_(std::move(config)), role_(role), hooks_(std::move(hooks)), started_(now_ns()) {}

Tier::~Tier() {
  if (layer_) layer_->shut_down();
  for (const auto& shard : shards_) shard->shut_down();
}

Result<> Tier::build() {
  raise_descriptor_limit(config_.max_clients);
  auto loop = io::Loop::create();
  if (!loop) return Unexpected(loop.error());
  loop_ = std::move(*loop);
  const model::Endpoint& where = listen_endpoint();
  auto listen = io::resolve(where.host, where.port);
  if (!listen) return Unexpected(listen.error());
  listen_address_ = *listen;
  // Clients are let in only when a shard has answered; that they cannot be is said at once.
  if (const auto probe = io::listen_tcp(listen_address_); !probe) return Unexpected(probe.error());
  if (config_.tls) {
    auto tls = io::TlsContext::server({config_.tls->cert_file, config_.tls->key_file,
                                       config_.tls->ca_file, asked_of(config_.tls->client_auth)});
    if (!tls) return Unexpected(tls.error());
    tls_ = *tls;
  }
  layer_ = std::make_unique<Layer>(config_, role_, *loop_, pool_, durations_);
  const auto peers = layer_->add_peers();
  if (!peers) return peers;
  const uint64_t epoch = new_epoch();
  for (size_t i = 0; i < config_.racks.size(); ++i) {
    for (const model::Endpoint& endpoint : config_.racks[i].shards) {
      auto address = io::resolve(endpoint.host, endpoint.port);
      if (!address) return Unexpected(address.error());
      ShardOptions options;
      options.index = static_cast<uint32_t>(shards_.size());
      options.text = model::to_string(endpoint);
      options.rack = config_.racks[i].name;
      options.address = options.session_address = *address;
      options.name_prefix = "ballast:" + config_.tier + ":" + config_.racks[i].name + ":";
      options.user = options.session_user = config_.shard_user;
      options.password = options.session_password = config_.shard_password;
      options.leaf = layer_->leaf_of(i);
      // Connections of a client's own go through the leaf, which keeps the copies coherent.
      options.home = options.leaf == nullptr;
      if (!options.home) {
        options.session_address = options.leaf->options().address;
        options.session_user.clear();
        options.session_password = config_.password;
      }
      options.caching = layer_->caching();
      options.timeout = config_.shard_timeout_ms * kMillisecond;
      options.connect_timeout = config_.connect_timeout_ms * kMillisecond;
      options.rate = config_.shard_rate;
      options.coherence.epoch = epoch;
      options.coherence.lease = config_.lease_ms * kMillisecond;
      options.coherence.drift_margin = config_.drift_margin_ms * kMillisecond;
      options.coherence.max_reply = config_.max_object;
      shards_.push_back(
          std::make_unique<Shard>(*loop_, pool_, *layer_, durations_, std::move(options)));
    }
  }
  router_ = std::make_unique<Router>(*loop_, config_, pool_, *layer_, shards_);
  layer_->set_router(router_.get());
  layer_->add_local_nodes(shards_, system_seed());
  return watch_signals();
}

const model::Endpoint& Tier::listen_endpoint() const {
  for (const model::Rack& rack : config_.racks)
    if (role_ == model::Role::kLeaf && rack.name == config_.role_name) return rack.leaf;
  for (const model::Spine& spine : config_.spines)
    if (role_ == model::Role::kSpine && spine.name == config_.role_name) return spine.address;
  return config_.listen;
}

Result<> Tier::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = io::Fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.valid()) return fail_errno("signalfd", errno);
  return loop_->add(signals_.get(), this);
}

void Tier::on_ready(uint32_t /*epoll_events*/) {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGHUP) {
      reload();
    } else {
      leave();
    }
  }
}

Result<> Tier::run() {
  for (const auto& shard : shards_) shard->open();
  layer_->open();
  tick();
  loop_->run();
  return outcome_;
}

void Tier::tick() {
  const Nanos now = now_ns();
  for (const auto& shard : shards_) shard->tick(now);
  layer_->tick(now);
  if (!router_->has_commands()) load_commands();
  if (listener_ == nullptr && leave_by_ == 0 && now >= tell_waiting_) {
    if (tell_waiting_ != 0)
      log_warning("no shard has answered yet; clients are let in when the first one does");
    tell_waiting_ = now + (tell_waiting_ == 0 ? kSecond : 30 * kSecond);
  }
  if (leave_by_ != 0 && (router_->clients() == 0 || now >= leave_by_)) return loop_->stop();
  // Rate limits are handed out by the tick, so they want a fine one.
  const bool limited = config_.shard_rate > 0 || config_.node_rate > 0;
  loop_->after(limited ? kMillisecond : 10 * kMillisecond, [this] { tick(); });
}

void Tier::load_commands() {
  const Nanos now = now_ns();
  if (now < asked_commands_) return;
  for (const auto& shard : shards_) {
    if (!shard->up()) continue;
    asked_commands_ = now + kSecond;
    const auto ask = [&](std::string_view wire, std::function<void(Request&)> done) {
      Request* request = pool_.take();
      pool_.hold(request);
      request->done = std::move(done);
      shard->read(wire, *request, now);
      pool_.release(request);
    };
    ask("*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n", [this](Request& answered) {
      const size_t at = answered.reply.find("redis_version:");
      if (at == std::string::npos) return;
      const size_t begin = at + 14;
      router_->set_server_info(
          answered.reply.substr(begin, answered.reply.find('\r', begin) - begin));
    });
    ask("*1\r\n$7\r\nCOMMAND\r\n", [this](Request& answered) {
      auto table = proto::CommandTable::from_reply(std::string_view(answered.reply));
      if (!table) {
        log_error("COMMAND was not understood: {}", table.error().message);
        return;
      }
      router_->set_commands(std::move(*table));
      start_listening();
    });
    return;
  }
}

void Tier::start_listening() {
  if (listener_ != nullptr || leave_by_ != 0) return;
  auto listener = io::Listener::create(*loop_, listen_address_,
                                       [this](io::Fd fd) { router_->accept(std::move(fd), tls_); });
  if (!listener) {
    outcome_ = Unexpected(listener.error());
    return loop_->stop();
  }
  listener_ = std::move(*listener);
  log_info("clients: {}; {} racks, {} shards, {} spines, {}", listener_->address().text(),
           config_.racks.size(), shards_.size(), config_.spines.size(),
           model::to_string(config_.mechanism));
  if (hooks_.on_listening) hooks_.on_listening(listener_->address().port());
}

void Tier::leave() {
  if (leave_by_ != 0) return loop_->stop();
  log_info("draining {} clients", router_->clients());
  leave_by_ = now_ns() + kDrainTime;
  if (listener_ != nullptr) loop_->dispose(std::move(listener_));
  router_->drain();
}

void Tier::reload() {
  if (!hooks_.reload) return;
  auto fresh = hooks_.reload();
  if (!fresh) {
    log_error("the configuration stays as it was: {}", fresh.error().message);
    return;
  }
  if (fresh->racks != config_.racks || fresh->spines != config_.spines ||
      fresh->listen != config_.listen || fresh->mechanism != config_.mechanism)
    log_warning("racks, spines, listen and mechanism change only with a restart");
  config_.password = fresh->password;
  config_.max_clients = fresh->max_clients;
  config_.client_output_limit = fresh->client_output_limit;
  config_.admin_commands = fresh->admin_commands;
  log_set_level(fresh->log_level);
  log_info("configuration reloaded");
}

bool Tier::answers_for(const Shard& shard) const {
  return role_ == model::Role::kAll || role_ == model::Role::kRouter || shard.options().home;
}

bool Tier::ready() const {
  if (listener_ == nullptr) return false;
  for (const auto& shard : shards_)
    if (answers_for(*shard) && !shard->ready()) return false;
  return true;
}

}  // namespace ballast::cache
