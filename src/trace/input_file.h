// SPDX-License-Identifier: Apache-2.0
// A file or standard input, read once from front to back: by bytes, by lines of bounded length, or
// as a FILE for a library. Its first bytes can be looked at before.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ballast::trace {

class InputFile {
 public:
  // "-" is standard input.
  static Result<std::unique_ptr<InputFile>> open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }  // for messages
  uint64_t done() const { return done_; }            // bytes taken so far
  uint64_t size() const { return size_; }            // 0 if not known, as of a pipe

  // The next bytes, at most `most` (up to 64 KiB), without taking them; fewer at the end.
  std::string_view peek(size_t most);
  // Fewer than `size` bytes only at the end or after an error.
  size_t read(char* data, size_t size);
  // errno of a failed read, else 0.
  int error() const { return error_; }

  struct Line {
    std::string_view text;  // without its end, good until the next call
    uint64_t number = 0;    // from 1
    bool cut = false;       // longer than kMostLine, the rest was dropped
    bool ended = true;      // false: the file ends without a line end
  };
  static constexpr size_t kMostLine = size_t{1} << 24;
  // False at the end or after an error.
  bool next_line(Line& line);

  // A stream over what is still to be read. The file must outlive it.
  FILE* stream();

 private:
  InputFile(std::string name, int fd, uint64_t size);
  bool fill();

  std::string name_;
  int fd_;
  uint64_t size_;
  uint64_t done_ = 0;
  int error_ = 0;
  bool ended_ = false;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::string long_line_;  // one that spans the buffer's end
  uint64_t line_number_ = 0;
};

}  // namespace ballast::trace
