// SPDX-License-Identifier: Apache-2.0
// The control plane: holds the VIPs, asks instances for load and health, and writes the packet
// path's maps when something changed. On one loop; no packet waits for it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lb/ager.h"
#include "lb/attachments.h"
#include "lb/health.h"
#include "lb/load_source.h"
#include "lb/members.h"
#include "lb/neighbours.h"
#include "lb/tables.h"
#include "lb/traffic.h"
#include "loader/lb_program.h"
#include "model/lb.h"

namespace ballast::lb {

// What the control plane itself counts.
struct ControlCounts {
  uint64_t rounds = 0;        // of weights
  uint64_t map_writes = 0;    // entries written
  uint64_t write_errors = 0;  // tried again in the next round
};

AttachOptions attach_options(const model::LbSettings& settings);

class Balancer {
 public:
  // Loads the packet path, or goes on with the maps that are pinned. Those of another size or
  // version are given up with a warning.
  static Result<std::unique_ptr<Balancer>> create(io::Loop& loop,
                                                  const model::LbSettings& settings);
  ~Balancer();

  // The VIPs from now on, all of them; gives what changes, in words. kInvalid and kLimit leave
  // everything as it is. Instances left out drain, and go when they are empty.
  Result<std::vector<std::string>> set_vips(std::vector<model::Vip> vips, bool is_dry_run = false);
  const std::vector<model::Vip>& vips() const { return vips_; }
  uint64_t generation() const { return generation_; }  // of vips(), counts their changes

  // Begins to take packets. After the first set_vips().
  Result<> attach();

  const std::vector<Attached>& attached() const { return attached_; }
  const std::vector<Service>& services() const { return services_; }
  const std::map<uint32_t, Member>& members() const { return members_; }
  const ControlCounts& counts() const { return counts_; }
  const loader::LbProgram& program() const { return program_; }
  const Ager& ager() const { return ager_; }
  const LoadSources& loads() const { return *loads_; }
  const HealthChecks& health() const { return *health_; }
  const Traffic& traffic() const { return traffic_; }
  const Neighbours& neighbours() const { return *neighbours_; }
  const model::LbSettings& settings() const { return settings_; }
  uint64_t hash_seed() const { return hash_seed_; }

 private:
  Balancer(io::Loop& loop, const model::LbSettings& settings, loader::LbProgram program,
           uint64_t hash_seed);
  Result<> start();
  Result<> restore();
  Result<> check(const std::vector<model::Vip>& vips);
  Result<Service> make_service(const model::Vip& vip);
  Result<uint32_t> member_for(const model::Vip& vip, const model::Instance& instance);
  Result<> subscribe(Member& member, const model::Vip& vip);
  void leave(Member& member);
  void release_left();

  void round();  // every interval
  void react();  // to another configuration, health or neighbour
  void weigh_all();
  void react_soon();  // as many may change at once
  void look_at(const Service& service, Nanos now);
  void say_state(const Service& service, const Member& member, bool is_healthy, bool is_up) const;
  void weigh(Service& service, Nanos now);
  void look_at_leaving();
  bl_instance entry_of(const Member& member, const model::Vip& vip) const;
  void write();
  void age(Nanos now);
  void sample(Nanos now);

  io::Loop& loop_;
  model::LbSettings settings_;
  uint64_t hash_seed_;
  io::Fd lock_;  // of the pins
  loader::LbProgram program_;
  Tables tables_;
  Ager ager_;
  Traffic traffic_;
  Nanos sampled_at_ = 0;
  std::unique_ptr<Neighbours> neighbours_;
  std::unique_ptr<LoadSources> loads_;
  std::unique_ptr<HealthChecks> health_;
  std::vector<model::Vip> vips_;
  uint64_t generation_ = 0;
  std::vector<Service> services_;
  std::map<uint32_t, Member> members_;  // by index
  std::map<bl_owner, uint32_t, OwnerLess> by_owner_;
  std::vector<Writes> unwritten_;
  Nanos written_at_ = 0;
  std::vector<Attached> attached_;
  ControlCounts counts_;
  Nanos next_round_ = 0;
  Nanos next_pass_ = 0;  // of ager_
  io::Loop::Timer round_timer_{};
  io::Loop::Timer write_timer_{};
  io::Loop::Timer react_timer_{};
};

}  // namespace ballast::lb
