// SPDX-License-Identifier: Apache-2.0
// ballast lb decap: opens the balancer's tunnels on an instance.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/notify.h"
#include "app/signals.h"
#include "app/subcommand.h"
#include "base/log.h"
#include "lb/decap.h"

namespace ballast::app {
namespace {

constexpr const char* kPins = "/sys/fs/bpf/ballast-decap";

constexpr const char* kFooter =
    "What the instance needs besides:\n"
    "  ip address add VIP dev lo                 for each VIP, /32 or /128\n"
    "  sysctl net.ipv4.conf.IF.rp_filter=2       or 0, where answers leave by another interface\n"
    "  sysctl net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2\n"
    "                                            where it is on one network with the VIP\n"
    "In generic mode the kernel may have merged packets before: ethtool -K IF gro off.\n"
    "\n"
    "Packets of a connection that is not here go to the one other instance that the balancer\n"
    "named (GUE only). SIGUSR1 prints what was counted, and so does the end.\n"
    "\n"
    "Exit status: 0 ended by a signal; 1 the kernel refused; 2 wrong usage.";

std::vector<Flag> decap_flags(lb::DecapOptions& options) {
  return {
      {"--interface", "IF", "where tunnels end", "", "", true,
       [&options](const std::string& text) -> Result<> {
         if (text.empty()) return fail(ErrorCode::kInvalid, "an interface's name");
         options.interfaces.push_back(text);
         return {};
       }},
      {"--balancer", "ADDRESS", "whose tunnels are opened: the source of its outer headers", "", "",
       true,
       [&options](const std::string& text) -> Result<> {
         const auto address = lb::parse_address(text);
         if (!address) return Unexpected(address.error());
         options.balancers.push_back(*address);
         return {};
       }},
      {"--keep", "",
       "stay attached when this process ends; the next one takes over, and without --keep ends it",
       "", "", false, switch_into(options.keep)},
  };
}

void print_counts(const lb::Decap& decap) {
  const auto counts = decap.counts();
  if (!counts) {
    log_error("{}", counts.error().message);
    return;
  }
  for (const lb::DecapCount& count : *counts)
    std::printf("%-14s %12llu  %s\n", count.name.c_str(),
                static_cast<unsigned long long>(count.packets), count.words.c_str());
  std::fflush(stdout);
}

Result<> run_decap(const lb::DecapOptions& options) {
  auto loop = io::Loop::create();
  if (!loop) return Unexpected(loop.error());
  std::unique_ptr<lb::Decap> decap;
  const auto signals = Signals::watch(**loop, {SIGTERM, SIGINT, SIGUSR1}, [&](int signal) {
    if (signal == SIGUSR1)
      print_counts(*decap);
    else
      (*loop)->stop();
  });
  if (!signals) return Unexpected(signals.error());
  auto created = lb::Decap::create(**loop, options);
  if (!created) return Unexpected(created.error());
  decap = std::move(*created);
  for (const std::string& interface : options.interfaces)
    log_info("{}: tunnels of {} balancers are opened", interface, options.balancers.size());
  (void)notify_service_manager("READY=1");
  (*loop)->run();
  (void)notify_service_manager("STOPPING=1");
  print_counts(*decap);
  return {};
}

}  // namespace

int run_lb_decap(const Arguments& arguments) {
  lb::DecapOptions options;
  const CommandLine command{.name = "ballast lb decap",
                            .summary = "opens the balancer's tunnels (IPIP, GUE) on an instance",
                            .flags = decap_flags(options),
                            .footer = kFooter};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  options.pins = kPins;
  if (options.interfaces.empty()) return usage_error(command.name, "--interface: at least one");
  if (options.balancers.empty()) return usage_error(command.name, "--balancer: at least one");
  if (const auto ran = run_decap(options); !ran) {
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), ran.error().message.c_str());
    return ran.error().code == ErrorCode::kInvalid ? kExitUsage : kExitFailed;
  }
  return kExitDone;
}

}  // namespace ballast::app
