// SPDX-License-Identifier: Apache-2.0
#include "model/tier.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace ballast::model {
namespace {

constexpr size_t kMaxSpines = 256;
constexpr size_t kMaxShards = 16384;  // one slot each

Unexpected bad_endpoint(std::string_view text, std::string_view why) {
  return fail(ErrorCode::kInvalid, fmt::format("\"{}\" is not an address: {}; write host:port, "
                                               "[v6]:port or :port",
                                               text, why));
}

bool is_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), plain);
}

// The first problem is the one reported, the later ones often follow from it.
class Checker {
 public:
  explicit Checker(const TierConfig& config) : config_(config) {}

  std::optional<Problem> run(Role role) {
    check_members(role);
    check_role(role);
    check_cache();
    check_times();
    check_limits();
    check_tls();
    return std::move(problem_);
  }

 private:
  void require(bool good, std::string key, std::string message) {
    if (!good && !problem_) problem_ = Problem{std::move(key), std::move(message)};
  }

  void require_name(const std::string& key, const std::string& name) {
    require(is_name(name), key,
            fmt::format("\"{}\" is not a name; 1 to 64 letters, digits, '-', '_' or '.'", name));
    require(
        names_.insert(name).second, key,
        fmt::format("\"{}\" is the name of two members; each rack and spine needs its own", name));
  }

  void require_address(const std::string& key, const Endpoint& endpoint, bool needed) {
    if (endpoint.host.empty() && !needed) return;
    require(!endpoint.host.empty(), key, "is not set; other processes need host:port to reach it");
    require(endpoint.port != 0, key, "port 0 cannot be connected to; give the port it listens on");
    require(
        addresses_.insert(to_string(endpoint)).second, key,
        fmt::format("{} is given twice; each member needs its own address", to_string(endpoint)));
  }

  void check_members(Role role) {
    const bool apart = role != Role::kAll;
    require(is_name(config_.tier), "tier",
            fmt::format("\"{}\" is not a name; 1 to 64 letters, digits, '-', '_' or '.'",
                        config_.tier));
    require(!config_.racks.empty(), "rack",
            apart ? "no rack is given; the file named by -c lists every rack, as [[rack]]"
                  : "no rack is given; at least one with its shards is needed, e.g. "
                    "--rack 127.0.0.1:7000");
    size_t shards = 0;
    for (size_t i = 0; i < config_.racks.size(); ++i) {
      const Rack& rack = config_.racks[i];
      const std::string key = fmt::format("rack[{}]", i);
      require_name(key + ".name", rack.name);
      require(!rack.shards.empty(), key + ".shards", "has no shard; give at least one host:port");
      for (const Endpoint& shard : rack.shards) require_address(key + ".shards", shard, true);
      require_address(key + ".leaf", rack.leaf, apart);
      shards += rack.shards.size();
    }
    require(shards <= kMaxShards, "rack",
            "more than 16384 shards; a shard needs at least one slot");
    require(config_.spines.size() <= kMaxSpines, "spines", "more than 256 spines");
    for (size_t i = 0; i < config_.spines.size(); ++i) {
      const std::string key = fmt::format("spine[{}]", i);
      require_name(key + ".name", config_.spines[i].name);
      require_address(key + ".address", config_.spines[i].address, apart);
    }
  }

  void check_role(Role role) {
    const auto named = [this](const auto& member) { return member.name == config_.role_name; };
    require(role == Role::kAll || role == Role::kRouter || !config_.role_name.empty(), "name",
            "is not given; it says which of the members in the file this process is");
    if (role == Role::kLeaf) {
      require(std::any_of(config_.racks.begin(), config_.racks.end(), named), "name",
              fmt::format("\"{}\" is not one of the racks; a leaf bears the name of its rack",
                          config_.role_name));
    }
    if (role == Role::kSpine) {
      require(std::any_of(config_.spines.begin(), config_.spines.end(), named), "name",
              fmt::format("\"{}\" is not one of the spines", config_.role_name));
    }
    if (role == Role::kAll || role == Role::kRouter) {
      require(!config_.listen.host.empty(), "listen", "is empty; clients need host:port");
    }
    const bool has_port = config_.listen.port != 0 && role != Role::kLeaf && role != Role::kSpine;
    require(!has_port || config_.listen != config_.admin, "admin",
            "is the same address as listen; give another port");
  }

  void check_cache() {
    require(config_.sample >= 1, "sample", "must be at least 1 (every cold read is sampled)");
    require(config_.max_object >= 1, "max_object", "must be at least 1 byte");
    require(config_.cache_memory >= config_.max_object, "cache_memory",
            fmt::format("{} bytes cannot hold one object of max_object ({} bytes)",
                        config_.cache_memory, config_.max_object));
    require(config_.shard_rate >= 0, "shard_rate", "must not be negative; 0 is no limit");
    require(config_.node_rate >= 0, "node_rate", "must not be negative; 0 is no limit");
  }

  void check_times() {
    require(config_.heartbeat_ms >= 10, "heartbeat", "must be at least 10ms");
    require(config_.lease_ms >= 2 * uint64_t{config_.heartbeat_ms}, "lease",
            fmt::format("{}ms is less than two heartbeats of {}ms; one lost renewal would drop "
                        "every copy",
                        config_.lease_ms, config_.heartbeat_ms));
    require(config_.lease_ms <= 60'000, "lease",
            "must be at most 60s; a dead node delays writes to its keys that long");
    require(config_.drift_margin_ms >= 1 && config_.drift_margin_ms < config_.lease_ms,
            "drift_margin", "must be at least 1ms and less than lease");
    require(config_.window_ms >= 10, "window", "must be at least 10ms");
    require(config_.shard_timeout_ms >= 1, "shard_timeout", "must be at least 1ms");
    require(config_.connect_timeout_ms >= 1, "connect_timeout", "must be at least 1ms");
  }

  void check_limits() {
    require(config_.max_clients >= 1, "max_clients", "must be at least 1");
    require(config_.max_bulk >= kKiB, "max_bulk", "must be at least 1KiB");
    require(config_.query_limit >= config_.max_bulk, "query_limit",
            "is less than max_bulk; a request holds at least one bulk string");
    require(config_.client_output_limit >= 64 * kKiB, "client_output_limit",
            "must be at least 64KiB");
    require(config_.output_memory >= config_.client_output_limit, "output_memory",
            "is less than client_output_limit");
  }

  void check_tls() {
    if (!config_.tls) return;
    require(!config_.tls->cert_file.empty(), "tls_cert", "is needed when tls_key is given");
    require(!config_.tls->key_file.empty(), "tls_key", "is needed when tls_cert is given");
  }

  const TierConfig& config_;
  std::optional<Problem> problem_;
  std::set<std::string> names_;
  std::set<std::string> addresses_;
};

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text, std::string_view default_host) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_endpoint(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return bad_endpoint(text, "the port is not a number from 0 to 65535");
  }
  if (host.empty()) return Endpoint{std::string(default_host), port};
  if (host.front() == '[') {
    if (host.size() < 3 || host.back() != ']')
      return bad_endpoint(text, "the bracket is not closed");
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) {
      return bad_endpoint(text, "the brackets hold no IPv6 address");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return bad_endpoint(text, "an IPv6 address needs brackets");
  }
  if (host.find_first_of(" \t\r\n,[]/") != std::string_view::npos) {
    return bad_endpoint(text, "the host holds a character that no host has");
  }
  return Endpoint{std::string(host), port};
}

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.host.empty()) return "";
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
            : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

std::string_view to_string(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kDistCache:
      return "distcache";
    case Mechanism::kPartition:
      return "partition";
    case Mechanism::kReplication:
      return "replication";
    case Mechanism::kNoCache:
      return "nocache";
  }
  return "";
}

std::string_view to_string(ColdReads cold_reads) {
  return cold_reads == ColdReads::kDirect ? "direct" : "via-leaf";
}

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kAll:
      return "all";
    case Role::kRouter:
      return "router";
    case Role::kLeaf:
      return "leaf";
    case Role::kSpine:
      return "spine";
  }
  return "";
}

std::string_view to_string(ClientCertificate client_auth) {
  switch (client_auth) {
    case ClientCertificate::kNone:
      return "none";
    case ClientCertificate::kOptional:
      return "optional";
    case ClientCertificate::kRequired:
      return "required";
  }
  return "";
}

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "";
}

std::vector<Spine> numbered_spines(size_t count) {
  std::vector<Spine> spines;
  for (size_t i = 0; i < count; ++i) spines.push_back(Spine{fmt::format("spine-{}", i), {}});
  return spines;
}

std::optional<Problem> find_problem(const TierConfig& config, Role role) {
  return Checker(config).run(role);
}

}  // namespace ballast::model
