// SPDX-License-Identifier: Apache-2.0
// The client side of the administration's HTTP, for the commands that ask a running process.
#include <fmt/format.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "telemetry/admin.h"

namespace ballast::telemetry {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Protocol = asio::generic::stream_protocol;
using boost::system::error_code;

constexpr uint64_t kMostBody = 64 * model::kMiB;

bool is_unix(const model::Endpoint& endpoint) { return endpoint.host.starts_with('/'); }

std::string name_of(const model::Endpoint& endpoint) {
  return is_unix(endpoint) ? endpoint.host : "http://" + model::to_string(endpoint);
}

// One request: resolve, connect, write, read; the first error ends it.
class Call {
 public:
  Call(const model::Endpoint& endpoint, http::request<http::string_body> request)
      : resolver_(context_), stream_(context_), request_(std::move(request)) {
    request_.version(11);
    request_.set(http::field::host, is_unix(endpoint) ? "localhost" : model::to_string(endpoint));
    request_.set(http::field::connection, "close");
    request_.prepare_payload();
    parser_.body_limit(kMostBody);
    if (is_unix(endpoint)) {
      connect({asio::local::stream_protocol::endpoint(endpoint.host)});
      return;
    }
    resolver_.async_resolve(endpoint.host, std::to_string(endpoint.port),
                            [this](error_code error, const Tcp::resolver::results_type& found) {
                              if (failed(error)) return;
                              std::vector<Protocol::endpoint> addresses;
                              for (const auto& each : found)
                                addresses.emplace_back(each.endpoint());
                              connect(std::move(addresses));
                            });
  }

  error_code run(std::chrono::milliseconds timeout) {
    context_.run_for(timeout);
    if (!done_) error_ = asio::error::timed_out;
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

  void connect(std::vector<Protocol::endpoint> addresses) {
    addresses_ = std::move(addresses);
    stream_.async_connect(addresses_, [this](error_code error, const Protocol::endpoint&) {
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

  asio::io_context context_{1};
  Tcp::resolver resolver_;
  beast::basic_stream<Protocol> stream_;
  std::vector<Protocol::endpoint> addresses_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  error_code error_;
  bool done_ = false;
};

}  // namespace

Result<HttpAnswer> http_call(const model::Endpoint& endpoint, const std::string& method,
                             const std::string& target, const std::string& body,
                             std::chrono::milliseconds timeout) {
  http::request<http::string_body> request;
  request.method_string(method);
  request.target(target);
  request.body() = body;
  Call call(endpoint, std::move(request));
  if (const error_code error = call.run(timeout)) {
    const std::string where = is_unix(endpoint) ? endpoint.host : name_of(endpoint) + target;
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", where, error.message()));
  }
  return HttpAnswer{call.response().result_int(), call.response().body()};
}

Result<std::string> http_get(const model::Endpoint& endpoint, const std::string& path,
                             std::chrono::milliseconds timeout) {
  auto answer = http_call(endpoint, "GET", path, "", timeout);
  if (!answer) return Unexpected(answer.error());
  if (answer->status != 200) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("{}{}: answered {}", name_of(endpoint), path, answer->status));
  }
  return std::move(answer->body);
}

}  // namespace ballast::telemetry
