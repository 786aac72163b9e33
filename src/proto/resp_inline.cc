// SPDX-License-Identifier: Apache-2.0
// Redis's quoting rules for inline commands (sdssplitargs in its sds.c).
#include "proto/escape.h"
#include "proto/resp_command.h"

namespace ballast::proto {

namespace {

bool is_space(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');  // isspace of the C locale
}

// \v and \f separate words only at their beginning; redis's loop has the same gap.
bool ends_word(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

class WordReader {
 public:
  WordReader(std::string_view line, std::string& text) : line_(line), text_(text) {}

  bool skip_spaces() {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
    return at_ < line_.size();
  }

  bool read_word() {
    while (at_ < line_.size() && !ends_word(line_[at_])) {
      const char byte = line_[at_++];
      if (byte == '"') return read_double_quoted();
      if (byte == '\'') return read_single_quoted();
      text_ += byte;
    }
    if (at_ < line_.size()) ++at_;
    return true;
  }

 private:
  // A closing quote ends the word too.
  bool closed() const { return at_ == line_.size() || is_space(line_[at_]); }

  bool read_double_quoted() {
    while (at_ < line_.size()) {
      const char byte = line_[at_++];
      if (byte == '"') return closed();
      if (byte != '\\' || at_ == line_.size()) {
        text_ += byte;
      } else if (at_ + 2 < line_.size() && line_[at_] == 'x' && hex_digit(line_[at_ + 1]) >= 0 &&
                 hex_digit(line_[at_ + 2]) >= 0) {
        text_ += static_cast<char>(hex_digit(line_[at_ + 1]) * 16 + hex_digit(line_[at_ + 2]));
        at_ += 3;
      } else {
        text_ += unescape(line_[at_++]);
      }
    }
    return false;
  }

  bool read_single_quoted() {
    while (at_ < line_.size()) {
      const char byte = line_[at_++];
      if (byte == '\'') return closed();
      if (byte == '\\' && at_ < line_.size() && line_[at_] == '\'') {
        text_ += line_[at_++];
      } else {
        text_ += byte;
      }
    }
    return false;
  }

  std::string_view line_;
  std::string& text_;
  size_t at_ = 0;
};

}  // namespace

bool split_inline(std::string_view line, std::string& text, std::vector<std::string_view>& args) {
  text.clear();
  text.reserve(line.size());  // unquoting never lengthens, so the views below stay good
  args.clear();
  WordReader reader(line, text);
  while (reader.skip_spaces()) {
    const size_t start = text.size();
    if (!reader.read_word()) return false;
    args.emplace_back(text.data() + start, text.size() - start);
  }
  return true;
}

}  // namespace ballast::proto
