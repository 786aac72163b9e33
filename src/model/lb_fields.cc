// SPDX-License-Identifier: Apache-2.0
#include "model/lb_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/units.h"

namespace ballast::model {
namespace {

Result<> read(std::string_view text, std::string& into) {
  into = text;
  return {};
}

Result<> read(std::string_view text, double& into) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, into);
  if (error != std::errc() || stop != end || !std::isfinite(into) || into < 0)
    return fail(ErrorCode::kInvalid, fmt::format("\"{}\": must be a number from 0 up", text));
  return {};
}

template <typename Count>
Result<> read_count(std::string_view text, Count& into) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, into);
  if (error != std::errc() || stop != end)
    return fail(ErrorCode::kInvalid, fmt::format("\"{}\": must be a whole number from 0 to {}",
                                                 text, std::numeric_limits<Count>::max()));
  return {};
}
Result<> read(std::string_view text, uint16_t& into) { return read_count(text, into); }
Result<> read(std::string_view text, uint32_t& into) { return read_count(text, into); }

Result<> read(std::string_view text, bool& into) {
  const auto on = parse_switch(text);
  if (!on) return Unexpected(on.error());
  into = *on;
  return {};
}

Result<> read(std::string_view text, Endpoint& into) {
  if (text == "off" || text.empty()) {
    into = {};
    return {};
  }
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) return Unexpected(endpoint.error());
  into = *endpoint;
  return {};
}

// With commas between them.
Result<> read(std::string_view text, std::vector<std::string>& into) {
  into.clear();
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma == 0) return fail(ErrorCode::kInvalid, "a name between commas is missing");
    into.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return {};
}

template <typename Word>
  requires(std::is_enum_v<Word> && !std::is_same_v<Word, LogLevel>)
Result<> read(std::string_view text, Word& into) {
  return parse_word(text, into);
}

// What word_of() is to the other enumerations.
Result<> read(std::string_view text, LogLevel& into) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (to_string(level) != text) continue;
    into = level;
    return {};
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("\"{}\" is none of debug, info, warning, error", text));
}
std::string written(LogLevel value) { return std::string(to_string(value)); }

std::string written(const std::string& value) { return value; }
std::string written(const Endpoint& value) { return value.host.empty() ? "off" : to_string(value); }
std::string written(const std::vector<std::string>& value) {
  return fmt::format("{}", fmt::join(value, ","));
}
template <typename Value>
std::string written(const Value& value) {
  if constexpr (std::is_enum_v<Value>)
    return std::string(word_of(value));
  else
    return fmt::format("{}", value);
}

template <typename Item, auto kMember>
constexpr Field<Item> field(const char* key, const char* value, FieldForm form, const char* help) {
  return {key,
          value,
          form,
          help,
          [](Item& item, std::string_view text) { return read(text, item.*kMember); },
          [](const Item& item) { return written(item.*kMember); }};
}

template <auto kMember>
constexpr Field<Vip> text(const char* key, const char* value, const char* help) {
  return field<Vip, kMember>(key, value, FieldForm::kText, help);
}
template <auto kMember>
constexpr Field<Vip> number(const char* key, const char* value, const char* help) {
  return field<Vip, kMember>(key, value, FieldForm::kNumber, help);
}
template <typename Item, auto kMember>
constexpr Field<Item> duration_of(const char* key, const char* help) {
  return {key,
          "DURATION",
          FieldForm::kText,
          help,
          [](Item& item, std::string_view words) -> Result<> {
            const auto ms = parse_duration_ms(words);
            if (!ms) return Unexpected(ms.error());
            item.*kMember = *ms;
            return {};
          },
          [](const Item& item) { return format_duration_ms(item.*kMember); }};
}
template <auto kMember>
constexpr Field<Vip> duration(const char* key, const char* help) {
  return duration_of<Vip, kMember>(key, help);
}

using Settings = LbSettings;

constexpr Field<Settings> kSettingsFields[] = {
    field<Settings, &Settings::interfaces>("interfaces", "NAME[,NAME...]", FieldForm::kText,
                                           "where packets to VIPs come in; in a file a list"),
    field<Settings, &Settings::attach>(
        "attach", "WORD", FieldForm::kText,
        "native: in the driver; generic: in the kernel, slower; auto: native, else generic"),
    field<Settings, &Settings::keep>(
        "keep", "BOOL", FieldForm::kSwitch,
        "the packet path stays on its interfaces when the process ends"),
    field<Settings, &Settings::pins>(
        "pins", "FOLDER", FieldForm::kText,
        "in a BPF file system, where the tables outlive the process; empty: they do not"),
    field<Settings, &Settings::api>("api", "PATH or H:P", FieldForm::kText,
                                    "the HTTP interface: a Unix socket or a loopback address"),
    field<Settings, &Settings::admin>("admin", "H:P", FieldForm::kText,
                                      "/metrics, /livez, /readyz over HTTP, or off"),
    field<Settings, &Settings::state_file>(
        "state_file", "FILE", FieldForm::kText,
        "remembers VIPs applied while running, until the file's own change"),
    field<Settings, &Settings::secret_file>(
        "secret_file", "FILE", FieldForm::kText,
        "the secret that agents share; else the environment's BALLAST_LB_SECRET"),
    duration_of<Settings, &Settings::interval_ms>("interval",
                                                  "between two polls of an instance's load"),
    field<Settings, &Settings::connections>("connections", "COUNT", FieldForm::kNumber,
                                            "in the table at most"),
    duration_of<Settings, &Settings::tcp_idle_ms>(
        "tcp_idle", "without a packet an open connection is forgotten"),
    duration_of<Settings, &Settings::tcp_closing_ms>("tcp_closing",
                                                     "likewise after the client's FIN or RST"),
    duration_of<Settings, &Settings::udp_idle_ms>("udp_idle", "likewise for UDP"),
    field<Settings, &Settings::log_level>("log_level", "WORD", FieldForm::kText,
                                          "debug, info, warning or error"),
};

constexpr Field<Vip> kVipFields[] = {
    text<&Vip::name>("name", "NAME", "left out: protocol, address and port"),
    text<&Vip::address>("address", "ADDRESS", "IPv4 or IPv6; no names"),
    number<&Vip::port>("port", "PORT", "0: all ports that have no VIP of their own"),
    text<&Vip::protocol>("protocol", "WORD", "tcp or udp"),
    text<&Vip::forwarding>(
        "forwarding", "WORD",
        "l2: by MAC address on the same network; ipip, gue: in a tunnel that `ballast lb decap` "
        "opens at the instance; in all three the instance answers the client itself. nat: the "
        "destination is rewritten, the way back leads through the balancer"),
    text<&Vip::scheduler>("scheduler", "WORD",
                          "awfd: by the capacity that is free; static: by weight; ecmp: all alike; "
                          "least-connections: by open connections for the weight"),
    number<&Vip::m>("m", "COUNT",
                    "awfd's steps from nothing free to most free, up to 64; 0: all alike, 1: only "
                    "who has most"),
    number<&Vip::least_share>("least_share", "SHARE",
                              "of an equal share that an instance gets however loaded, 0 to 1"),
    duration<&Vip::slow_start_ms>("slow_start",
                                  "an instance that comes up grows to its weight in this time"),
    number<&Vip::mtu>("mtu", "BYTES",
                      "largest IP packet on the way to the instances; 0: the "
                      "interface's, for tunnels"),
    text<&Vip::load>("load", "WORD",
                     "who tells an instance's load. none; agent: `ballast lb agent`, by UDP; "
                     "agent-check: HAProxy's text; http-json, prometheus: load_metric of "
                     "http://INSTANCE:load_port/load_path"),
    number<&Vip::load_port>("load_port", "PORT", "0: 4780, an agent's"),
    text<&Vip::load_path>("load_path", "PATH", "of the HTTP request"),
    text<&Vip::load_metric>("load_metric", "NAME",
                            "a path of keys, e.g. cpu.busy, or a metric, e.g. load{core=\"0\"}"),
    number<&Vip::load_full>("load_full", "NUMBER",
                            "the metric's value at which an instance has nothing free"),
    text<&Vip::health>("health", "WORD", "none; tcp: it accepts; http: it answers 2xx or 3xx"),
    number<&Vip::health_port>("health_port", "PORT", "0: where the instance serves"),
    text<&Vip::health_path>("health_path", "PATH", "of the HTTP request"),
    duration<&Vip::health_interval_ms>("health_interval", "between two checks of an instance"),
    duration<&Vip::health_timeout_ms>("health_timeout", "without an answer a check is bad"),
    number<&Vip::rise>("rise", "COUNT", "good checks in a row until a down instance is up"),
    number<&Vip::fall>("fall", "COUNT", "bad checks in a row until an instance is down"),
};

template <auto kMember>
constexpr Field<Instance> of_instance(const char* key, const char* value, FieldForm form,
                                      const char* help) {
  return field<Instance, kMember>(key, value, form, help);
}

constexpr Field<Instance> kInstanceFields[] = {
    of_instance<&Instance::name>("name", "NAME", FieldForm::kText, "left out: its address"),
    of_instance<&Instance::address>("address", "ADDRESS", FieldForm::kText,
                                    "IPv4 or IPv6; no names"),
    of_instance<&Instance::port>("port", "PORT", FieldForm::kNumber, "for nat; 0: the VIP's"),
    of_instance<&Instance::weight>("weight", "NUMBER", FieldForm::kNumber,
                                   "a factor of what the scheduler gives; 0 drains"),
    of_instance<&Instance::capacity>("capacity", "NUMBER", FieldForm::kNumber,
                                     "where the load's source does not tell it, e.g. cores"),
    of_instance<&Instance::operation>(
        "operation", "WORD", FieldForm::kText,
        "up; drain: nothing new, what is open stays; maintenance: out at once, what is open is "
        "reset"),
};

}  // namespace

std::span<const Field<LbSettings>> settings_fields() { return kSettingsFields; }
std::span<const Field<Vip>> vip_fields() { return kVipFields; }
std::span<const Field<Instance>> instance_fields() { return kInstanceFields; }

}  // namespace ballast::model
