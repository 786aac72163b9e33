// SPDX-License-Identifier: Apache-2.0
// What a server says of its commands in its reply to COMMAND: flags, tips, and where in the
// arguments the keys are. Source: https://redis.io/docs/reference/key-specs/ and command-tips/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "proto/resp_value.h"

namespace ballast::proto {

enum CommandFlag : uint32_t {
  kWrite = 1u << 0,
  kReadonly = 1u << 1,
  kBlocking = 1u << 2,
  kPubsub = 1u << 3,
  kNoscript = 1u << 4,
  kAdmin = 1u << 5,
  kMovablekeys = 1u << 6,
  kMayReplicate = 1u << 7,  // redis 7.0 keeps it to itself; see may_write_keys()
  kNoAuth = 1u << 8,
  kNoMulti = 1u << 9,
  kFast = 1u << 10,
  kDenyoom = 1u << 11,
  kModule = 1u << 12,
  kNoMandatoryKeys = 1u << 13,
  kAllowBusy = 1u << 14,
  // Same keys and arguments, other reply: the tip nondeterministic_output, or redis 6's "random".
  kNondeterministic = 1u << 15,
  kNondeterministicOrder = 1u << 16,
};

// Tips for a proxy that speaks to several shards; kDefault when the server gives none.
enum class RequestPolicy : uint8_t { kDefault, kAllNodes, kAllShards, kMultiShard, kSpecial };
enum class ResponsePolicy : uint8_t {
  kDefault,
  kOneSucceeded,
  kAllSucceeded,
  kAggLogicalAnd,
  kAggLogicalOr,
  kAggMin,
  kAggMax,
  kAggSum,
  kSpecial,
};

struct KeySpec {
  enum class Begin : uint8_t { kUnknown, kIndex, kKeyword };
  enum class Find : uint8_t { kUnknown, kRange, kKeynum };

  Begin begin = Begin::kUnknown;
  Find find = Find::kUnknown;
  bool written = false;     // a key found by this spec may be changed
  bool incomplete = false;  // there may be keys that it does not find
  bool not_key = false;     // what it finds only shares the keys' slots (shard channels)
  bool variable_flags = false;
  int64_t index = 0;      // kIndex: of the first key; kKeyword: where the search starts
  std::string keyword;    // kKeyword
  int64_t last_key = 0;   // kRange
  int64_t limit = 0;      // kRange
  int64_t key_step = 1;   // kRange, kKeynum
  int64_t count_at = 0;   // kKeynum: of the number of keys, from the beginning
  int64_t first_key = 0;  // kKeynum: of the first key, from the beginning
};

struct KeyPosition {
  uint32_t index;  // in the arguments, 0 being the command's name
  bool written;    // may be changed by the command, not only read

  bool operator==(const KeyPosition&) const = default;
};

struct CommandInfo {
  std::string name;   // lower case; a subcommand is "container|subcommand"
  int64_t arity = 0;  // with the name; -n: n or more
  uint32_t flags = 0;
  RequestPolicy request_policy = RequestPolicy::kDefault;
  ResponsePolicy response_policy = ResponsePolicy::kDefault;
  int64_t first_key = 0;  // the range older servers give instead of specifications
  int64_t last_key = 0;
  int64_t key_step = 0;
  bool has_specs = false;  // the server gives specifications, maybe none
  bool container = false;  // has subcommands
  std::vector<KeySpec> specs;

  bool has(CommandFlag flag) const { return (flags & flag) != 0; }
  bool arity_fits(size_t args) const {
    const int64_t count = static_cast<int64_t>(args);
    return arity >= 0 ? count == arity : count >= -arity;
  }
  // The same reply for the same data each time: a reply of this command may be kept as a copy.
  bool repeatable() const {
    return has(kReadonly) && !may_write_keys() &&
           (flags & (kBlocking | kMayReplicate | kNondeterministic | kMovablekeys | kModule)) == 0;
  }
  // True for writes, and for PFCOUNT, which is flagged readonly and rewrites its key.
  bool may_write_keys() const;
  // Puts where the keys are into `positions`, without allocating beyond its capacity's growth.
  // False if that cannot be known from here: ask the shard with COMMAND GETKEYS. Positions beyond
  // the arguments are left out; the server finds the arity wrong.
  bool keys(std::span<const std::string_view> args, std::vector<KeyPosition>& positions) const;
};

class CommandTable {
 public:
  CommandTable() = default;
  CommandTable(CommandTable&&) = default;
  CommandTable& operator=(CommandTable&&) = default;

  // From the reply of COMMAND, of redis 6 (short rows) or 7, RESP2 or RESP3.
  static Result<CommandTable> from_reply(const Value& reply);
  static Result<CommandTable> from_reply(std::string_view reply);

  // In any case of letters; nullptr if the server has no such command. Good as long as the table.
  const CommandInfo* find(std::string_view name) const { return find_joined(name, {}); }
  // The subcommand if the command is a container and has it, else the command.
  const CommandInfo* find(std::span<const std::string_view> args) const;

  // Commands and subcommands, in the server's order.
  std::span<const CommandInfo> all() const { return commands_; }

 private:
  const CommandInfo* find_joined(std::string_view name, std::string_view subcommand) const;
  void build_index();

  std::vector<CommandInfo> commands_;
  std::vector<uint32_t> index_;  // open addressing: 1 + position in commands_, 0 when free
};

}  // namespace ballast::proto
