// SPDX-License-Identifier: Apache-2.0
// One command on its way and the place its reply goes to. A request is held by the client's queue
// (its place in the order of replies) and by the link that carries it (its place in the order of
// answers); each may let go first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace ballast::cache {

class Client;
class Shard;

// Where a request is, as far as the order of commands on one key is concerned: two requests on the
// same path take effect in the order sent.
enum class Path : uint8_t { kNone, kShard, kHome, kNode };

struct Request {
  Request* parent = nullptr;  // the one in the client's queue that this is a part of
  Client* client = nullptr;   // null: internal, or the client is gone or was told of a timeout
  // For internal requests and joined ones, instead of client: gets the whole reply once.
  std::function<void(Request&)> done;
  std::string reply;    // collected while it cannot be passed on
  std::string wire;     // the command's bytes, kept only while it waits
  std::string command;  // cached form of a read that waits for a node
  // The shard whose home is told when this write has been answered, and what it writes: as many of
  // `keys` as there are hashes.
  Shard* guarded = nullptr;
  std::vector<std::string> keys;
  std::vector<uint64_t> hashes;
  uint64_t hash = 0;  // of the first key, for order within a client; 0 if it has none
  Nanos deadline = 0;
  Nanos started = 0;  // when its bytes had been read; 0: not measured
  uint64_t token = 0;
  size_t wire_bytes = 0;          // of the client's command
  size_t part_bytes = 0;          // of the replies of the parts of this one
  size_t reply_limit = SIZE_MAX;  // what comes beyond is left out of `reply`
  uint32_t references = 0;
  uint32_t skip = 0;  // answers that come before the one that counts (a block of MULTI … EXEC)
  uint16_t node = 0;
  Path path = Path::kNone;
  bool complete = false;
  bool streamed = false;     // part of the reply has left already
  bool flush = false;        // guarded as a flush of all keys
  bool off_path = false;     // was sent on another path than kShard
  bool gated_write = false;  // waits for the rate limit before its copies are invalidated
  bool blocking = false;     // a command such as BLPOP
  bool muted = false;        // the client wants no reply (CLIENT REPLY)
  uint8_t proto = 2;

  void add_key(std::string_view key, uint64_t key_hash) {
    if (keys.size() == hashes.size()) keys.emplace_back();
    keys[hashes.size()].assign(key);
    hashes.push_back(key_hash);
  }

  // As new, but with the room its strings have, if that is little.
  void reset() {
    clear(reply);
    clear(wire);
    clear(command);
    for (std::string& key : keys) clear(key);
    hashes.clear();
    parent = nullptr;
    client = nullptr;
    done = nullptr;
    guarded = nullptr;
    hash = token = 0;
    deadline = started = 0;
    wire_bytes = part_bytes = 0;
    reply_limit = SIZE_MAX;
    skip = 0;
    node = 0;
    path = Path::kNone;
    complete = streamed = flush = off_path = gated_write = blocking = muted = false;
    proto = 2;
  }

 private:
  static constexpr size_t kKeepBytes = 1024;
  static void clear(std::string& text) {
    text.clear();
    if (text.capacity() > kKeepBytes) std::string().swap(text);
  }
};

// Requests of one loop, reused with the room their strings have.
class RequestPool {
 public:
  ~RequestPool() {
    for (Request* request : free_) delete request;
  }
  Request* take() {
    if (free_.empty()) return new Request;
    Request* request = free_.back();
    free_.pop_back();
    return request;
  }
  void hold(Request* request) { ++request->references; }
  void release(Request* request) {
    if (--request->references == 0) recycle(request);
  }

 private:
  static constexpr size_t kKeepRequests = 4096;

  void recycle(Request* request) {
    if (free_.size() >= kKeepRequests || request->keys.size() > 16) {
      delete request;
      return;
    }
    request->reset();
    free_.push_back(request);
  }

  std::vector<Request*> free_;
};

}  // namespace ballast::cache
