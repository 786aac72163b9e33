// SPDX-License-Identifier: Apache-2.0
// What a Redis connection remembers beyond its protocol: name, transaction, subscriptions,
// connections of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cache/dedicated.h"
#include "cache/pubsub.h"

namespace ballast::cache {

// MULTI … EXEC: the commands are kept here and go to the one shard of their keys as one block.
struct Transaction {
  std::string wire;
  size_t commands = 0;
  std::vector<std::string> written_keys;
  int shard = -1;        // of the keys seen so far
  bool aborted = false;  // a command was refused: EXEC will be too
  bool flush = false;
};

struct Session {
  enum class Replies : uint8_t { kOn, kOff, kSkipNext, kSkipThis };

  bool mute() const { return replies == Replies::kOff || replies == Replies::kSkipThis; }
  bool subscribed() const { return subscriptions != nullptr && subscriptions->count() > 0; }

  std::string name;
  std::string library;
  std::string library_version;
  Replies replies = Replies::kOn;
  std::unique_ptr<Transaction> transaction;
  int watched_shard = -1;   // WATCH was sent on the dedicated connection to this shard
  bool watch_lost = false;  // a connection that watched keys is gone: they may have changed since
  std::map<uint32_t, std::unique_ptr<Dedicated>> dedicated;  // by shard
  uint32_t blocked_shard = 0;  // where the client's last blocking command went
  std::unique_ptr<Subscriptions> subscriptions;
};

}  // namespace ballast::cache
