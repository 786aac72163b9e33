// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as a client of instances needs it: a GET, and its answer read piece by piece (RFC 9112).
// Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ballast::lb {

std::string http_request(const std::string& host, const std::string& path, bool keeps_connection);

class HttpAnswer {
 public:
  explicit HttpAnswer(size_t most_body);
  ~HttpAnswer();
  HttpAnswer(HttpAnswer&& other) noexcept;
  HttpAnswer& operator=(HttpAnswer&& other) noexcept;

  // All bytes not consumed yet; gives how many are now. kInvalid for what is no HTTP, kLimit for a
  // body that is too long.
  Result<size_t> take(std::string_view bytes);
  // No more bytes come: the end of a body without a length, else an error.
  Result<> end();
  bool is_done() const;

  bool has_status() const;
  unsigned status() const;
  // Once it is done.
  const std::string& body() const;
  bool keeps_connection() const;

 private:
  struct Parser;
  size_t most_body_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace ballast::lb
