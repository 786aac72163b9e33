// SPDX-License-Identifier: Apache-2.0
#include "model/lb.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "wire/lb.h"

namespace ballast::model {
namespace {

template <typename Word, size_t kCount>
using Words = std::array<std::pair<Word, std::string_view>, kCount>;

constexpr Words<Scheduler, 4> kSchedulers{{{Scheduler::kAwfd, "awfd"},
                                           {Scheduler::kStatic, "static"},
                                           {Scheduler::kEcmp, "ecmp"},
                                           {Scheduler::kLeastConnections, "least-connections"}}};
constexpr Words<Forwarding, 4> kForwardings{{{Forwarding::kL2, "l2"},
                                             {Forwarding::kIpip, "ipip"},
                                             {Forwarding::kGue, "gue"},
                                             {Forwarding::kNat, "nat"}}};
constexpr Words<LoadSource, 5> kLoadSources{{{LoadSource::kNone, "none"},
                                             {LoadSource::kAgent, "agent"},
                                             {LoadSource::kAgentCheck, "agent-check"},
                                             {LoadSource::kHttpJson, "http-json"},
                                             {LoadSource::kPrometheus, "prometheus"}}};
constexpr Words<HealthCheck, 3> kHealthChecks{
    {{HealthCheck::kNone, "none"}, {HealthCheck::kTcp, "tcp"}, {HealthCheck::kHttp, "http"}}};
constexpr Words<Operation, 3> kOperations{{{Operation::kUp, "up"},
                                           {Operation::kDrain, "drain"},
                                           {Operation::kMaintenance, "maintenance"}}};
constexpr Words<Transport, 2> kTransports{{{Transport::kTcp, "tcp"}, {Transport::kUdp, "udp"}}};
constexpr Words<Attach, 3> kAttachs{
    {{Attach::kAuto, "auto"}, {Attach::kNative, "native"}, {Attach::kGeneric, "generic"}}};

template <typename Table, typename Word>
std::string_view find_word(const Table& table, Word value) {
  for (const auto& [each, word] : table) {
    if (each == value) return word;
  }
  return "";
}

template <typename Table, typename Word>
Result<> find_value(const Table& table, std::string_view text, Word& into) {
  std::string known;
  for (const auto& [each, word] : table) {
    if (word == text) {
      into = each;
      return {};
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
  }
  return fail(ErrorCode::kInvalid, fmt::format("\"{}\" is none of {}", text, known));
}

// 4, 6, or 0 for what is no address.
int family_of(const std::string& address) {
  std::array<uint8_t, 16> bytes;
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return 4;
  return inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1 ? 6 : 0;
}

// In the form that the resolver writes.
void make_canonical(std::string& address) {
  std::array<uint8_t, 16> bytes;
  std::array<char, INET6_ADDRSTRLEN> text;
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, address.c_str(), bytes.data()) == 1 &&
        inet_ntop(family, bytes.data(), text.data(), text.size()) != nullptr)
      address = text.data();
  }
}

std::string bracketed(const std::string& address) {
  return family_of(address) == 6 ? "[" + address + "]" : address;
}

using Found = std::optional<Problem>;

// Not the unspecified one, not a group's, not everybody's.
bool is_of_a_host(const std::string& address) {
  std::array<uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1)
    return bytes[0] != 0 && bytes[0] < 224;
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return false;
  return bytes[0] != 0xff && bytes != std::array<uint8_t, 16>{};
}

Found bad_address(const std::string& key, const std::string& address) {
  if (address.empty()) return Problem{key, "is missing"};
  if (family_of(address) != 0) {
    if (is_of_a_host(address)) return std::nullopt;
    return Problem{key, fmt::format("{} is no single host's address", address)};
  }
  return Problem{
      key, fmt::format("\"{}\" is no IPv4 or IPv6 address; names are not looked up", address)};
}

Found bad_name(const std::string& key, const std::string& name) {
  const bool is_plain = std::ranges::none_of(
      name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
  if (is_plain) return std::nullopt;
  return Problem{key, "a name holds no control characters"};
}

Found out_of_bounds(const std::string& key, double value, double least, double most) {
  if (std::isfinite(value) && value >= least && value <= most) return std::nullopt;
  return Problem{key, fmt::format("must be from {} to {}, is {}", least, most, value)};
}

constexpr double kMost = 1e9;

Found check_numbers(const std::string& key, const Vip& vip) {
  struct Bound {
    const char* name;
    double value;
    double least;
    double most;
  };
  const Bound bounds[] = {
      {"m", static_cast<double>(vip.m), 0, BL_MOST_CLASSES},
      {"least_share", vip.least_share, 0, 1},
      {"load_full", vip.load_full, 1e-9, 1e18},
      {"health_interval", static_cast<double>(vip.health_interval_ms), 10, 3.6e6},
      {"health_timeout", static_cast<double>(vip.health_timeout_ms), 10, 3.6e6},
      {"rise", static_cast<double>(vip.rise), 1, 1000},
      {"fall", static_cast<double>(vip.fall), 1, 1000},
  };
  for (const Bound& bound : bounds) {
    if (auto found = out_of_bounds(key + "." + bound.name, bound.value, bound.least, bound.most))
      return found;
  }
  // Below it no client with the least IPv6 or IPv4 packets gets through.
  const int least_mtu = vip.mtu == 0 ? 0 : 576;
  return out_of_bounds(key + ".mtu", vip.mtu, least_mtu, UINT16_MAX);
}

Found check_sources(const std::string& key, const Vip& vip) {
  const bool is_metric = vip.load == LoadSource::kHttpJson || vip.load == LoadSource::kPrometheus;
  if (vip.load_port == 0 && vip.load != LoadSource::kNone && vip.load != LoadSource::kAgent)
    return Problem{key + ".load_port", fmt::format("load = \"{}\" needs it", word_of(vip.load))};
  if (is_metric && vip.load_metric.empty())
    return Problem{key + ".load_metric", fmt::format("load = \"{}\" needs it", word_of(vip.load))};
  if (vip.health != HealthCheck::kNone && vip.health_port == 0 && vip.port == 0)
    return Problem{key + ".health_port", "a VIP of all ports needs one to check"};
  for (const auto& [name, path] :
       {std::pair("load_path", &vip.load_path), std::pair("health_path", &vip.health_path)}) {
    const bool is_plain = std::ranges::all_of(*path, [](char c) { return c > ' ' && c < 0x7f; });
    if (!path->starts_with('/') || !is_plain)
      return Problem{key + "." + name, "must begin with / and be of ASCII without blanks"};
  }
  return std::nullopt;
}

Found check_instance(const std::string& key, const Vip& vip, const Instance& instance) {
  if (auto found = bad_name(key + ".name", instance.name)) return found;
  if (auto found = bad_address(key + ".address", instance.address)) return found;
  if (auto found = out_of_bounds(key + ".weight", instance.weight, 0, kMost)) return found;
  if (auto found = out_of_bounds(key + ".capacity", instance.capacity, 1e-9, kMost)) return found;
  if (vip.forwarding != Forwarding::kNat && instance.port != 0)
    return Problem{key + ".port",
                   fmt::format("only nat changes the port; {} does not", word_of(vip.forwarding))};
  if (vip.forwarding == Forwarding::kNat && family_of(instance.address) != family_of(vip.address))
    return Problem{key + ".address", "nat needs an address of the VIP's family"};
  if (vip.port == 0 && instance.port != 0)
    return Problem{key + ".port", "a VIP of all ports keeps them"};
  if (family_of(instance.address) == family_of(vip.address) && instance.address == vip.address)
    return Problem{key + ".address", "is the VIP's own"};
  return std::nullopt;
}

Found check_instances(const std::string& key, const Vip& vip, bool may_be_empty) {
  if (vip.instances.empty() && !may_be_empty)
    return Problem{key + ".instance", fmt::format("vip {} has no instances", vip.name)};
  if (vip.instances.size() > BL_MOST_MEMBERS)
    return Problem{key + ".instance", fmt::format("{} instances; a VIP may have {}",
                                                  vip.instances.size(), int{BL_MOST_MEMBERS})};
  std::map<std::pair<std::string, uint16_t>, size_t> places;
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < vip.instances.size(); ++i) {
    const Instance& instance = vip.instances[i];
    const std::string of = fmt::format("{}.instance[{}]", key, i);
    if (auto found = check_instance(of, vip, instance)) return found;
    const auto place = places.emplace(std::pair(instance.address, instance.port), i);
    if (!place.second)
      return Problem{of + ".address", fmt::format("{} is instance[{}] of vip {} already",
                                                  instance.address, place.first->second, vip.name)};
    const auto name = names.emplace(instance.name, i);
    if (!name.second)
      return Problem{of + ".name", fmt::format("instance[{}] of vip {} has the name \"{}\" too",
                                               name.first->second, vip.name, instance.name)};
  }
  return std::nullopt;
}

// Of what a NAT instance sends, address and port alone say which VIP it answers for.
Found check_nat(const std::vector<Vip>& vips) {
  std::map<std::pair<std::string, Transport>, std::map<uint16_t, std::string>> sources;
  for (size_t i = 0; i < vips.size(); ++i) {
    const Vip& vip = vips[i];
    if (vip.forwarding != Forwarding::kNat) continue;
    for (size_t j = 0; j < vip.instances.size(); ++j) {
      const Instance& instance = vip.instances[j];
      const uint16_t port = instance.port != 0 ? instance.port : vip.port;
      auto& ports = sources[{instance.address, vip.protocol}];
      auto taken = port == 0 ? ports.begin() : ports.find(port);
      if (taken == ports.end()) taken = ports.find(0);
      if (taken != ports.end())
        return Problem{
            fmt::format("vip[{}].instance[{}].address", i, j),
            fmt::format("{} port {} is an instance of vip {} already; nat could not tell "
                        "their answers apart",
                        instance.address, port, taken->second)};
      ports.emplace(port, vip.name);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view word_of(Scheduler value) { return find_word(kSchedulers, value); }
std::string_view word_of(Forwarding value) { return find_word(kForwardings, value); }
std::string_view word_of(LoadSource value) { return find_word(kLoadSources, value); }
std::string_view word_of(HealthCheck value) { return find_word(kHealthChecks, value); }
std::string_view word_of(Operation value) { return find_word(kOperations, value); }
std::string_view word_of(Transport value) { return find_word(kTransports, value); }
std::string_view word_of(Attach value) { return find_word(kAttachs, value); }

Result<> parse_word(std::string_view word, Scheduler& into) {
  return find_value(kSchedulers, word, into);
}
Result<> parse_word(std::string_view word, Forwarding& into) {
  return find_value(kForwardings, word, into);
}
Result<> parse_word(std::string_view word, LoadSource& into) {
  return find_value(kLoadSources, word, into);
}
Result<> parse_word(std::string_view word, HealthCheck& into) {
  return find_value(kHealthChecks, word, into);
}
Result<> parse_word(std::string_view word, Operation& into) {
  return find_value(kOperations, word, into);
}
Result<> parse_word(std::string_view word, Transport& into) {
  return find_value(kTransports, word, into);
}
Result<> parse_word(std::string_view word, Attach& into) {
  return find_value(kAttachs, word, into);
}

void complete(std::vector<Vip>& vips) {
  for (Vip& vip : vips) {
    make_canonical(vip.address);
    if (vip.name.empty())
      vip.name = fmt::format("{}/{}:{}", word_of(vip.protocol), bracketed(vip.address), vip.port);
    if (vip.load == LoadSource::kAgent && vip.load_port == 0) vip.load_port = 4780;
    for (Instance& instance : vip.instances) {
      make_canonical(instance.address);
      const bool has_port = vip.forwarding == Forwarding::kNat;
      if (has_port && instance.port == 0) instance.port = vip.port;
      if (instance.name.empty())
        instance.name = instance.port == 0
                            ? instance.address
                            : fmt::format("{}:{}", bracketed(instance.address), instance.port);
    }
  }
}

std::optional<Problem> find_problem(const std::vector<Vip>& vips, bool may_be_empty) {
  std::map<std::tuple<std::string, uint16_t, Transport>, size_t> places;
  std::map<std::string, size_t> names;
  size_t instances = 0;
  if (vips.size() > BL_MOST_VIPS)
    return Problem{"vip", fmt::format("{} VIPs; there may be {}", vips.size(), int{BL_MOST_VIPS})};
  for (size_t i = 0; i < vips.size(); ++i) {
    const Vip& vip = vips[i];
    const std::string key = fmt::format("vip[{}]", i);
    if (auto found = bad_address(key + ".address", vip.address)) return found;
    const auto place = places.emplace(std::tuple(vip.address, vip.port, vip.protocol), i);
    if (!place.second)
      return Problem{key + ".address", fmt::format("{} port {} is vip[{}]'s already", vip.address,
                                                   vip.port, place.first->second)};
    if (auto found = bad_name(key + ".name", vip.name)) return found;
    const auto name = names.emplace(vip.name, i);
    if (!name.second)
      return Problem{key + ".name",
                     fmt::format("vip[{}] has the name \"{}\" too", name.first->second, vip.name)};
    if (auto found = check_numbers(key, vip)) return found;
    if (auto found = check_sources(key, vip)) return found;
    if (auto found = check_instances(key, vip, may_be_empty)) return found;
    instances += vip.instances.size();
  }
  if (instances > BL_MOST_INSTANCES)
    return Problem{"vip", fmt::format("{} instances in all; there may be {}", instances,
                                      int{BL_MOST_INSTANCES})};
  return check_nat(vips);
}

}  // namespace ballast::model
