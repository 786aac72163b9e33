// SPDX-License-Identifier: Apache-2.0
#include "loader/lb_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <decap.skel.h>
#include <lb.skel.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "loader/pins.h"
#include "wire/flow_hash.h"

namespace ballast::loader {
namespace {

// libbpf prints to stderr by itself; only what explains a failure is kept.
thread_local std::string last_words;

int keep_words(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  std::string words(1 << 16, 0);
  const int length = vsnprintf(words.data(), words.size(), format, arguments);
  if (length <= 0) return 0;
  words.resize(std::min(words.size() - 1, static_cast<size_t>(length)));
  last_words += words;
  // The verifier's verdict stands at the end of what it says.
  constexpr size_t kMost = 2048;
  if (last_words.size() > kMost) last_words.erase(0, last_words.size() - kMost);
  return 0;
}

void listen() {
  last_words.clear();
  libbpf_set_print(keep_words);
}

Unexpected refused(const char* what, int error) {
  Unexpected failure = fail_errno(what, error);
  if (last_words.empty()) return failure;
  Error with_words = failure.value();
  with_words.message += ": " + last_words;
  return Unexpected(with_words);
}

constexpr uint32_t kUnknownCount = 1 << 30;

// While the packet path counts there too.
void count_on(bl_newcomer_set& set, uint32_t more) {
  std::atomic_ref(set.connections).fetch_add(more, std::memory_order_relaxed);
}

template <typename View>
View view(const bpf_map* map) {
  return View(bpf_map__fd(map), bpf_map__name(map));
}

}  // namespace

void LbProgram::Destroy::operator()(LbSkeleton* skeleton) const { LbSkeleton__destroy(skeleton); }

Result<LbProgram> LbProgram::load(const LbSettings& settings) {
  listen();
  LbProgram program(LbSkeleton__open());
  LbSkeleton* skeleton = program.skeleton_.get();
  if (!skeleton) return refused("open the load balancer's program", errno);
  skeleton->rodata->hash_seed = settings.hash_seed;
  skeleton->rodata->errors_per_second = settings.errors_per_second;
  skeleton->rodata->echo_is_answered = settings.echo_is_answered ? 1 : 0;
  bpf_map__set_max_entries(skeleton->maps.connections, settings.connections);
  const uint32_t sets = std::bit_floor(std::max(settings.newcomer_sets, 1U));
  skeleton->rodata->newcomer_sets = sets;
  bpf_map__set_max_entries(skeleton->maps.newcomers, sets);
  bpf_map__set_max_entries(skeleton->maps.fragments, settings.fragments);
  bpf_map__set_max_entries(skeleton->maps.captured, possible_cpus());
  const auto former_seed = settings.pins.empty() ? std::nullopt : pinned_seed(settings.pins);
  if (const Result<> pinned = pin_maps(skeleton->obj, settings.pins); !pinned)
    return Unexpected(pinned.error());
  if (const int error = LbSkeleton__load(skeleton))
    return refused("load the load balancer's program", -error);
  if (const Result<> mapped = program.map_newcomers(); !mapped) return Unexpected(mapped.error());
  // With another seed a connection's set is another one: no count says that there is none.
  if (former_seed && *former_seed != settings.hash_seed)
    for (uint32_t i = 0; i < sets; ++i) count_on(program.sets_.first[i], kUnknownCount);
  for (const auto& [place, number] : {std::pair(kSeedPlace, settings.hash_seed),
                                      std::pair(kLayoutPlace, layout_of(skeleton->obj))}) {
    if (const Result<> kept = program.seed().set(place, number); !kept)
      return Unexpected(kept.error());
  }
  return program;
}

MapView<uint32_t, bl_owner> LbProgram::owners() const {
  return view<MapView<uint32_t, bl_owner>>(skeleton_->maps.owners);
}
MapView<uint32_t, bl_settings> LbProgram::settings() const {
  return view<MapView<uint32_t, bl_settings>>(skeleton_->maps.settings);
}
int LbProgram::newcomers_fd() const { return bpf_map__fd(skeleton_->maps.newcomers); }
int LbProgram::captured_fd() const { return bpf_map__fd(skeleton_->maps.captured); }
MapView<bl_vip_key, bl_nat_source> LbProgram::nat_sources() const {
  return view<MapView<bl_vip_key, bl_nat_source>>(skeleton_->maps.nat_sources);
}
MapView<uint32_t, uint64_t> LbProgram::seed() const {
  return view<MapView<uint32_t, uint64_t>>(skeleton_->maps.seed);
}

int LbProgram::fd() const { return bpf_program__fd(skeleton_->progs.lb); }

MapView<bl_vip_key, bl_vip> LbProgram::vips() const {
  return view<MapView<bl_vip_key, bl_vip>>(skeleton_->maps.vips);
}
MapView<uint32_t, bl_dispatch_table> LbProgram::dispatch_tables() const {
  return view<MapView<uint32_t, bl_dispatch_table>>(skeleton_->maps.dispatch_tables);
}
MapView<uint32_t, bl_coupling> LbProgram::couplings() const {
  return view<MapView<uint32_t, bl_coupling>>(skeleton_->maps.couplings);
}
MapView<uint32_t, bl_ring_page> LbProgram::ring_pages() const {
  return view<MapView<uint32_t, bl_ring_page>>(skeleton_->maps.ring_pages);
}
MapView<uint32_t, bl_instance> LbProgram::instances() const {
  return view<MapView<uint32_t, bl_instance>>(skeleton_->maps.instances);
}
MapView<bl_flow_key, bl_connection> LbProgram::connections() const {
  return view<MapView<bl_flow_key, bl_connection>>(skeleton_->maps.connections);
}
LbProgram::Sets::~Sets() {
  if (first != nullptr) munmap(first, sizeof(*first) * count);
}

Result<> LbProgram::map_newcomers() {
  const uint32_t count = bpf_map__max_entries(skeleton_->maps.newcomers);
  void* memory = mmap(nullptr, sizeof(bl_newcomer_set) * count, PROT_READ | PROT_WRITE, MAP_SHARED,
                      newcomers_fd(), 0);
  if (memory == MAP_FAILED) return fail_errno("map newcomers into memory", errno);
  sets_.first = static_cast<bl_newcomer_set*>(memory);
  sets_.count = count;
  return {};
}

Result<bool> LbProgram::remove_connection(const bl_flow_key& flow) const {
  const Result<bool> removed = connections().remove(flow);
  if (!removed || !*removed) return removed;
  const bl_flow_hash hash = bl_hash_flow(&flow, skeleton_->rodata->hash_seed);
  count_on(sets_.first[bl_newcomer_set_of(hash, sets_.count)], UINT32_MAX);
  return true;
}

Result<std::optional<uint32_t>> LbProgram::newcomer(const bl_flow_key& flow) const {
  const MapView<uint32_t, bl_newcomer_set> sets(newcomers_fd(), "newcomers");
  const bl_flow_hash hash = bl_hash_flow(&flow, skeleton_->rodata->hash_seed);
  const auto set = sets.get(bl_newcomer_set_of(hash, skeleton_->rodata->newcomer_sets));
  if (!set) return Unexpected(set.error());
  if (!*set) return std::nullopt;
  for (const uint64_t word : (*set)->places) {
    if ((word ^ bl_flow_mark(hash)) >> BL_WAY_BITS == 0) return word & BL_WAY_INSTANCE;
  }
  return std::nullopt;
}
PerCpuView<uint64_t> LbProgram::counters() const {
  return view<PerCpuView<uint64_t>>(skeleton_->maps.counters);
}
PerCpuView<bl_traffic> LbProgram::instance_counters() const {
  return view<PerCpuView<bl_traffic>>(skeleton_->maps.instance_counters);
}

void DecapProgram::Destroy::operator()(DecapSkeleton* skeleton) const {
  DecapSkeleton__destroy(skeleton);
}

Result<DecapProgram> DecapProgram::load() {
  listen();
  DecapProgram program(DecapSkeleton__open());
  if (!program.skeleton_) return refused("open the instance's program", errno);
  if (const int error = DecapSkeleton__load(program.skeleton_.get()))
    return refused("load the instance's program", -error);
  return program;
}

int DecapProgram::fd() const { return bpf_program__fd(skeleton_->progs.decap); }

MapView<bl_balancer_key, uint8_t> DecapProgram::balancers() const {
  return view<MapView<bl_balancer_key, uint8_t>>(skeleton_->maps.balancers);
}
MapView<bl_balancer_key, bl_peer> DecapProgram::peers() const {
  return view<MapView<bl_balancer_key, bl_peer>>(skeleton_->maps.peers);
}
PerCpuView<uint64_t> DecapProgram::counters() const {
  return view<PerCpuView<uint64_t>>(skeleton_->maps.decap_counters);
}

const std::vector<CounterName>& counter_names() {
#define BL_DROP_ROW(name, words) {#name, words, true},
#define BL_EVENT_ROW(name, words) {#name, words, false},
  static const std::vector<CounterName> names{BL_DROP_REASONS(BL_DROP_ROW) BL_EVENTS(BL_EVENT_ROW)};
#undef BL_DROP_ROW
#undef BL_EVENT_ROW
  return names;
}

const std::vector<CounterName>& decap_counter_names() {
#define BL_DECAP_ROW(name, words) {#name, words, false},
  static const std::vector<CounterName> names{BL_DECAP_EVENTS(BL_DECAP_ROW)};
#undef BL_DECAP_ROW
  return names;
}

}  // namespace ballast::loader
