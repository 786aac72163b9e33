// SPDX-License-Identifier: Apache-2.0
// Which instance of which VIP has which index in the packet path, over changes of configuration and
// over restarts. One that is taken out of the configuration keeps its index, and its open
// connections their instance, until the last of them has ended.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lb/health.h"
#include "lb/load_source.h"
#include "lb/neighbours.h"
#include "lb/tables.h"
#include "lb/weights.h"
#include "model/lb.h"

namespace ballast::lb {

bl_vip_key key_of(const model::Vip& vip);
std::string text_of(const bl_vip_key& key);  // "tcp/192.0.2.1:80"
bl_owner owner_of(const model::Vip& vip, const model::Instance& instance);

struct Asked {
  LoadTarget load;         // if the VIP has a source
  HealthTarget health;     // likewise
  std::string load_words;  // empty: nothing is asked; equal for equal targets
  std::string health_words;
};
Result<Asked> asked_of(const model::Vip& vip, const model::Instance& instance);

struct OwnerLess {
  bool operator()(const bl_owner& a, const bl_owner& b) const {
    return std::memcmp(&a, &b, sizeof(a)) < 0;
  }
};

struct Member {
  uint32_t index = 0;
  bl_owner owner{};
  HostAddress address{};
  std::string name;
  std::string vip;  // its name; empty: of a former process, and not configured by this one
  model::Instance config;
  bl_instance entry{};             // as the packet path has it
  bl_instance next{};              // as it is to be after this round
  bool is_leaving = false;         // not configured any more
  bool was_up = false;             // when the process started
  uint64_t left_in_pass = 0;       // of the ager
  std::optional<uint32_t> load;    // in LoadSources
  std::string load_asked;          // what is asked there, in words
  std::optional<uint32_t> health;  // in HealthChecks
  std::string health_asked;
  // The VIP's name, or for one of a former process its address.
  std::string vip_text() const { return vip.empty() ? text_of(owner.vip) : vip; }

  bool is_up = false;  // healthy, not in maintenance, with a next hop
  Nanos up_since = 0;  // 0: since before this process
  Weighed weighed;
};

// A configured VIP and its instances, by index.
struct Service {
  model::Vip config;
  bl_vip_key key{};
  std::vector<uint32_t> members;  // as config.instances
  Weights weights;
};

}  // namespace ballast::lb
