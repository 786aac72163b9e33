// SPDX-License-Identifier: Apache-2.0
// What a node (leaf or spine) and a shard's home say to each other; docs/design/coherence.md gives
// the rules. Messages may be lost, repeated, late or out of order, and must then be harmless.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace ballast::cache {

// Random at a node's process start: a new process under an old name is another holder.
using Incarnation = uint64_t;

// A command whose reply is cached: empty for GET key, else the RESP array with the name in
// capitals.
using CachedCommand = std::string;

// Node to home.
struct Admit {  // asks for a copy of `command`'s reply; the node holds placeholder `copy_id`
  std::string key;
  CachedCommand command;
  uint64_t copy_id;
};
struct Ack {  // no value of `key` older than `version` is held any more
  std::string key;
  uint64_t version;
  uint64_t epoch = 0;  // of the home that asked: versions of another home say nothing to this one
};
struct Release {  // the copy was evicted
  std::string key;
  uint64_t copy_id;
};
struct Renew {  // renewal number `seq` of this node's lease on the shard; seq grows by one
  uint64_t seq;
};
struct DropAllAck {
  uint64_t version;
  uint64_t epoch = 0;  // as in Ack
};
using ToHome = std::variant<Admit, Ack, Release, Renew, DropAllAck>;

// Home to node. `epoch` is the home's incarnation; a higher one ends all that a lower one gave.
struct Fill {
  std::string key;
  CachedCommand command;
  std::string
      reply;  // RESP3 bytes; empty: this command's reply is not cached (an error, too large)
  uint64_t copy_id;
  uint64_t version;
  int64_t ttl_ms;  // the object ends ttl_ms after the node sent renewal `ttl_seq`; -1: it does not
                   // expire
  uint64_t ttl_seq;
};
struct Refuse {  // no copy for `copy_id` now (too large, missing right, not ready); the placeholder
                 // goes
  std::string key;
  uint64_t copy_id;
};
struct Invalidate {
  std::string key;
  uint64_t version;
};
struct Lease {  // renewal `seq` is granted: good until `seq` was sent + length
  uint64_t seq;
};
struct DropAll {
  uint64_t version;
};
struct ToNode {
  uint64_t epoch = 0;
  std::variant<Fill, Refuse, Invalidate, Lease, DropAll> body;
};

}  // namespace ballast::cache
