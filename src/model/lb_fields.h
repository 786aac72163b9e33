// SPDX-License-Identifier: Apache-2.0
// Every field of the settings, of a VIP and of an instance, once: its key in lb.toml and in JSON,
// its words, how its text is read and written. Files, options, the environment, the HTTP interface,
// differences and the reference page use it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/lb.h"

namespace ballast::model {

// How files write the value: a number or a switch without quotes, anything else in them.
enum class FieldForm : uint8_t { kText, kNumber, kSwitch };

template <typename Item>
struct Field {
  const char* key;
  const char* value;  // what it is called, e.g. "DURATION"
  FieldForm form;
  const char* help;
  Result<> (*set)(Item&, std::string_view text);
  std::string (*get)(const Item&);
};

std::span<const Field<LbSettings>> settings_fields();
std::span<const Field<Vip>> vip_fields();
std::span<const Field<Instance>> instance_fields();

}  // namespace ballast::model
