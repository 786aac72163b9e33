// SPDX-License-Identifier: Apache-2.0
// ballast lb run: the load balancer's process. Its loop is the control plane; the HTTP interface
// has a thread of its own and asks the loop.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/lb_config.h"
#include "app/notify.h"
#include "app/read_file.h"
#include "app/signals.h"
#include "app/subcommand.h"
#include "base/clock.h"
#include "base/log.h"
#include "lb/balancer.h"
#include "lb/connections.h"
#include "lb/metrics.h"
#include "lb/status.h"
#include "telemetry/admin.h"

namespace ballast::app {
namespace {

using nlohmann::json;
using telemetry::AdminServer;
using telemetry::ApiAnswer;
using telemetry::ApiRequest;

constexpr const char* kFooter =
    "Packets to a VIP's address are taken on the interfaces before the kernel sees them; all "
    "others\n"
    "are left to it. SIGHUP reads the file again; SIGTERM ends the process, and with --keep the\n"
    "packet path goes on without it.\n"
    "\n"
    "Exit status: 0 ended by a signal; 1 the packet path cannot be loaded or attached, or an "
    "address\n"
    "is not to be had; 2 wrong usage or configuration.";

constexpr size_t kMostState = size_t{64} * model::kMiB;

std::string error_json(const std::string& message) {
  return json{{"error", message}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

ApiAnswer failed(const Error& error) {
  const bool is_input = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kLimit;
  return {is_input ? 400U : 500U, error_json(error.message)};
}

ApiAnswer no_answer() { return {503, error_json("the balancer does not answer")}; }

// A poll and a check of an instance may each take a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, 65'536));
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The process: the balancer on its loop, its file, its signals.
class Run {
 public:
  Run(const LbGiven& given, model::LbConfig config)
      : given_(given), settings_(config.settings), file_vips_(std::move(config.vips)) {}

  Result<> start();
  Result<> serve();

 private:
  void on_signal(int signal);
  std::vector<model::Vip> first_vips() const;
  void reload();
  Result<> remember() const;
  void try_to_remember() const;
  ApiAnswer answer(const ApiRequest& request);
  ApiAnswer on_loop(const ApiRequest& request);
  ApiAnswer put_config(const ApiRequest& request);
  ApiAnswer connections(const ApiRequest& request);
  template <typename Read>
  auto read_on_loop(const Read& read) -> std::optional<decltype(read())>;
  telemetry::AdminHandlers admin_handlers();
  telemetry::Readiness readiness() const;
  std::string metrics_text();

  const LbGiven& given_;
  model::LbSettings settings_;
  std::vector<model::Vip> file_vips_;
  std::unique_ptr<io::Loop> loop_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<lb::Balancer> balancer_;
  bool is_stopping_ = false;
  std::atomic<bool> is_serving_{true};  // the loop comes to what is asked
  Nanos started_at_ = now_ns();
};

void Run::on_signal(int signal) {
  if (signal == SIGHUP) {
    reload();
    return;
  }
  if (std::exchange(is_stopping_, true)) _exit(kExitFailed);
  loop_->stop();
}

// What was applied while the former process ran, unless the file has changed since.
std::vector<model::Vip> Run::first_vips() const {
  if (settings_.state_file.empty()) return file_vips_;
  const auto text = read_file(settings_.state_file, kMostState);
  if (!text) {
    if (text.error().sys_errno != ENOENT)
      log_warning("{}: {}; not used", settings_.state_file, text.error().message);
    return file_vips_;
  }
  const json state = json::parse(*text, nullptr, false);
  if (state.is_discarded() || !state.contains("file") || !state.contains("applied")) {
    log_warning("{}: not read, it is no state of this program", settings_.state_file);
    return file_vips_;
  }
  if (state["file"] != json::parse(vips_json(file_vips_))) {
    log_info("the file's VIPs have changed; those applied before are given up");
    return file_vips_;
  }
  auto vips = read_vips(settings_.state_file, state["applied"].dump(), true);
  if (!vips) {
    log_warning("{}; not used", vips.error().message);
    return file_vips_;
  }
  log_info("goes on with the VIPs applied before ({})", settings_.state_file);
  return *vips;
}

// Written beside and moved, so that no crash leaves half a file.
Result<> Run::remember() const {
  if (settings_.state_file.empty()) return {};
  const std::string fresh = settings_.state_file + ".new";
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(fresh).parent_path(), error);
  {
    std::ofstream out(fresh, std::ios::trunc);
    out << json{{"file", json::parse(vips_json(file_vips_))},
                {"applied", json::parse(vips_json(balancer_->vips()))}}
               .dump(1)
        << '\n';
    if (!out.flush()) return fail_errno("write " + fresh, errno);
  }
  std::filesystem::rename(fresh, settings_.state_file, error);
  if (error) return fail_errno("write " + settings_.state_file, error.value());
  return {};
}

// The change itself stands, only its memory does not.
void Run::try_to_remember() const {
  if (const Result<> kept = remember(); !kept)
    log_error("{}; a restart forgets what was applied", kept.error().message);
}

void Run::reload() {
  auto config = load_lb_config(given_);
  if (!config) {
    log_error("{}; the former configuration stays", config.error().message);
    return;
  }
  const auto changes = balancer_->set_vips(config->vips);
  if (!changes) {
    log_error("{}; the former configuration stays", changes.error().message);
    return;
  }
  file_vips_ = std::move(config->vips);
  for (const std::string& line : *changes) log_info("{}", line);
  log_info("configuration read again: {} changes; what stands in [lb] changes with a restart",
           changes->size());
  try_to_remember();
}

ApiAnswer Run::put_config(const ApiRequest& request) {
  for (const auto& [key, value] : request.query) {
    const bool is_switch = key == "dry_run" || key == "may_be_empty";
    if (!is_switch && key != "generation")
      return {400, error_json(key + ": there are dry_run, may_be_empty and generation")};
    if (is_switch && !value.empty() && value != "1" && value != "true")
      return {400, error_json(key + ": leave it out for no; \"" + value + "\" is not read")};
  }
  const auto generation = request.query.find("generation");
  if (generation != request.query.end() &&
      generation->second != std::to_string(balancer_->generation()))
    return {409, error_json(fmt::format("the configuration is of generation {} by now",
                                        balancer_->generation()))};
  const bool may_be_empty = request.query.contains("may_be_empty");
  auto vips = read_vips("request", request.body, may_be_empty);
  if (!vips) return failed(vips.error());
  const bool is_dry_run = request.query.contains("dry_run");
  const auto changes = balancer_->set_vips(std::move(*vips), is_dry_run);
  if (!changes) return failed(changes.error());
  if (!is_dry_run && !changes->empty()) {
    for (const std::string& line : *changes) log_info("applied: {}", line);
    try_to_remember();
  }
  return {200, json{{"changes", *changes}, {"generation", balancer_->generation()}}.dump()};
}

ApiAnswer Run::on_loop(const ApiRequest& request) {
  if (request.path == "/v1/config" && request.method == "PUT") return put_config(request);
  if (request.method != "GET") return {405, error_json("only GET, and PUT of /v1/config")};
  if (request.path == "/v1/config") {
    json config = json::parse(vips_json(balancer_->vips()));
    config["generation"] = balancer_->generation();
    return {200, config.dump()};
  }
  if (request.path == "/v1/status") return {200, lb::status_json(*balancer_)};
  if (request.path == "/v1/trace") {
    const auto of = [&](const char* key) {
      const auto found = request.query.find(key);
      return found == request.query.end() ? std::string() : found->second;
    };
    auto said = lb::trace_json(*balancer_, of("protocol"), of("source"), of("destination"));
    return said ? ApiAnswer{200, std::move(*said)} : failed(said.error());
  }
  return {404, error_json("there are /v1/config, /v1/connections, /v1/status, /v1/trace")};
}

// On an HTTP thread; nothing if the loop does not come to it.
template <typename Read>
auto Run::read_on_loop(const Read& read) -> std::optional<decltype(read())> {
  auto promise = std::make_shared<std::promise<decltype(read())>>();
  auto value = promise->get_future();
  loop_->post([promise, read] { promise->set_value(read()); });
  for (int i = 0; i < 100 && is_serving_; ++i)
    if (value.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready)
      return value.get();
  return std::nullopt;
}

// On an HTTP thread, as a walk through a large table takes long.
ApiAnswer Run::connections(const ApiRequest& request) {
  lb::ConnectionFilter filter;
  for (const auto& [key, value] : request.query) {
    if (key == "vip") {
      filter.vip = value;
    } else if (key == "instance") {
      filter.instance = value;
    } else if (key == "source") {
      filter.source = value;
    } else if (key == "limit") {
      const Result<> set = count_into(filter.limit, lb::kMostListed)(value);
      if (!set) return {400, error_json("limit: " + set.error().message)};
    } else {
      return {400, error_json(key + ": there are vip, instance, source and limit")};
    }
  }
  const auto names = read_on_loop([this] { return lb::connection_names(*balancer_); });
  if (!names) return no_answer();
  auto said = lb::connections_json(balancer_->program(), *names, filter);
  return said ? ApiAnswer{200, std::move(*said)} : failed(said.error());
}

ApiAnswer Run::answer(const ApiRequest& request) {
  if (request.path == "/v1/connections" && request.method == "GET") return connections(request);
  const auto said = read_on_loop([this, request] { return on_loop(request); });
  return said.value_or(no_answer());
}

std::string Run::metrics_text() {
  auto metrics = read_on_loop([this] { return lb::collect_metrics(*balancer_); });
  if (!metrics) return "";
  metrics->uptime_seconds = static_cast<double>(now_ns() - started_at_) / kSecond;
  return lb::exposition(*metrics);
}

// A VIP without an instance is said, but other VIPs are not to suffer for it.
telemetry::Readiness Run::readiness() const {
  telemetry::Readiness out{!is_stopping_, {{"running", !is_stopping_, ""}}};
  for (const lb::Attached& each : balancer_->attached())
    if (each.ifindex == 0) {
      out.ready = false;
      out.checks.push_back({"interface " + each.interface, false, "is gone"});
    }
  for (const lb::Service& service : balancer_->services()) {
    const bool is_usable = std::ranges::any_of(service.members, [&](uint32_t index) {
      return balancer_->members().at(index).weighed.weight > 0;
    });
    out.checks.push_back(
        {"vip " + service.config.name, is_usable, is_usable ? "" : "no instance may get anything"});
  }
  return out;
}

telemetry::AdminHandlers Run::admin_handlers() {
  telemetry::AdminHandlers handlers;
  handlers.metrics = [this] { return metrics_text(); };
  handlers.ready = [this] {
    return read_on_loop([this] { return readiness(); }).value_or(telemetry::Readiness());
  };
  return handlers;
}

Result<> Run::start() {
  auto loop = io::Loop::create();
  if (!loop) return Unexpected(loop.error());
  loop_ = std::move(*loop);
  auto signals =
      Signals::watch(*loop_, {SIGTERM, SIGINT, SIGHUP}, [this](int signal) { on_signal(signal); });
  if (!signals) return Unexpected(signals.error());
  signals_ = std::move(*signals);
  auto balancer = lb::Balancer::create(*loop_, settings_);
  if (!balancer) return Unexpected(balancer.error());
  balancer_ = std::move(*balancer);
  const auto changes = balancer_->set_vips(first_vips());
  if (!changes) return Unexpected(changes.error());
  for (const std::string& line : *changes) log_info("{}", line);
  if (const Result<> kept = remember(); !kept) return kept;
  return balancer_->attach();
}

Result<> Run::serve() {
  telemetry::AdminHandlers handlers;
  handlers.api = [this](const ApiRequest& request) { return answer(request); };
  const model::Endpoint api =
      settings_.api.starts_with('/')
          ? model::Endpoint{settings_.api, 0}
          : model::parse_endpoint(settings_.api).value_or(model::Endpoint{});
  if (settings_.api.starts_with('/')) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(settings_.api).parent_path(),
                                        ignored);
  }
  telemetry::AdminLimits limits;
  limits.body_bytes = 4 * model::kMiB;
  const auto server = AdminServer::start(api, std::move(handlers), limits);
  if (!server) return Unexpected(server.error());
  std::unique_ptr<AdminServer> admin;
  if (!settings_.admin.host.empty()) {
    auto started = AdminServer::start(settings_.admin, admin_handlers());
    if (!started) return Unexpected(started.error());
    admin = std::move(*started);
    log_info("admin: http://{}/metrics", model::to_string(admin->address()));
  }
  log_info("HTTP interface: {}", settings_.api);
  (void)notify_service_manager("READY=1");
  loop_->run();
  is_serving_ = false;
  (void)notify_service_manager("STOPPING=1");
  (*server)->stop();
  if (admin) admin->stop();
  return {};
}

}  // namespace

int run_lb_run(const Arguments& arguments) {
  LbGiven given;
  const CommandLine command{.name = "ballast lb run",
                            .summary =
                                "the load balancer: XDP on its interfaces, and the control "
                                "plane that weighs instances by their load",
                            .flags = lb_flags(given),
                            .footer = kFooter};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  raise_descriptor_limit();
  auto config = load_lb_config(given);
  if (!config) return usage_error(command.name, config.error().message);
  log_set_level(config->settings.log_level);
  Run run(given, std::move(*config));
  Result<> done = run.start();
  if (done) done = run.serve();
  if (done) return kExitDone;
  std::fprintf(stderr, "%s: %s\n", command.name.c_str(), done.error().message.c_str());
  return done.error().code == ErrorCode::kInvalid ? kExitUsage : kExitFailed;
}

}  // namespace ballast::app
