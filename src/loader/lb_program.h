// SPDX-License-Identifier: Apache-2.0
// The load balancer's packet path (bpf/lb/lb.bpf.c) and the instance's (bpf/lb/decap.bpf.c),
// loaded, and their maps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "loader/map_view.h"
#include "wire/lb.h"
#include "wire/ring.h"
#include "wire/tunnel.h"

struct LbSkeleton;
struct DecapSkeleton;

namespace ballast::loader {

// What is fixed when the program is loaded.
struct LbSettings {
  uint64_t hash_seed = 0;  // secret, or clients can pick their instance; equal on all balancers
  uint32_t connections = BL_CONNECTIONS;
  uint32_t newcomer_sets = BL_NEWCOMER_SETS;  // rounded down to a power of two
  uint32_t fragments = BL_FRAGMENTS;
  uint32_t errors_per_second = BL_ERRORS_PER_SECOND;
  bool echo_is_answered = true;
  // Folder of a BPF file system where the maps live on by their names; empty: they end with the
  // process. What is there already is taken over.
  std::string pins = {};
};

class LbProgram {
 public:
  // kSystem where the kernel refuses, with its errno: EPERM without the right to load programs.
  // kState where pinned maps are of another size or version: remove_pins() gives them up.
  static Result<LbProgram> load(const LbSettings& settings);

  int fd() const;

  MapView<bl_vip_key, bl_vip> vips() const;
  MapView<uint32_t, bl_dispatch_table> dispatch_tables() const;
  MapView<uint32_t, bl_coupling> couplings() const;
  MapView<uint32_t, bl_ring_page> ring_pages() const;
  MapView<uint32_t, bl_instance> instances() const;
  MapView<bl_vip_key, bl_nat_source> nat_sources() const;
  MapView<uint32_t, bl_owner> owners() const;
  MapView<uint32_t, bl_settings> settings() const;  // one entry
  int newcomers_fd() const;
  int captured_fd() const;  // of map "captured": capture.h reads it
  MapView<uint32_t, uint64_t> seed() const;
  MapView<bl_flow_key, bl_connection> connections() const;
  // The instance of a flow of which one packet was seen.
  Result<std::optional<uint32_t>> newcomer(const bl_flow_key& flow) const;
  // Deletes it, if it is there, and counts it off at its set of newcomers.
  Result<bool> remove_connection(const bl_flow_key& flow) const;
  PerCpuView<uint64_t> counters() const;  // by enum bl_counter
  PerCpuView<bl_traffic> instance_counters() const;

 private:
  struct Destroy {
    void operator()(LbSkeleton* skeleton) const;
  };
  // Map "newcomers" as memory.
  struct Sets {
    bl_newcomer_set* first = nullptr;
    uint32_t count = 0;
    Sets() = default;
    Sets(Sets&& other) noexcept
        : first(std::exchange(other.first, nullptr)), count(std::exchange(other.count, 0)) {}
    Sets& operator=(Sets&& other) noexcept {
      std::swap(first, other.first);
      std::swap(count, other.count);
      return *this;
    }
    ~Sets();
  };
  explicit LbProgram(LbSkeleton* skeleton) : skeleton_(skeleton) {}
  Result<> map_newcomers();

  std::unique_ptr<LbSkeleton, Destroy> skeleton_;
  Sets sets_;
};

class DecapProgram {
 public:
  static Result<DecapProgram> load();

  int fd() const;

  MapView<bl_balancer_key, uint8_t> balancers() const;
  MapView<bl_balancer_key, bl_peer> peers() const;
  PerCpuView<uint64_t> counters() const;  // by enum bl_decap_counter

 private:
  struct Destroy {
    void operator()(DecapSkeleton* skeleton) const;
  };
  explicit DecapProgram(DecapSkeleton* skeleton) : skeleton_(skeleton) {}

  std::unique_ptr<DecapSkeleton, Destroy> skeleton_;
};

// Names and explanations of what is counted, by enum bl_counter.
struct CounterName {
  const char* name;
  const char* words;
  bool is_drop;
};
const std::vector<CounterName>& counter_names();
// Likewise by enum bl_decap_counter.
const std::vector<CounterName>& decap_counter_names();

}  // namespace ballast::loader
