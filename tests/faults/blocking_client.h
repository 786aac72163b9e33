// SPDX-License-Identifier: Apache-2.0
// A RESP2 client on one blocking socket, as plain as can be: it must not share the product's
// parser, nor its mistakes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace ballast::faults {

struct Endpoint {
  std::string host;  // a dotted IPv4 address
  uint16_t port = 0;
};

Result<Endpoint> parse_endpoint(std::string_view text);

struct Reply {
  char type = 0;     // '+', '-', ':', '$', '*', or '_' for a null of either kind
  std::string text;  // of all but arrays
  std::vector<Reply> elements;
};

void append_command(std::string& out, const std::vector<std::string_view>& arguments);

class BlockingClient {
 public:
  // `timeout_ns` bounds the connect and each wait for bytes.
  static Result<BlockingClient> connect(const Endpoint& endpoint, Nanos timeout_ns);

  BlockingClient(BlockingClient&& other) noexcept;
  BlockingClient& operator=(BlockingClient&& other) noexcept;
  ~BlockingClient();

  Result<> send(std::string_view bytes);
  // After an error the connection is of no more use.
  Result<Reply> receive();
  Result<Reply> call(const std::vector<std::string_view>& arguments);

 private:
  explicit BlockingClient(int fd) : fd_(fd) {}
  Result<> fill();
  Result<std::string> line();
  Result<std::string> bytes(size_t count);

  int fd_ = -1;
  std::string buffer_;
  size_t consumed_ = 0;
};

}  // namespace ballast::faults
