// SPDX-License-Identifier: Apache-2.0
#include "bypass.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace ballast::faults {

Result<Bypass> Bypass::create(const WorkloadOptions& options, const Endpoint& shard, int keys) {
  auto router = BlockingClient::connect(options.endpoints.front(), options.timeout_ns);
  if (!router) return tl::unexpected(router.error());
  auto direct = BlockingClient::connect(shard, options.timeout_ns);
  if (!direct) return tl::unexpected(direct.error());
  std::vector<std::string> found;
  constexpr int kMaxTries = 20'000;
  for (int i = 0; i < kMaxTries && found.size() < static_cast<size_t>(keys); ++i) {
    const std::string key = fmt::format("{}by:{}:{}", options.prefix, shard.port, i);
    auto set = router->call({"SET", key, encode_value(1, key)});
    if (!set) return tl::unexpected(set.error());
    auto there = direct->call({"EXISTS", key});
    if (!there) return tl::unexpected(there.error());
    if (there->text == "1") found.push_back(key);
  }
  if (found.empty()) {
    return fail(ErrorCode::kInvalid, fmt::format("no key written through the router was found on "
                                                 "{}:{}",
                                                 shard.host, shard.port));
  }
  return Bypass(shard, std::move(found));
}

void Bypass::run(const WorkloadOptions& options, const Progress& progress) {
  // Value 1 is there since create(); there is no value 0.
  for (const std::string& key : keys_) acknowledged_ns_[key].assign(2, now_ns());
  while (!progress.stop) {
    auto client = BlockingClient::connect(shard_, options.timeout_ns);
    while (client && !progress.stop) {
      bool is_alive = true;
      for (const std::string& key : keys_) {
        auto& acknowledged = acknowledged_ns_[key];
        const std::string value = encode_value(static_cast<Value>(acknowledged.size()), key);
        const auto reply = client->call({"SET", key, value});
        // A number whose write failed is written again: the same value twice is harmless here.
        is_alive = reply && reply->type == '+';
        if (!is_alive) break;
        acknowledged.push_back(now_ns());
      }
      if (!is_alive) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Staleness Bypass::measure(const std::vector<Record>& reads) const {
  std::vector<double> late_ms;
  Staleness staleness;
  for (const Record& read : reads) {
    const auto found = acknowledged_ns_.find(read.key);
    // Nil is a flush, not an old value.
    if (found == acknowledged_ns_.end() || read.operation.value == kNil) continue;
    const size_t next = static_cast<size_t>(read.operation.value) + 1;
    Nanos late = 0;
    if (next < found->second.size()) late = read.operation.invoke_ns - found->second[next];
    late_ms.push_back(static_cast<double>(std::max<Nanos>(late, 0)) /
                      static_cast<double>(kMillisecond));
    staleness.stale_reads += late > 0;
  }
  staleness.reads = late_ms.size();
  if (late_ms.empty()) return staleness;
  std::sort(late_ms.begin(), late_ms.end());
  staleness.max_ms = late_ms.back();
  staleness.p99_ms = late_ms[late_ms.size() * 99 / 100];
  return staleness;
}

}  // namespace ballast::faults
