// SPDX-License-Identifier: Apache-2.0
#include "lb/http_answer.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace ballast::lb {
namespace {

namespace http = boost::beast::http;

constexpr uint32_t kMostHeader = 16 * 1024;

}  // namespace

struct HttpAnswer::Parser : http::response_parser<http::string_body> {};

std::string http_request(const std::string& host, const std::string& path, bool keeps_connection) {
  return "GET " + path + " HTTP/1.1\r\nHost: " + host +
         "\r\nUser-Agent: ballast\r\nAccept: */*\r\n" +
         (keeps_connection ? "" : "Connection: close\r\n") + "\r\n";
}

HttpAnswer::HttpAnswer(size_t most_body)
    : most_body_(most_body), parser_(std::make_unique<Parser>()) {
  parser_->eager(true);
  parser_->header_limit(kMostHeader);
  parser_->body_limit(most_body);
}

HttpAnswer::~HttpAnswer() = default;
HttpAnswer::HttpAnswer(HttpAnswer&& other) noexcept = default;
HttpAnswer& HttpAnswer::operator=(HttpAnswer&& other) noexcept = default;

Result<size_t> HttpAnswer::take(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && !parser_->is_done()) {
    boost::system::error_code error;
    const size_t step =
        parser_->put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), error);
    used += step;
    if (error == http::error::need_more) break;
    if (error == http::error::body_limit || error == http::error::header_limit)
      return fail(ErrorCode::kLimit, "an HTTP answer that is too long");
    if (error) return fail(ErrorCode::kInvalid, "no HTTP answer: " + error.message());
    // Interim answers, e.g. 103, come before the one that was asked for.
    if (parser_->is_done() && parser_->get().result_int() < 200) *this = HttpAnswer(most_body_);
  }
  return used;
}

Result<> HttpAnswer::end() {
  if (parser_->is_done()) return {};
  boost::system::error_code error;
  if (parser_->got_some()) parser_->put_eof(error);
  if (error || !parser_->is_done())
    return fail(ErrorCode::kInvalid, "the connection ended in the middle of the answer");
  return {};
}

bool HttpAnswer::is_done() const { return parser_->is_done(); }
bool HttpAnswer::has_status() const { return parser_->is_header_done(); }
unsigned HttpAnswer::status() const { return parser_->get().result_int(); }
const std::string& HttpAnswer::body() const { return parser_->get().body(); }
bool HttpAnswer::keeps_connection() const { return parser_->get().keep_alive(); }

}  // namespace ballast::lb
