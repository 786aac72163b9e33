// SPDX-License-Identifier: Apache-2.0
#include "lb/balancer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/file.h>

#include <algorithm>
#include <set>
#include <utility>

#include "balance/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "lb/apply.h"
#include "lb/changes.h"
#include "lb/warnings.h"
#include "lb/weights.h"
#include "loader/pins.h"

namespace ballast::lb {
namespace {

constexpr uint64_t kHashSeed = 0x5b07;  // sets the hash of flows apart from other uses

AgeLimits age_limits(const model::LbSettings& settings) {
  const auto ns = [](uint32_t ms) { return uint64_t{ms} * 1'000'000; };
  return {ns(settings.tcp_idle_ms), ns(settings.tcp_closing_ms), ns(settings.udp_idle_ms)};
}

// Equal on all balancers that share a secret; else that of the process before, or a new one.
uint64_t hash_seed_of(const model::LbSettings& settings) {
  if (!settings.secret.empty()) return balance::mix(balance::key_hash(settings.secret), kHashSeed);
  const auto pinned = settings.pins.empty() ? std::nullopt : loader::pinned_seed(settings.pins);
  return pinned ? *pinned : system_seed();
}

// Held as long as this process: two would write the same tables.
Result<io::Fd> lock_pins(const std::string& pins) {
  if (pins.empty()) return io::Fd();
  const std::string path = pins + "/lock";
  if (const Result<> made = loader::make_pins(path); !made) return Unexpected(made.error());
  io::Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return fail_errno("open " + path, errno);
  if (flock(folder.get(), LOCK_EX | LOCK_NB) == 0) return folder;
  return fail(ErrorCode::kSystem, "another ballast lb run uses " + pins);
}

Result<loader::LbProgram> load(const model::LbSettings& settings, uint64_t hash_seed) {
  loader::LbSettings wanted;
  wanted.hash_seed = hash_seed;
  wanted.connections = settings.connections;
  wanted.pins = settings.pins;
  auto program = loader::LbProgram::load(wanted);
  if (program || program.error().code != ErrorCode::kState) return program;
  log_warning("{}; begins with empty tables", program.error().message);
  if (const Result<> removed = loader::remove_pins(settings.pins); !removed)
    return Unexpected(removed.error());
  return loader::LbProgram::load(wanted);
}

}  // namespace

AttachOptions attach_options(const model::LbSettings& settings) {
  return {settings.interfaces, settings.attach, settings.pins, settings.keep};
}

Balancer::Balancer(io::Loop& loop, const model::LbSettings& settings, loader::LbProgram program,
                   uint64_t hash_seed)
    : loop_(loop),
      settings_(settings),
      hash_seed_(hash_seed),
      program_(std::move(program)),
      ager_(program_, age_limits(settings)),
      traffic_(program_) {}

Balancer::~Balancer() {
  loop_.cancel(round_timer_);
  loop_.cancel(write_timer_);
  loop_.cancel(react_timer_);
}

Result<std::unique_ptr<Balancer>> Balancer::create(io::Loop& loop,
                                                   const model::LbSettings& settings) {
  auto lock = lock_pins(settings.pins);
  if (!lock) return Unexpected(lock.error());
  const uint64_t hash_seed = hash_seed_of(settings);
  auto program = load(settings, hash_seed);
  if (!program) return Unexpected(program.error());
  std::unique_ptr<Balancer> made(new Balancer(loop, settings, std::move(*program), hash_seed));
  made->lock_ = std::move(*lock);
  if (const Result<> started = made->start(); !started) return Unexpected(started.error());
  return made;
}

Result<> Balancer::start() {
  auto neighbours = Neighbours::create(loop_, [this] { react_soon(); });
  if (!neighbours) return Unexpected(neighbours.error());
  neighbours_ = std::move(*neighbours);
  auto loads = LoadSources::create(
      loop_, {.interval = Nanos{settings_.interval_ms} * kMillisecond, .secret = settings_.secret});
  if (!loads) return Unexpected(loads.error());
  loads_ = std::move(*loads);
  health_ = HealthChecks::create(loop_, [this](uint32_t, const HealthState&) { react_soon(); });
  if (const Result<> restored = restore(); !restored) return restored;
  // Not before the first set_vips(): until then nobody says what restored VIPs are to have.
  next_round_ = now_ns();
  round_timer_ = loop_.after(0, [this] { round(); });
  return {};
}

// Everything the maps know is leaving until a configuration names it.
Result<> Balancer::restore() {
  const auto former = read_former(program_);
  if (!former) return Unexpected(former.error());
  tables_.restore(*former);
  for (size_t i = 0; i < former->owners.size(); ++i) {
    const auto& [index, owner] = former->owners[i];
    Member member;
    member.index = index;
    member.owner = owner;
    member.entry = former->instances[i].second;
    member.address.family = owner.family;
    std::ranges::copy(owner.address.word, member.address.word.begin());
    member.name = to_string(member.address);
    member.is_leaving = true;
    member.was_up = member.entry.state == BL_INSTANCE_UP;
    neighbours_->watch(member.address);
    by_owner_.emplace(owner, index);
    members_.emplace(index, std::move(member));
  }
  return {};
}

// Everything that can be refused is, before anything has changed.
Result<> Balancer::check(const std::vector<model::Vip>& vips) {
  if (const auto problem = model::find_problem(vips, true))
    return fail(ErrorCode::kInvalid, problem->key + ": " + problem->message);
  size_t fresh = 0;
  for (const model::Vip& vip : vips) {
    for (const model::Instance& instance : vip.instances) {
      fresh += by_owner_.contains(owner_of(vip, instance)) ? 0 : 1;
      const auto asked = asked_of(vip, instance);
      if (!asked) return Unexpected(asked.error());
      if (const Result<> good = check_target(asked->health); !asked->health_words.empty() && !good)
        return fail(ErrorCode::kInvalid,
                    fmt::format("vip {}: health: {}", vip.name, good.error().message));
      if (asked->load_words.empty()) continue;
      const auto added = loads_->add(asked->load);
      if (!added)
        return fail(ErrorCode::kInvalid,
                    fmt::format("vip {}: load: {}", vip.name, added.error().message));
      loads_->remove(*added);
    }
  }
  if (members_.size() + fresh <= BL_MOST_INSTANCES) return {};
  return fail(ErrorCode::kLimit,
              fmt::format("{} instances, with those that still have connections; there may be {}",
                          members_.size() + fresh, int{BL_MOST_INSTANCES}));
}

Result<std::vector<std::string>> Balancer::set_vips(std::vector<model::Vip> vips, bool is_dry_run) {
  model::complete(vips);
  if (const Result<> checked = check(vips); !checked) return Unexpected(checked.error());
  std::vector<std::string> lines = changes(vips_, vips);
  if (is_dry_run) return lines;

  std::set<bl_vip_key, KeyLess> keys;
  std::set<bl_owner, OwnerLess> named;
  for (const model::Vip& vip : vips) {
    keys.insert(key_of(vip));
    for (const model::Instance& instance : vip.instances) named.insert(owner_of(vip, instance));
  }
  for (const bl_vip_key& key : tables_.vips()) {
    if (!keys.contains(key)) tables_.remove_vip(key);
  }
  std::vector<Service> services;
  for (const model::Vip& vip : vips) {
    Result<Service> service = make_service(vip);
    if (!service) return Unexpected(service.error());
    services.push_back(std::move(*service));
  }
  services_ = std::move(services);
  for (auto& [index, member] : members_) {
    if (!named.contains(member.owner) && !member.is_leaving) leave(member);
  }
  if (!lines.empty()) ++generation_;
  vips_ = std::move(vips);
  react();
  if (!lines.empty())
    for (const std::string& warning : warnings(vips_, *neighbours_)) log_warning("{}", warning);
  return lines;
}

Result<Service> Balancer::make_service(const model::Vip& vip) {
  Service service;
  service.config = vip;
  service.key = key_of(vip);
  for (Service& former : services_) {
    if (std::memcmp(&former.key, &service.key, sizeof(service.key)) == 0)
      service.weights = std::move(former.weights);
  }
  for (const model::Instance& instance : vip.instances) {
    const Result<uint32_t> index = member_for(vip, instance);
    if (!index) return Unexpected(index.error());
    service.members.push_back(*index);
  }
  return service;
}

Result<uint32_t> Balancer::member_for(const model::Vip& vip, const model::Instance& instance) {
  const bl_owner owner = owner_of(vip, instance);
  const auto known = by_owner_.find(owner);
  uint32_t index = 0;
  if (known != by_owner_.end()) {
    index = known->second;
  } else {
    bl_instance entry{};
    entry.state = BL_INSTANCE_UP;
    const Result<uint32_t> added = tables_.add_instance(entry, owner);
    if (!added) return added;
    index = *added;
    if (const Result<> begun = traffic_.begin(index); !begun) return Unexpected(begun.error());
    by_owner_.emplace(owner, index);
    Member& added_member = members_[index];
    added_member.index = index;
    added_member.owner = owner;
    added_member.entry = entry;
    added_member.address = *parse_address(instance.address);
    neighbours_->watch(added_member.address);
  }
  Member& member = members_[index];
  member.name = instance.name;
  member.vip = vip.name;
  member.config = instance;
  member.is_leaving = false;
  if (const Result<> subscribed = subscribe(member, vip); !subscribed)
    return Unexpected(subscribed.error());
  return index;
}

// Asks for the instance's load and health what the configuration says now.
Result<> Balancer::subscribe(Member& member, const model::Vip& vip) {
  const auto asked = asked_of(vip, member.config);
  if (!asked) return Unexpected(asked.error());
  if (asked->load_words != member.load_asked) {
    if (member.load) loads_->remove(*member.load);
    member.load.reset();
    member.load_asked = asked->load_words;
    if (!asked->load_words.empty()) {
      const auto added = loads_->add(asked->load);
      if (!added) return Unexpected(added.error());
      member.load = *added;
    }
  }
  if (asked->health_words == member.health_asked) return {};
  if (member.health) health_->remove(*member.health);
  const bool is_assumed_up = member.is_up || member.was_up;
  member.health.reset();
  member.health_asked = asked->health_words;
  if (asked->health_words.empty()) return {};
  const auto added = health_->add(asked->health, is_assumed_up);
  if (!added) return Unexpected(added.error());
  member.health = *added;
  return {};
}

// Its open connections still need to know where it is and whether it lives.
void Balancer::leave(Member& member) {
  if (member.load) loads_->remove(*member.load);
  member.load.reset();
  member.load_asked.clear();
  member.is_leaving = true;
  member.was_up = member.is_up;
  member.is_up = false;
  member.weighed = {};
  member.left_in_pass = ager_.passes();
}

// A pass that began after an instance left has counted all it can still have.
void Balancer::release_left() {
  std::vector<uint32_t> empty;
  for (const auto& [index, member] : members_) {
    if (member.is_leaving && ager_.passes() > member.left_in_pass + 1 &&
        ager_.entries_of(index) == 0)
      empty.push_back(index);
  }
  for (const uint32_t index : empty) {
    if (!tables_.remove_instance(index)) continue;  // a VIP's table still names it
    tables_.release(index);
    Member& member = members_[index];
    if (member.health) health_->remove(*member.health);
    neighbours_->unwatch(member.address);
    by_owner_.erase(member.owner);
    members_.erase(index);
  }
}

Result<> Balancer::attach() {
  const AttachOptions options = attach_options(settings_);
  auto attached = attach_all(program_.fd(), options);
  if (!attached) return Unexpected(attached.error());
  remove_others(options);
  attached_ = std::move(*attached);
  return {};
}

}  // namespace ballast::lb
