// SPDX-License-Identifier: Apache-2.0
// ballast cache up and its kin: merges the settings, starts the tier and its admin server, runs
// until a signal.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <future>

#include "app/notify.h"
#include "app/options.h"
#include "app/subcommand.h"
#include "base/log.h"
#include "cache/tier.h"
#include "telemetry/admin.h"

namespace ballast::app {
namespace {

// Runs `read` on the tier's loop and waits for what it gives; a default value if the loop does not
// come to it.
template <typename Read>
auto on_loop(cache::Tier& tier, Read read) {
  using Value = decltype(read());
  auto promise = std::make_shared<std::promise<Value>>();
  std::future<Value> value = promise->get_future();
  tier.loop().post([promise, read] { promise->set_value(read()); });
  if (value.wait_for(std::chrono::seconds(2)) != std::future_status::ready) return Value();
  return value.get();
}

Result<std::unique_ptr<telemetry::AdminServer>> start_admin(const model::Endpoint& endpoint,
                                                            cache::Tier& tier) {
  if (endpoint.host.empty()) return std::unique_ptr<telemetry::AdminServer>();
  telemetry::AdminHandlers handlers;
  handlers.metrics = [&tier] {
    return exposition(on_loop(tier, [&tier] { return tier.snapshot(); }));
  };
  handlers.status_json = [&tier] {
    return to_json(on_loop(tier, [&tier] { return tier.status(); }));
  };
  handlers.ready = [&tier] { return on_loop(tier, [&tier] { return tier.readiness(); }); };
  return telemetry::AdminServer::start(endpoint, std::move(handlers));
}

int run_role(const CommandLine& command, const Given& given, model::Role role) {
  auto settings = load_settings(given, role);
  if (!settings) return usage_error(command.name, settings.error().message);
  log_set_level(settings->config.log_level);
  cache::TierHooks hooks;
  hooks.on_listening = [](uint16_t) { (void)notify_service_manager("READY=1"); };
  hooks.reload = [&given, role]() -> Result<model::TierConfig> {
    auto fresh = load_settings(given, role);
    if (!fresh) return Unexpected(fresh.error());
    return fresh->config;
  };
  const auto failed = [&](const Error& error) {
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), error.message.c_str());
    return error.code == ErrorCode::kInvalid ? kExitUsage : kExitFailed;
  };
  auto tier = cache::Tier::create(settings->config, role, std::move(hooks));
  if (!tier) return failed(tier.error());
  auto admin = start_admin(settings->config.admin, **tier);
  if (!admin) return failed(admin.error());
  if (*admin) log_info("admin: http://{}/status", model::to_string((*admin)->address()));
  const auto ran = (*tier)->run();
  (void)notify_service_manager("STOPPING=1");
  if (*admin) (*admin)->stop();
  return ran ? kExitDone : failed(ran.error());
}

int run_cache(const char* name, const char* summary, model::Role role, const Arguments& arguments) {
  Given given;
  CommandLine command{.name = name, .summary = summary, .flags = settings_flags(given, role)};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  return run_role(command, given, role);
}

}  // namespace

int run_cache_up(const Arguments& arguments) {
  return run_cache("ballast cache up",
                   "the whole cache tier in one process: router, a leaf for each rack, spines, in "
                   "front of Redis shards",
                   model::Role::kAll, arguments);
}

int run_cache_router(const Arguments& arguments) {
  return run_cache("ballast cache router", "one router of a tier of separate processes",
                   model::Role::kRouter, arguments);
}

int run_cache_leaf(const Arguments& arguments) {
  return run_cache("ballast cache leaf",
                   "one rack's leaf: a cache node, and the home of the "
                   "rack's objects, through which they are written",
                   model::Role::kLeaf, arguments);
}

int run_cache_spine(const Arguments& arguments) {
  return run_cache("ballast cache spine", "one spine: a cache node of the upper layer",
                   model::Role::kSpine, arguments);
}

}  // namespace ballast::app
