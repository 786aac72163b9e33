// SPDX-License-Identifier: Apache-2.0
// Finds where one RESP2 or RESP3 reply ends in a stream that may be cut anywhere, without keeping
// it. Lengths, nesting and line ends are checked; what scalars hold is not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ballast::proto {

// Aggregates and attributes inside each other, at most. A script can nest its reply as deep as
// Lua's stack allows, 8000 levels: a link must be able to pass that on. What is read into a tree,
// by recursion, is not so deep.
inline constexpr size_t kMaxScanDepth = 16'384;
inline constexpr size_t kMaxReplyDepth = 128;
// Elements one aggregate may announce, and bytes one string may announce.
inline constexpr int64_t kMaxReplyElements = int64_t{1} << 32;
inline constexpr int64_t kMaxReplyBulk = int64_t{1} << 40;

struct Scan {
  size_t consumed;  // bytes of the input that belong to the reply
  bool complete;    // the reply ends there; the next scan begins another
  bool error;       // not RESP: the stream cannot be followed any further
};

class ReplyScanner {
 public:
  // Goes on where the last scan ended. Without `complete` and `error` all input was consumed.
  Scan scan(std::string_view input);

  // First byte of the reply being scanned, or of the last complete one. Attributes come before the
  // reply they belong to and are part of it, so this may be '|'; a push ('>') is a reply of its
  // own.
  char type() const { return type_; }

  // Forgets everything, for a new connection.
  void reset() { *this = ReplyScanner(); }

 private:
  enum class State : uint8_t { kElement, kHeader, kLine, kPayload, kDone, kFailed };

  // An aggregate whose end is not reached.
  struct Level {
    uint64_t left;  // elements still to come, or kStreamed
    char type;
    bool odd;  // streamed map: a key without its value
  };

  const char* skip_payload(const char* p, const char* end);
  const char* read_header(const char* p, const char* end);
  bool take_header(char type, const char* text, size_t size);
  bool take_length(char type, const char* text, size_t size);
  bool take_scalar(char type, std::string_view text);
  bool take_stream(char type);
  bool allowed_here(char type) const;
  bool open_level(char type, uint64_t left);
  void close_element();
  const char* fail(const char* p) {
    state_ = State::kFailed;
    return p;
  }

  static constexpr uint64_t kStreamed = ~uint64_t{0};

  std::vector<Level> levels_;
  uint64_t payload_left_ = 0;  // bytes of the string and its CRLF
  std::array<char, 32> header_{};
  uint8_t header_size_ = 0;
  State state_ = State::kElement;
  char type_ = 0;
  bool after_cr_ = false;         // kLine: the last byte was a CR
  bool after_attribute_ = false;  // an attribute waits for what it describes
};

}  // namespace ballast::proto
