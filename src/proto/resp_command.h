// SPDX-License-Identifier: Apache-2.0
// Parses client requests, arrays of bulk strings and inline commands, as redis 7.0 does, from a
// buffer that grows until the command is complete. Nothing is allocated for announced lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::proto {

// Bounds of one request. Shared by many parsers, so it outlives them.
struct CommandLimits {
  int64_t max_args = 1024 * 1024;
  int64_t max_bulk = 512LL * 1024 * 1024;  // bytes of one argument
  size_t max_inline = 64 * 1024;           // bytes of an inline command or of a header line
  size_t max_total = size_t{1} << 30;      // bytes of the whole request
  // A client that must still say its password: 10 arguments, 16384 bytes each, as in redis.
  bool unauthenticated = false;
};

inline constexpr CommandLimits kDefaultCommandLimits{};

class CommandParser {
 public:
  enum class Status { kCommand, kNeedMore, kError };

  // `limits` is kept by address.
  explicit CommandParser(const CommandLimits* limits = &kDefaultCommandLimits) : limits_(limits) {}

  // Holds from the next command on.
  void set_limits(const CommandLimits* limits) { limits_ = limits; }

  // `buffer` starts at the first byte not yet consumed. After kNeedMore the next call's buffer
  // begins with the same bytes (they may have moved). After kCommand, drop consumed() bytes and
  // call again. After kError the connection is of no more use; every later call says kError.
  Status parse(std::string_view buffer);

  // The command's arguments, valid until the buffer or the parser is touched. None for `*0`, `*-1`
  // and an empty line, which redis swallows without a reply.
  std::span<const std::string_view> args() const { return args_; }
  size_t consumed() const { return position_; }
  bool is_inline() const { return inline_; }

  // After kError: the text redis gives, without "-ERR ", e.g. "Protocol error: invalid bulk
  // length".
  std::string_view error() const { return cold_ ? std::string_view(cold_->error) : ""; }

  // After kNeedMore: bytes that are still missing for certain; 0 if not known.
  size_t wanted() const { return wanted_; }

 private:
  enum class Step : uint8_t { kOk, kMore, kError };
  enum class State : uint8_t { kStart, kArguments, kDone, kFailed };

  struct Range {
    size_t offset;
    size_t size;
  };
  // What only split or inline or broken requests need.
  struct Cold {
    std::vector<Range> ranges;  // arguments found in earlier calls
    std::string text;           // unquoted inline arguments
    std::string error;
  };

  void begin();
  Status parse_start(std::string_view buffer);
  Status parse_arguments(std::string_view buffer);
  Status parse_inline(std::string_view buffer);
  Step read_length(std::string_view buffer, bool bulk, int64_t& length);
  Step read_length_slow(std::string_view buffer, bool bulk, int64_t& length);
  Step check_length(bool bulk, int64_t length);
  Status suspend(std::string_view buffer);
  Status complete(std::string_view buffer);
  Status fail(std::string text);
  Cold& cold();

  const CommandLimits* limits_;
  std::unique_ptr<Cold> cold_;
  std::vector<std::string_view> args_;
  size_t position_ = 0;  // bytes of the buffer understood so far
  size_t searched_ = 0;  // no line end before this offset
  size_t wanted_ = 0;
  int64_t bulk_ = -1;  // announced size of the argument at position_
  uint32_t args_left_ = 0;
  State state_ = State::kDone;
  bool inline_ = false;
};

// Splits an inline command by redis's quoting rules into `args`, views into `text`; false when
// quotes are unbalanced or a closing quote is followed by something else than a space.
bool split_inline(std::string_view line, std::string& text, std::vector<std::string_view>& args);

}  // namespace ballast::proto
