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

template <typename Word>
  requires std::is_enum_v<Word>
Result<> read(std::string_view text, Word& into) {
  return parse_word(text, into);
}

std::string written(const std::string& value) { return value; }
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
template <auto kMember>
constexpr Field<Vip> duration(const char* key, const char* help) {
  return {key,
          "DURATION",
          FieldForm::kText,
          help,
          [](Vip& vip, std::string_view words) -> Result<> {
            const auto ms = parse_duration_ms(words);
            if (!ms) return Unexpected(ms.error());
            vip.*kMember = *ms;
            return {};
          },
          [](const Vip& vip) { return format_duration_ms(vip.*kMember); }};
}

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

std::span<const Field<Vip>> vip_fields() { return kVipFields; }
std::span<const Field<Instance>> instance_fields() { return kInstanceFields; }

}  // namespace ballast::model
