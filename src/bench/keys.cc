// SPDX-License-Identifier: Apache-2.0
#include "bench/keys.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <unordered_map>

#include "balance/hash.h"
#include "proto/resp_write.h"

namespace ballast::bench {
namespace {

constexpr std::string_view kPrefix = "$16\r\nkey:";
constexpr size_t kDigits = 12;  // redis-benchmark writes its keys like this too
constexpr size_t kBulkSize = kPrefix.size() + kDigits + 2;
constexpr size_t kTextAt = 5;

using BulkText = std::array<char, kBulkSize>;

void write_bulk(BulkText& bulk, uint32_t rank) {
  std::memcpy(bulk.data(), kPrefix.data(), kPrefix.size());
  for (size_t i = kPrefix.size() + kDigits; i-- > kPrefix.size();) {
    bulk[i] = static_cast<char>('0' + rank % 10);
    rank /= 10;
  }
  bulk[kBulkSize - 2] = '\r';
  bulk[kBulkSize - 1] = '\n';
}

std::string_view key_of(const BulkText& bulk) {
  return {bulk.data() + kTextAt, kBulkSize - kTextAt - 2};
}

}  // namespace

Keys::Keys(const Settings& settings)
    : spread_(settings.spread),
      size_(settings.keys),
      hot_reads_(settings.hot_reads),
      hot_size_(std::clamp<uint32_t>(
          static_cast<uint32_t>(std::lround(settings.hot_keys * settings.keys)), 1, settings.keys)),
      zipf_(settings.keys, settings.spread == Spread::kZipf ? settings.alpha : 0) {}

Result<Keys> Keys::create(const Settings& settings) {
  Keys keys(settings);
  if (settings.spread == Spread::kReplay) {
    if (const auto read = keys.read_replay(settings.replay_file); !read)
      return Unexpected(read.error());
  }
  return keys;
}

Result<> Keys::read_replay(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::kInvalid, path + ": cannot be read: " + std::strerror(errno));
  std::unordered_map<std::string, uint32_t> found;
  std::vector<std::string> names;
  std::vector<uint64_t> counts;
  for (std::string line; std::getline(file, line);) {
    const auto [at, fresh] = found.try_emplace(line, static_cast<uint32_t>(names.size()));
    if (fresh) {
      names.push_back(line);
      counts.push_back(0);
    }
    ++counts[at->second];
    order_.push_back(at->second);
  }
  if (file.bad()) return fail_errno(path + ": cannot be read", errno);
  if (order_.empty()) return fail(ErrorCode::kInvalid, path + ": holds no key");
  std::vector<uint32_t> by_count(names.size());
  std::iota(by_count.begin(), by_count.end(), 0U);
  std::stable_sort(by_count.begin(), by_count.end(),
                   [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
  std::vector<uint32_t> rank(names.size());
  for (uint32_t i = 0; i < by_count.size(); ++i) {
    rank[by_count[i]] = i;
    replayed_.push_back(std::move(names[by_count[i]]));
  }
  for (uint32_t& key : order_) key = rank[key];
  size_ = static_cast<uint32_t>(replayed_.size());
  return {};
}

uint32_t Keys::draw(Random& random) {
  switch (spread_) {
    case Spread::kZipf:
      return static_cast<uint32_t>(zipf_.sample(random));
    case Spread::kUniform:
      break;
    case Spread::kHotspot:
      if (hot_size_ == size_) break;
      if (random.unit() < hot_reads_) return static_cast<uint32_t>(random.below(hot_size_));
      return hot_size_ + static_cast<uint32_t>(random.below(size_ - hot_size_));
    case Spread::kReplay:
      if (next_ == order_.size()) next_ = 0;
      return order_[next_++];
  }
  return static_cast<uint32_t>(random.below(size_));
}

void Keys::append_bulk(std::string& out, uint32_t rank) const {
  if (spread_ == Spread::kReplay) return proto::append_bulk(out, replayed_[rank]);
  BulkText bulk;
  write_bulk(bulk, rank);
  out.append(bulk.data(), bulk.size());
}

std::string Keys::text(uint32_t rank) const {
  if (spread_ == Spread::kReplay) return replayed_[rank];
  BulkText bulk;
  write_bulk(bulk, rank);
  return std::string(key_of(bulk));
}

uint64_t Keys::hash(uint32_t rank) const {
  if (spread_ == Spread::kReplay) return balance::key_hash(replayed_[rank]);
  BulkText bulk;
  write_bulk(bulk, rank);
  return balance::key_hash(key_of(bulk));
}

}  // namespace ballast::bench
