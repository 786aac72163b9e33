// SPDX-License-Identifier: Apache-2.0
// The cache tier's configuration as plain data: what the options, the environment and tier.toml
// are turned into, and what the tier is built from. Sizes are bytes, times milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"

namespace ballast::model {

struct Endpoint {
  std::string host;   // a name or an address, IPv6 without brackets; empty = off
  uint16_t port = 0;  // 0 = the kernel's choice, for listening only

  bool operator==(const Endpoint&) const = default;
};

// "host:port", "[v6]:port" or ":port"; the last stands for default_host.
Result<Endpoint> parse_endpoint(std::string_view text, std::string_view default_host = "127.0.0.1");
std::string to_string(const Endpoint& endpoint);  // what parse_endpoint reads; "" for off

struct Rack {
  std::string name;
  std::vector<Endpoint> shards;
  Endpoint leaf;  // where other processes find the rack's leaf; off in the one-process form

  bool operator==(const Rack&) const = default;
};

struct Spine {
  std::string name;
  Endpoint address;  // off in the one-process form

  bool operator==(const Spine&) const = default;
};

enum class ClientCertificate { kNone, kOptional, kRequired };

struct Tls {
  std::string cert_file;  // PEM, chain included
  std::string key_file;
  std::string ca_file;  // whom client certificates must be signed by; empty = the system's roots
  ClientCertificate client_auth = ClientCertificate::kNone;

  bool operator==(const Tls&) const = default;
};

// How reads find a copy: both layers by load, one layer, every spine, or none (the paper's four).
enum class Mechanism { kDistCache, kPartition, kReplication, kNoCache };
enum class ColdReads { kDirect, kViaLeaf };
enum class Role { kAll, kRouter, kLeaf, kSpine };

std::string_view to_string(Mechanism mechanism);   // distcache, partition, replication, nocache
std::string_view to_string(ColdReads cold_reads);  // direct, via-leaf
std::string_view to_string(Role role);             // all, router, leaf, spine
std::string_view to_string(ClientCertificate client_auth);  // none, optional, required
std::string_view to_string(LogLevel level);                 // debug, info, warning, error

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;
inline constexpr size_t kGiB = 1024 * kMiB;

struct TierConfig {
  std::string tier = "ballast";  // part of the names of connections to shards
  std::string role_name;         // which leaf or spine this process is; empty for kAll and kRouter
  std::vector<Rack> racks;
  std::vector<Spine> spines;
  Endpoint listen{"127.0.0.1", 6379};
  Endpoint admin{"127.0.0.1", 9400};
  std::optional<Tls> tls;  // towards clients

  Mechanism mechanism = Mechanism::kDistCache;
  ColdReads cold_reads = ColdReads::kDirect;
  uint32_t sample = 64;             // one cold read in this many goes through the layer
  size_t cache_memory = 64 * kMiB;  // per node
  size_t cache_objects = 0;         // per node; 0 = bounded by memory only
  size_t max_object = 64 * kKiB;    // a larger reply is not cached

  uint32_t lease_ms = 1000;
  uint32_t heartbeat_ms = 300;
  uint32_t drift_margin_ms = 50;
  uint32_t window_ms = 1000;  // over which a node counts its load
  uint32_t shard_timeout_ms = 2000;
  uint32_t connect_timeout_ms = 1000;
  double shard_rate = 0;  // requests a second to each shard; 0 = no limit
  double node_rate = 0;   // requests a second each leaf and spine answers; 0 = no limit

  std::string password;  // of the tier, read from password_file or the environment; empty = none
  std::string password_file;
  std::string shard_user;  // empty = the shard's default user
  std::string shard_password;
  std::string shard_password_file;

  uint32_t max_clients = 10000;
  size_t client_output_limit = kGiB;  // a client further behind is closed
  size_t output_memory = 4 * kGiB;    // over all clients
  size_t query_limit = kGiB;          // one request's bytes
  size_t max_bulk = 512 * kMiB;
  bool admin_commands = false;  // let CONFIG SET, DEBUG and the like through, to every shard
  LogLevel log_level = LogLevel::kInfo;
};

// Spines named spine-0, spine-1, … without addresses: the one-process form.
std::vector<Spine> numbered_spines(size_t count);

// What is wrong, with the option's key as tier.toml spells it, e.g. "rack[1].leaf"; the caller
// knows the file and the line that key came from.
struct Problem {
  std::string key;
  std::string message;  // what is wrong and what would be right
};

// The first problem that would keep a process in this role from running.
std::optional<Problem> find_problem(const TierConfig& config, Role role);

}  // namespace ballast::model
