// SPDX-License-Identifier: Apache-2.0
#include "lb/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "model/lb_fields.h"

namespace ballast::lb {
namespace {

using model::Instance;
using model::Vip;

bool is_same(const Vip& a, const Vip& b) {
  return a.address == b.address && a.port == b.port && a.protocol == b.protocol;
}
bool is_same(const Instance& a, const Instance& b) {
  return a.address == b.address && a.port == b.port;
}

template <typename Item>
const Item* find_same(const std::vector<Item>& items, const Item& wanted) {
  const auto found =
      std::ranges::find_if(items, [&](const Item& each) { return is_same(each, wanted); });
  return found == items.end() ? nullptr : &*found;
}

// A line "what: key before -> after" for every field that differs.
template <typename Item>
void compare_fields(std::span<const model::Field<Item>> fields, const std::string& what,
                    const Item& before, const Item& after, std::vector<std::string>& lines) {
  for (const auto& field : fields) {
    const std::string was = field.get(before);
    const std::string is = field.get(after);
    if (was != is) lines.push_back(fmt::format("{}: {} {} -> {}", what, field.key, was, is));
  }
}

std::string place_of(const Vip& vip) {
  const std::string host =
      vip.address.find(':') == std::string::npos ? vip.address : "[" + vip.address + "]";
  return fmt::format("{}/{}:{}", model::word_of(vip.protocol), host, vip.port);
}

std::string words_of(const Instance& instance) {
  if (instance.name == instance.address) return instance.name;
  return instance.port == 0
             ? fmt::format("{} ({})", instance.name, instance.address)
             : fmt::format("{} ({} port {})", instance.name, instance.address, instance.port);
}

void compare_instances(const Vip& before, const Vip& after, std::vector<std::string>& lines) {
  const std::string what = "vip " + after.name;
  for (const Instance& instance : before.instances) {
    if (find_same(after.instances, instance) == nullptr)
      lines.push_back(what + ": - instance " + words_of(instance));
  }
  for (const Instance& instance : after.instances) {
    const Instance* former = find_same(before.instances, instance);
    if (former == nullptr) {
      lines.push_back(what + ": + instance " + words_of(instance));
      continue;
    }
    compare_fields(model::instance_fields(), what + ": instance " + instance.name, *former,
                   instance, lines);
  }
}

}  // namespace

std::vector<std::string> changes(const std::vector<Vip>& before, const std::vector<Vip>& after) {
  std::vector<std::string> lines;
  for (const Vip& vip : before) {
    if (find_same(after, vip) == nullptr)
      lines.push_back(fmt::format("- vip {} ({})", vip.name, place_of(vip)));
  }
  for (const Vip& vip : after) {
    if (const Vip* former = find_same(before, vip)) {
      compare_fields(model::vip_fields(), "vip " + vip.name, *former, vip, lines);
      compare_instances(*former, vip, lines);
      continue;
    }
    lines.push_back(fmt::format("+ vip {} ({}, {}, {})", vip.name, place_of(vip),
                                model::word_of(vip.forwarding), model::word_of(vip.scheduler)));
    compare_instances({}, vip, lines);
  }
  return lines;
}

}  // namespace ballast::lb
