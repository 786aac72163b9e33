// SPDX-License-Identifier: Apache-2.0
// The load balancer's configuration as plain data, with validation: what lb.toml, the HTTP
// interface and the commands are turned into. Times are milliseconds.
#pragma once

#include <cstdint>
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
  std::string name;     // within its VIP; default: its address and port
  std::string address;  // IPv4 or IPv6, never a name
  uint16_t port = 0;    // NAT only, elsewhere the VIP's; 0: the VIP's
  double weight = 1;    // a factor; 0 drains
  double capacity = 1;  // for load sources that do not tell it, e.g. cores
  Operation operation = Operation::kUp;

  bool operator==(const Instance&) const = default;
};

struct Vip {
  std::string name;     // default: protocol, address and port, e.g. tcp/192.0.2.1:80
  std::string address;  // IPv4 or IPv6
  uint16_t port = 0;    // 0: all ports that have no VIP of their own
  Transport protocol = Transport::kTcp;
  Forwarding forwarding = Forwarding::kL2;
  Scheduler scheduler = Scheduler::kAwfd;
  uint32_t m = 16;             // AWFD's, design.md section 2
  double least_share = 0;      // of a fair share that an instance gets however loaded, 0 to 1
  uint32_t slow_start_ms = 0;  // an instance that came up grows to its weight over this time
  uint16_t mtu = 0;            // of the way to the instances; 0: the interface's

  LoadSource load = LoadSource::kNone;
  uint16_t load_port = 0;  // 0: 4780 for an agent, else required
  std::string load_path = "/";
  std::string load_metric;
  double load_full = 1;  // the value of the metric at which an instance has nothing free

  HealthCheck health = HealthCheck::kNone;
  uint16_t health_port = 0;  // 0: the instance's own
  std::string health_path = "/";
  uint32_t health_interval_ms = 1000;
  uint32_t health_timeout_ms = 1000;
  uint32_t rise = 2;  // good checks in a row until it is up again
  uint32_t fall = 2;  // bad ones until it is down

  std::vector<Instance> instances;

  bool operator==(const Vip&) const = default;
};

enum class Attach : uint8_t { kAuto, kNative, kGeneric };

// What is fixed while the process runs.
struct LbSettings {
  std::vector<std::string> interfaces;
  Attach attach = Attach::kAuto;                // auto: native, else generic with a warning
  std::string pins = "/sys/fs/bpf/ballast-lb";  // folder of the maps; empty: none survives
  bool keep = false;                            // XDP stays attached when the process ends
  std::string api = "/run/ballast/lb.sock";     // a Unix socket's path, or a loopback H:P
  Endpoint admin{"127.0.0.1", 9480};            // /metrics, /livez, /readyz; off: no host
  std::string state_file;   // remembers what was applied over restarts; empty: nothing does
  std::string secret_file;  // the agents' secret
  uint32_t interval_ms = 100;
  uint32_t connections = 1'048'576;
  uint32_t tcp_idle_s = 8100;    // longer than TCP's keep-alive of two hours
  uint32_t tcp_closing_s = 120;  // after the client's FIN
  uint32_t udp_idle_s = 120;
  LogLevel log_level = LogLevel::kInfo;

  bool operator==(const LbSettings&) const = default;
};

struct LbConfig {
  LbSettings settings;
  std::vector<Vip> vips;

  bool operator==(const LbConfig&) const = default;
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

// Fills in the names and ports that are left out.
void complete(std::vector<Vip>& vips);

// The first thing wrong with completed VIPs, in words that name VIP and instance: no address or a
// wrong one, no instance, two VIPs of one address, port and protocol, two instances alike, families
// that the forwarding cannot bring together, what is out of its bounds or not finite.
Result<> check(const std::vector<Vip>& vips);

}  // namespace ballast::model
