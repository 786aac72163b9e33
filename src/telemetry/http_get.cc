// SPDX-License-Identifier: Apache-2.0
// The client side of the administration's HTTP, for `ballast cache status`.
#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "telemetry/admin.h"

namespace ballast::telemetry {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = boost::asio::ip::tcp;
using boost::system::error_code;

constexpr uint64_t kMostBody = 64 * model::kMiB;

// One request: resolve, connect, write, read; the first error ends it.
class Fetch {
 public:
  Fetch(const model::Endpoint& endpoint, const std::string& path)
      : resolver_(context_), stream_(context_) {
    request_.method(http::verb::get);
    request_.target(path);
    request_.version(11);
    request_.set(http::field::host, model::to_string(endpoint));
    request_.set(http::field::connection, "close");
    parser_.body_limit(kMostBody);
    resolver_.async_resolve(endpoint.host, std::to_string(endpoint.port),
                            [this](error_code error, const Tcp::resolver::results_type& found) {
                              if (failed(error)) return;
                              connect(found);
                            });
  }

  error_code run(std::chrono::milliseconds timeout) {
    context_.run_for(timeout);
    if (!done_) error_ = boost::asio::error::timed_out;
    return error_;
  }

  const http::response<http::string_body>& response() const { return parser_.get(); }

 private:
  bool failed(error_code error) {
    if (error) {
      error_ = error;
      done_ = true;
    }
    return done_;
  }

  void connect(const Tcp::resolver::results_type& found) {
    stream_.async_connect(found, [this](error_code error, const Tcp::endpoint&) {
      if (failed(error)) return;
      http::async_write(stream_, request_, [this](error_code written, size_t) {
        if (failed(written)) return;
        http::async_read(stream_, buffer_, parser_, [this](error_code read, size_t) {
          failed(read);
          done_ = true;
        });
      });
    });
  }

  boost::asio::io_context context_{1};
  Tcp::resolver resolver_;
  beast::tcp_stream stream_;
  http::request<http::empty_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  error_code error_;
  bool done_ = false;
};

}  // namespace

Result<std::string> http_get(const model::Endpoint& endpoint, const std::string& path,
                             std::chrono::milliseconds timeout) {
  Fetch fetch(endpoint, path);
  if (const error_code error = fetch.run(timeout)) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("http://{}{}: {}", model::to_string(endpoint), path, error.message()));
  }
  if (fetch.response().result() != http::status::ok) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("http://{}{}: answered {}", model::to_string(endpoint), path,
                            fetch.response().result_int()));
  }
  return fetch.response().body();
}

}  // namespace ballast::telemetry
