// SPDX-License-Identifier: Apache-2.0
#include "lb/tables.h"

#include <netinet/in.h>

#include <algorithm>
#include <set>
#include <string>

#include "balance/dispatch_table.h"
#include "balance/hash.h"

namespace ballast::lb {
namespace {

bl_vip_key address_of(const bl_vip_key& vip) {
  bl_vip_key key{};
  key.address = vip.address;
  key.family = vip.family;
  return key;
}

bool same(const bl_instance& a, const bl_instance& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

bool same(const std::optional<bl_vip_key>& a, const std::optional<bl_vip_key>& b) {
  return a && b ? std::memcmp(&*a, &*b, sizeof(*a)) == 0 : !a && !b;
}

// From where an instance's answers come, if they are to be translated.
std::optional<bl_vip_key> source_of(const bl_instance& instance, const bl_owner& owner) {
  if (instance.state == BL_INSTANCE_ABSENT || instance.method != BL_METHOD_NAT) return std::nullopt;
  bl_vip_key source{};
  source.address = owner.address;
  source.port_be = owner.port_be != 0 ? owner.port_be : owner.vip.port_be;
  source.protocol = owner.vip.protocol;
  source.family = owner.family;
  return source;
}

Unexpected no_instance(uint32_t index) {
  return fail(ErrorCode::kInvalid, "there is no instance " + std::to_string(index));
}

}  // namespace

size_t Writes::size() const {
  return owners.size() + instances.size() + ring_pages.size() + couplings.size() + tables.size() +
         nat_sources.size() + vips.size() + removed.size() + gone.size() + nat_removed.size();
}

Result<bl_dispatch_table> dispatch_table_of(std::span<const Share> shares) {
  bl_dispatch_table table{};
  std::vector<uint32_t> weights;
  std::vector<uint32_t> indices;
  std::set<uint32_t> seen;
  for (const Share& share : shares) {
    if (!seen.insert(share.instance).second)
      return fail(ErrorCode::kInvalid,
                  "instance " + std::to_string(share.instance) + " is named twice");
    if (share.weight > balance::DispatchTable::kMostWeight)
      return fail(ErrorCode::kInvalid, "weight " + std::to_string(share.weight) + " is above " +
                                           std::to_string(balance::DispatchTable::kMostWeight));
    if (share.weight == 0) continue;
    weights.push_back(share.weight);
    indices.push_back(share.instance);
  }
  if (weights.size() > BL_MOST_MEMBERS)
    return fail(ErrorCode::kLimit, std::to_string(weights.size()) +
                                       " instances with a weight; a VIP may have " +
                                       std::to_string(BL_MOST_MEMBERS));
  if (weights.empty()) return table;
  const balance::DispatchTable dispatch(weights);
  if (dispatch.classes().size() > BL_MOST_CLASSES)
    return fail(ErrorCode::kLimit, std::to_string(dispatch.classes().size()) +
                                       " different weights; a VIP may have " +
                                       std::to_string(BL_MOST_CLASSES));
  table.total = dispatch.total();
  table.class_count = static_cast<uint32_t>(dispatch.classes().size());
  std::ranges::copy(dispatch.classes(), table.classes);
  std::ranges::transform(dispatch.members(), table.members,
                         [&](uint16_t member) { return indices[member]; });
  return table;
}

void Tables::restore(const Former& former) {
  for (const auto& [index, owner] : former.owners) {
    if (index >= instances_.size()) instances_.resize(index + 1);
    instances_[index].owner = owner;
    instances_[index].is_taken = true;
  }
  for (const auto& [index, instance] : former.instances) {
    if (index >= instances_.size()) continue;
    instances_[index].instance = instance;
    claim_source(index);
  }
  for (uint32_t i = 0; i < instances_.size(); ++i) {
    if (!instances_[i].is_taken) free_instances_.push_back(i);
  }
  ring_pages_.occupy(former.ring_pages);
  has_ring_.assign(BL_MOST_TABLES, true);
  std::set<uint32_t> used;
  for (const auto& [key, known] : former.vips) {
    if (key.protocol == 0) continue;
    Vip vip{.index = known.index, .table = known.table, .is_known = true};
    vips_.emplace(key, std::move(vip));
    ++addresses_[address_of(key)];
    used.insert(known.index);
    vips_used_ = std::max(vips_used_, known.index + 1);
  }
  for (uint32_t i = 0; i < vips_used_; ++i) {
    if (!used.contains(i)) free_vips_.push_back(i);
  }
  for (const auto& [key, known] : former.vips) {
    if (key.protocol == 0 && !addresses_.contains(key)) removed_.push_back(key);
  }
  // One that is missing: its process ended between two writes.
  for (const auto& [key, vip] : vips_) {
    const bl_vip_key address = address_of(key);
    const bool is_there = std::ranges::any_of(former.vips, [&](const auto& each) {
      return std::memcmp(&each.first, &address, sizeof(address)) == 0;
    });
    if (!is_there) new_addresses_[address] = {vip.index, 0};
  }
}

std::vector<bl_vip_key> Tables::vips() const {
  std::vector<bl_vip_key> keys;
  for (const auto& [key, vip] : vips_) keys.push_back(key);
  return keys;
}

Result<uint32_t> Tables::add_instance(const bl_instance& instance, const bl_owner& owner) {
  uint32_t index = static_cast<uint32_t>(instances_.size());
  if (index < BL_MOST_INSTANCES) {
    instances_.emplace_back();
  } else if (!free_instances_.empty()) {
    index = free_instances_.front();
    free_instances_.pop_front();
  } else {
    return fail(ErrorCode::kLimit,
                "more than " + std::to_string(BL_MOST_INSTANCES) + " instances in all");
  }
  instances_[index] = {.instance = instance,
                       .owner = owner,
                       .is_taken = true,
                       .is_dirty = true,
                       .is_owner_dirty = true};
  claim_source(index);
  return index;
}

bool Tables::is_there(uint32_t index) const {
  return index < instances_.size() && instances_[index].is_taken &&
         instances_[index].instance.state != BL_INSTANCE_ABSENT;
}

bool Tables::is_named(uint32_t index) const {
  for (const auto& [key, vip] : vips_) {
    for (const Share& share : vip.wanted) {
      if (share.instance == index) return true;
    }
  }
  return false;
}

Result<> Tables::set_instance(uint32_t index, const bl_instance& instance) {
  if (!is_there(index)) return no_instance(index);
  if (instance.state == BL_INSTANCE_ABSENT)
    return fail(ErrorCode::kInvalid, "an instance is taken away by remove_instance()");
  if (!same(instances_[index].instance, instance)) {
    instances_[index].instance = instance;
    instances_[index].is_dirty = true;
  }
  claim_source(index);
  return {};
}

Result<> Tables::remove_instance(uint32_t index) {
  if (!is_there(index)) return no_instance(index);
  if (is_named(index))
    return fail(ErrorCode::kState, "a VIP still names instance " + std::to_string(index));
  instances_[index].instance = bl_instance{};
  instances_[index].is_dirty = true;
  claim_source(index);
  return {};
}

void Tables::release(uint32_t index) {
  if (index >= instances_.size() || !instances_[index].is_taken || is_there(index)) return;
  instances_[index].is_taken = false;
  instances_[index].owner = bl_owner{};
  instances_[index].is_owner_dirty = true;
  free_instances_.push_back(index);
}

Result<> Tables::check_shares(std::span<const Share> shares) const {
  for (const Share& share : shares) {
    if (!is_there(share.instance)) return no_instance(share.instance);
  }
  const auto table = dispatch_table_of(shares);
  return table ? Result<>() : Unexpected(table.error());
}

Result<> Tables::set_vip(const bl_vip_key& key, std::span<const Share> shares) {
  if (key.protocol != IPPROTO_TCP && key.protocol != IPPROTO_UDP)
    return fail(ErrorCode::kInvalid,
                "protocol " + std::to_string(key.protocol) + ": a VIP is of TCP or UDP");
  if (key.family != BL_FAMILY_IPV4 && key.family != BL_FAMILY_IPV6)
    return fail(ErrorCode::kInvalid, "a VIP's address is of IPv4 or IPv6");
  const auto known = vips_.find(key);
  // Mostly so; instances that are named stay there.
  if (known != vips_.end() && std::ranges::equal(known->second.wanted, shares)) return {};
  if (const Result<> checked = check_shares(shares); !checked) return checked;
  if (known != vips_.end()) {
    known->second.wanted.assign(shares.begin(), shares.end());
    return {};
  }
  Vip vip;
  if (vips_used_ < BL_MOST_VIPS) {
    vip.index = vips_used_++;
  } else if (!free_vips_.empty()) {
    vip.index = free_vips_.front();
    free_vips_.pop_front();
  } else {
    return fail(ErrorCode::kLimit, "more than " + std::to_string(BL_MOST_VIPS) + " VIPs");
  }
  vip.table = 2 * vip.index + 1;  // the first write goes to the other one
  vip.wanted.assign(shares.begin(), shares.end());
  if (++addresses_[address_of(key)] == 1) new_addresses_[address_of(key)] = {vip.index, 0};
  vips_.emplace(key, std::move(vip));
  return {};
}

bool Tables::remove_vip(const bl_vip_key& key) {
  const auto known = vips_.find(key);
  if (known == vips_.end()) return false;
  free_vips_.push_back(known->second.index);
  if (known->second.is_known) removed_.push_back(key);
  known->second.ring.leave(ring_pages_);
  vips_.erase(known);
  const bl_vip_key address = address_of(key);
  if (--addresses_[address] > 0) return true;
  addresses_.erase(address);
  if (new_addresses_.erase(address) == 0) removed_.push_back(address);
  return true;
}

std::optional<uint32_t> Tables::vip_index(const bl_vip_key& key) const {
  const auto known = vips_.find(key);
  if (known == vips_.end()) return std::nullopt;
  return known->second.index;
}

void Tables::write_coupling(const bl_vip_key& key, Vip& vip, Writes& writes) {
  std::vector<RingShare> shares;
  for (const Share& share : vip.wanted) {
    bl_owner owner = instances_[share.instance].owner;
    owner.vip = {};  // the ring's seed
    const uint64_t name = balance::key_hash({reinterpret_cast<const char*>(&owner), sizeof(owner)});
    shares.push_back({share.instance, share.weight, {name, share.ring, share.gives_way}});
  }
  const bl_coupling coupling = vip.ring.next(key, shares, ring_pages_, writes.ring_pages);
  const bool has_ring = coupling.ring_size > 0;
  if (!has_ring && !has_ring_[vip.table]) return;
  has_ring_[vip.table] = has_ring;
  writes.couplings.emplace_back(vip.table, coupling);
}

void Tables::write_table(const bl_vip_key& key, Vip& vip, Writes& writes) {
  if (vip.is_written && vip.wanted == vip.written) return;
  vip.table ^= 1;
  vip.is_written = true;
  vip.is_known = true;
  vip.written = vip.wanted;
  write_coupling(key, vip, writes);
  writes.tables.emplace_back(vip.table, *dispatch_table_of(vip.wanted));
  writes.vips.push_back({key, {vip.index, vip.table}});
}

void Tables::claim_source(uint32_t index) {
  Slot& slot = instances_[index];
  const auto source = source_of(slot.instance, slot.owner);
  if (slot.source) {
    bl_vip_key place = *slot.source;
    place.family &= static_cast<uint8_t>(~BL_FORMER_SOURCE);
    if (source && same(place, *source)) return;
    const auto held = sources_.find(*slot.source);
    if (!slot.has_lost_source && held != sources_.end() && held->second == index) {
      changed_sources_.insert(*slot.source);
      sources_.erase(held);
    }
  }
  slot.source = source;
  slot.has_lost_source = false;
  if (!source) return;
  const auto held = sources_.find(*source);
  if (held != sources_.end()) give_way(held->second);
  sources_[*source] = index;
  changed_sources_.insert(*source);
}

void Tables::give_way(uint32_t index) {
  Slot& slot = instances_[index];
  bl_vip_key place = *slot.source;
  place.family |= BL_FORMER_SOURCE;
  const auto held = sources_.find(place);
  if (held != sources_.end()) instances_[held->second].has_lost_source = true;
  slot.source = place;
  sources_[place] = index;
  changed_sources_.insert(place);
}

Writes Tables::take_writes() {
  Writes writes;
  ring_pages_.next_round();
  for (uint32_t i = 0; i < instances_.size(); ++i) {
    Slot& slot = instances_[i];
    if (std::exchange(slot.is_owner_dirty, false)) writes.owners.emplace_back(i, slot.owner);
    if (!std::exchange(slot.is_dirty, false)) continue;
    const bool is_gone = slot.instance.state == BL_INSTANCE_ABSENT;
    (is_gone ? writes.gone : writes.instances).emplace_back(i, slot.instance);
  }
  for (auto& [key, vip] : vips_) write_table(key, vip, writes);
  for (const auto& [key, value] : new_addresses_) writes.vips.push_back({key, value});
  new_addresses_.clear();
  for (const bl_vip_key& key : changed_sources_) {
    const auto held = sources_.find(key);
    if (held == sources_.end()) {
      writes.nat_removed.push_back(key);
      continue;
    }
    const bl_vip_key& vip = instances_[held->second].owner.vip;
    writes.nat_sources.push_back({key, {vip.address, held->second, vip.port_be, 0}});
  }
  changed_sources_.clear();
  // One that was taken away and came back is there.
  const auto is_back = [this](const bl_vip_key& key) {
    return vips_.contains(key) || addresses_.contains(key);
  };
  std::erase_if(removed_, is_back);
  writes.removed = std::exchange(removed_, {});
  return writes;
}

}  // namespace ballast::lb
