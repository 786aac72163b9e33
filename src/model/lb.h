// SPDX-License-Identifier: Apache-2.0
// The load balancer's configuration as plain data, with validation: what lb.toml, the HTTP
// interface and the commands are turned into. lb_fields.h has the words for each field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "model/tier.h"

namespace ballast::model {

// What an instance's weight follows from, times its static one.
enum class Scheduler : uint8_t {
  kAwfd,              // the capacity it has free (Spotlight)
  kStatic,            // nothing else
  kEcmp,              // not even that: all equal
  kLeastConnections,  // its open connections for its static weight
};

enum class Forwarding : uint8_t { kL2, kIpip, kGue, kNat };

// Who tells an instance's load.
enum class LoadSource : uint8_t {
  kNone,
  kAgent,       // ballast lb agent, by UDP
  kAgentCheck,  // HAProxy's text, by TCP
  kHttpJson,    // a number in a JSON document: load_metric is its path, e.g. "cpu.utilisation"
  kPrometheus,  // a metric by name: load_metric, e.g. node_load or node_load{core="0"}
};

enum class HealthCheck : uint8_t { kNone, kTcp, kHttp };

enum class Operation : uint8_t {
  kUp,
  kDrain,        // nothing new, what is open stays
  kMaintenance,  // out at once: what is open is reset or goes elsewhere
};

enum class Transport : uint8_t { kTcp, kUdp };

struct Instance {
  std::string name;     // within its VIP; left out: its address (and port)
  std::string address;  // IPv4 or IPv6, never a name
  uint16_t port = 0;    // NAT's, 0: the VIP's; elsewhere 0
  double weight = 1;    // a factor; 0 drains
  double capacity = 1;  // for load sources that do not tell it, e.g. cores
  Operation operation = Operation::kUp;

  bool operator==(const Instance&) const = default;
};

struct Vip {
  std::string name;     // left out: protocol, address and port, e.g. tcp/192.0.2.1:80
  std::string address;  // IPv4 or IPv6
  uint16_t port = 0;    // 0: all ports that have no VIP of their own
  Transport protocol = Transport::kTcp;
  Forwarding forwarding = Forwarding::kL2;
  Scheduler scheduler = Scheduler::kAwfd;
  uint32_t m = 16;
  double least_share = 0;
  uint32_t slow_start_ms = 0;
  uint16_t mtu = 0;

  LoadSource load = LoadSource::kNone;
  uint16_t load_port = 0;
  std::string load_path = "/";
  std::string load_metric;
  double load_full = 1;

  HealthCheck health = HealthCheck::kNone;
  uint16_t health_port = 0;
  std::string health_path = "/";
  uint32_t health_interval_ms = 500;
  uint32_t health_timeout_ms = 500;
  uint32_t rise = 2;
  uint32_t fall = 2;

  std::vector<Instance> instances;

  bool operator==(const Vip&) const = default;
};

enum class Attach : uint8_t { kAuto, kNative, kGeneric };

// What is fixed while the process runs.
struct LbSettings {
  std::vector<std::string> interfaces;
  Attach attach = Attach::kAuto;
  std::string pins = "/sys/fs/bpf/ballast-lb";  // empty: no map survives the process
  bool keep = false;
  std::string api = "/run/ballast/lb.sock";  // a Unix socket's path, or a loopback H:P
  Endpoint admin{"127.0.0.1", 9480};         // off: no host
  std::string state_file;                    // empty: what is applied does not survive
  std::string secret_file;
  std::string secret;
  uint32_t interval_ms = 100;
  uint32_t connections = 1'048'576;
  uint32_t tcp_idle_ms = 8'100'000;  // longer than TCP's keep-alive of two hours
  uint32_t tcp_closing_ms = 120'000;
  uint32_t udp_idle_ms = 120'000;
  LogLevel log_level = LogLevel::kInfo;
};

struct LbConfig {
  LbSettings settings;
  std::vector<Vip> vips;
};

// The words of each enumeration as files and options write them, e.g. "least-connections".
std::string_view word_of(Scheduler value);
std::string_view word_of(Forwarding value);
std::string_view word_of(LoadSource value);
std::string_view word_of(HealthCheck value);
std::string_view word_of(Operation value);
std::string_view word_of(Transport value);
std::string_view word_of(Attach value);
// kInvalid names the words there are.
Result<> parse_word(std::string_view word, Scheduler& into);
Result<> parse_word(std::string_view word, Forwarding& into);
Result<> parse_word(std::string_view word, LoadSource& into);
Result<> parse_word(std::string_view word, HealthCheck& into);
Result<> parse_word(std::string_view word, Operation& into);
Result<> parse_word(std::string_view word, Transport& into);
Result<> parse_word(std::string_view word, Attach& into);

// Fills in what is left out, and writes each address in one form.
void complete(std::vector<Vip>& vips);

// The first thing wrong with completed VIPs; its key is e.g. "vip[0].instance[2].address". A VIP
// without instances is wrong unless `may_be_empty`.
std::optional<Problem> find_problem(const std::vector<Vip>& vips, bool may_be_empty = false);

}  // namespace ballast::model
