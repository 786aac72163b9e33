// SPDX-License-Identifier: Apache-2.0
#include "trace/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ballast::trace {
namespace {

constexpr size_t kBuffer = size_t{256} * 1024;

}  // namespace

Result<std::unique_ptr<InputFile>> InputFile::open(const std::string& path) {
  const bool standard = path == "-";
  const int fd = standard ? dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string name = standard ? "standard input" : path;
  struct stat status{};
  if (fd < 0 || fstat(fd, &status) != 0)
    return fail(ErrorCode::kInvalid, name + ": cannot be read: " + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) {
    close(fd);
    return fail(ErrorCode::kInvalid, name + ": is a folder");
  }
  const uint64_t size = S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
  return std::unique_ptr<InputFile>(new InputFile(name, fd, size));
}

InputFile::InputFile(std::string name, int fd, uint64_t size)
    : name_(std::move(name)), fd_(fd), size_(size), buffer_(kBuffer) {}

InputFile::~InputFile() { close(fd_); }

// Adds to the buffer what one read gives, after moving what is there to its front.
bool InputFile::fill() {
  if (ended_) return false;
  std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) error_ = errno;
  if (got <= 0) {
    ended_ = true;
    return false;
  }
  end_ += static_cast<size_t>(got);
  return true;
}

std::string_view InputFile::peek(size_t most) {
  most = std::min(most, kBuffer / 4);
  while (end_ - begin_ < most && fill()) {
  }
  return {buffer_.data() + begin_, std::min(most, end_ - begin_)};
}

size_t InputFile::read(char* data, size_t size) {
  size_t taken = 0;
  while (taken < size && (begin_ < end_ || fill())) {
    const size_t part = std::min(size - taken, end_ - begin_);
    std::memcpy(data + taken, buffer_.data() + begin_, part);
    begin_ += part;
    taken += part;
  }
  done_ += taken;
  return taken;
}

bool InputFile::next_line(Line& line) {
  line = {};
  line.number = ++line_number_;
  long_line_.clear();
  size_t dropped = 0;
  for (;;) {
    const char* const data = buffer_.data() + begin_;
    const size_t size = end_ - begin_;
    const void* const found = size > 0 ? std::memchr(data, '\n', size) : nullptr;
    const size_t part =
        found != nullptr ? static_cast<size_t>(static_cast<const char*>(found) - data) : size;
    const size_t room = kMostLine - std::min(kMostLine, long_line_.size());
    if (found != nullptr && long_line_.empty() && dropped == 0) {
      line.text = {data, part};
    } else {
      long_line_.append(data, std::min(part, room));
      dropped += part - std::min(part, room);
      line.text = long_line_;
    }
    begin_ += part + (found != nullptr ? 1 : 0);
    done_ += part + (found != nullptr ? 1 : 0);
    if (found != nullptr) break;
    if (fill()) continue;
    line.ended = false;
    if (long_line_.empty()) return false;
    break;
  }
  line.cut = dropped > 0;
  if (!line.cut && line.text.ends_with('\r')) line.text.remove_suffix(1);
  return true;
}

FILE* InputFile::stream() {
  cookie_io_functions_t calls{};
  calls.read = [](void* file, char* data, size_t size) {
    auto* const self = static_cast<InputFile*>(file);
    const size_t got = self->read(data, size);
    if (got == 0 && self->error_ != 0) {
      errno = self->error_;
      return ssize_t{-1};
    }
    return static_cast<ssize_t>(got);
  };
  return fopencookie(this, "r", calls);
}

}  // namespace ballast::trace
