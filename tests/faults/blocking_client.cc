// SPDX-License-Identifier: Apache-2.0
#include "blocking_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

namespace ballast::faults {
namespace {

Result<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::kInvalid, fmt::format("not a number in a reply: '{}'", text));
  }
  return value;
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is not HOST:PORT", text));
  }
  const auto port = number(text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) {
    return fail(ErrorCode::kInvalid, fmt::format("'{}' has no port from 1 to 65535", text));
  }
  return Endpoint{std::string(text.substr(0, colon)), static_cast<uint16_t>(*port)};
}

void append_command(std::string& out, const std::vector<std::string_view>& arguments) {
  fmt::format_to(std::back_inserter(out), "*{}\r\n", arguments.size());
  for (const std::string_view argument : arguments) {
    fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", argument.size(), argument);
  }
}

Result<BlockingClient> BlockingClient::connect(const Endpoint& endpoint, Nanos timeout_ns) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  if (inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr) != 1) {
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is not an IPv4 address", endpoint.host));
  }
  BlockingClient client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.fd_ < 0) return fail_errno("socket", errno);
  const timeval timeout{timeout_ns / kSecond, timeout_ns % kSecond / kMicrosecond};
  const int one = 1;
  setsockopt(client.fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(client.fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  setsockopt(client.fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (::connect(client.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno(fmt::format("connect {}:{}", endpoint.host, endpoint.port), errno);
  }
  return client;
}

BlockingClient::BlockingClient(BlockingClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      consumed_(std::exchange(other.consumed_, 0)) {}

BlockingClient& BlockingClient::operator=(BlockingClient&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(buffer_, other.buffer_);
  std::swap(consumed_, other.consumed_);
  return *this;
}

BlockingClient::~BlockingClient() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> BlockingClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return fail_errno("send", errno);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

Result<> BlockingClient::fill() {
  char chunk[16384];
  const ssize_t got = ::recv(fd_, chunk, sizeof chunk, 0);
  if (got < 0) return fail_errno("recv", errno);
  if (got == 0) return fail(ErrorCode::kUnavailable, "the peer closed the connection");
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  }
  buffer_.append(chunk, static_cast<size_t>(got));
  return {};
}

Result<std::string> BlockingClient::line() {
  for (;;) {
    const size_t end = buffer_.find("\r\n", consumed_);
    if (end != std::string::npos) {
      std::string text = buffer_.substr(consumed_, end - consumed_);
      consumed_ = end + 2;
      return text;
    }
    if (auto filled = fill(); !filled) return tl::unexpected(filled.error());
  }
}

Result<std::string> BlockingClient::bytes(size_t count) {
  while (buffer_.size() - consumed_ < count + 2) {
    if (auto filled = fill(); !filled) return tl::unexpected(filled.error());
  }
  std::string text = buffer_.substr(consumed_, count);
  consumed_ += count + 2;
  return text;
}

Result<Reply> BlockingClient::receive() {
  auto head = line();
  if (!head) return tl::unexpected(head.error());
  if (head->empty()) return fail(ErrorCode::kInvalid, "an empty line for a reply");
  Reply reply{head->front(), head->substr(1), {}};
  if (reply.type == '+' || reply.type == '-' || reply.type == ':') return reply;
  if (reply.type != '$' && reply.type != '*') {
    return fail(ErrorCode::kInvalid, fmt::format("a reply of type '{}'", reply.type));
  }
  const auto count = number(reply.text);
  if (!count) return tl::unexpected(count.error());
  if (*count < 0) return Reply{'_', {}, {}};
  if (reply.type == '$') {
    auto text = bytes(static_cast<size_t>(*count));
    if (!text) return tl::unexpected(text.error());
    reply.text = std::move(*text);
    return reply;
  }
  for (int64_t i = 0; i < *count; ++i) {
    auto element = receive();
    if (!element) return element;
    reply.elements.push_back(std::move(*element));
  }
  return reply;
}

Result<Reply> BlockingClient::call(const std::vector<std::string_view>& arguments) {
  std::string request;
  append_command(request, arguments);
  if (auto sent = send(request); !sent) return tl::unexpected(sent.error());
  return receive();
}

}  // namespace ballast::faults
