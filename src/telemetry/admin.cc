// SPDX-License-Identifier: Apache-2.0
#include "telemetry/admin.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <optional>
#include <set>
#include <thread>

namespace ballast::telemetry {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Protocol = asio::generic::stream_protocol;  // TCP or a Unix socket
using Acceptor = asio::basic_socket_acceptor<Protocol>;
using HttpStream = beast::basic_stream<Protocol>;
using boost::system::error_code;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kTextType = "text/plain; charset=utf-8";

Response answer(http::status status, const char* type, std::string body) {
  Response response{status, 11};
  response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.body() = std::move(body);
  return response;
}

Response readiness_answer(const Readiness& readiness, bool verbose) {
  std::string body;
  if (verbose) {
    for (const Check& check : readiness.checks) {
      body += fmt::format("[{}] {}{}{}\n", check.good ? "+" : "-", check.name,
                          check.detail.empty() ? "" : ": ", check.detail);
    }
  }
  body += readiness.ready ? "ready\n" : "not ready\n";
  return answer(readiness.ready ? http::status::ok : http::status::service_unavailable, kTextType,
                std::move(body));
}

constexpr const char* kApi = "/v1/";

// What is no %XX stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    const bool is_encoded = text[i] == '%' && i + 2 < text.size() &&
                            std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += is_encoded ? static_cast<char>(value) : text[i];
    if (is_encoded) i += 2;
  }
  return out;
}

std::map<std::string, std::string> read_query(std::string_view query) {
  std::map<std::string, std::string> read;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = equals < pair.size() ? pair.substr(equals + 1) : "";
    read[percent_decoded(pair.substr(0, equals))] = percent_decoded(value);
  }
  return read;
}

// A page in a browser may send requests to this machine: they carry an Origin, or a name that its
// owner let point here as the Host.
bool is_from_browser(const Request& request) {
  if (request.find(http::field::origin) != request.end()) return true;
  const auto host = request.find(http::field::host);
  if (host == request.end()) return false;
  std::string name(host->value());
  if (const size_t colon = name.rfind(':'); colon != std::string::npos && name.back() != ']')
    name.resize(colon);
  error_code error;
  if (name.size() > 2 && name.front() == '[') name = name.substr(1, name.size() - 2);
  (void)asio::ip::make_address(name, error);
  return error && name != "localhost";
}

Response api_answer(const AdminHandlers& handlers, const Request& request, std::string_view path,
                    std::string_view query) {
  if (is_from_browser(request))
    return answer(http::status::forbidden, "application/json",
                  R"({"error":"not from a browser; the Host must be an address or localhost"})");
  ApiAnswer said = handlers.api(
      {std::string(request.method_string()), std::string(path), read_query(query), request.body()});
  return answer(static_cast<http::status>(said.status), "application/json", std::move(said.body));
}

Response route(const AdminHandlers& handlers, const Request& request) {
  const std::string_view target(request.target().data(), request.target().size());
  const std::string_view path = target.substr(0, target.find('?'));
  const std::string_view query = path.size() < target.size() ? target.substr(path.size() + 1) : "";
  if (handlers.api && path.starts_with(kApi)) return api_answer(handlers, request, path, query);
  const std::pair<const char*, bool> known[] = {{"/metrics", bool(handlers.metrics)},
                                                {"/status", bool(handlers.status_json)},
                                                {"/livez", true},
                                                {"/readyz", bool(handlers.ready)},
                                                {"/healthz", true}};
  std::string there;
  bool is_there = false;
  for (const auto& [name, has_handler] : known) {
    if (!has_handler) continue;
    is_there = is_there || path == name;
    there += std::string(" ") + name;
  }
  if (!is_there)
    return answer(http::status::not_found, kTextType, "not found; there are" + there + "\n");
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    Response response = answer(http::status::method_not_allowed, kTextType, "only GET and HEAD\n");
    response.set(http::field::allow, "GET, HEAD");
    return response;
  }
  if (path == "/metrics") return answer(http::status::ok, kMetricsType, handlers.metrics());
  if (path == "/status") {
    return answer(http::status::ok, "application/json", handlers.status_json());
  }
  if (path == "/readyz") {
    return readiness_answer(handlers.ready(), query == "verbose" || query.starts_with("verbose="));
  }
  return answer(http::status::ok, kTextType, "ok\n");
}

// Status for a request that could not be read; nothing to answer when the client just left.
std::optional<http::status> status_of(error_code error) {
  if (error == http::error::header_limit) return http::status::request_header_fields_too_large;
  if (error == http::error::body_limit) return http::status::payload_too_large;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  if (error == beast::error::timeout) return {};
  const bool parsing = error.category() == make_error_code(http::error::bad_method).category();
  return parsing ? std::optional(http::status::bad_request) : std::nullopt;
}

class Session;

struct Shared {
  AdminHandlers handlers;
  AdminLimits limits;
  std::set<std::shared_ptr<Session>> sessions;
  bool stopping = false;
};

// One connection: reads a request, answers it, until either side has enough.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Protocol::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(shared_.limits.header_bytes);
    parser_->body_limit(shared_.limits.body_bytes);
    writing_ = false;
    reading_since_ = std::chrono::steady_clock::now();
    stream_.expires_after(shared_.limits.idle);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, size_t) { self->on_read(error); });
  }

  void close_if_idle() {
    if (!writing_) close();
  }

  // While it waits for a request, or for the rest of one.
  std::optional<std::chrono::steady_clock::time_point> reading_since() const {
    return writing_ ? std::nullopt : std::optional(reading_since_);
  }

  void refuse() {
    Response response =
        answer(http::status::service_unavailable, kTextType, "too many connections\n");
    write(std::move(response), false, false);
  }

 private:
  void on_read(error_code error) {
    if (error) {
      const auto status = status_of(error);
      if (!status) return close();
      return write(answer(*status, kTextType, error.message() + "\n"), false, false);
    }
    const Request& request = parser_->get();
    write(route(shared_.handlers, request), request.keep_alive(),
          request.method() == http::verb::head);
  }

  void write(Response response, bool keep_alive, bool head) {
    writing_ = true;
    keep_alive_ = keep_alive && !shared_.stopping;
    response_ = std::move(response);
    response_.keep_alive(keep_alive_);
    response_.content_length(response_.body().size());
    if (head) response_.body().clear();
    stream_.expires_after(shared_.limits.idle);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code error, size_t) {
      self->on_written(error);
    });
  }

  void on_written(error_code error) {
    if (error) return close();
    if (keep_alive_ && !shared_.stopping) return read();
    // Half-close and take what is still arriving, else the answer may be lost to a reset.
    stream_.socket().shutdown(Protocol::socket::shutdown_send, error);
    if (error || shared_.stopping) return close();
    stream_.expires_after(
        std::min<std::chrono::milliseconds>(shared_.limits.idle, std::chrono::milliseconds(1000)));
    writing_ = false;
    swallow(0);
  }

  void swallow(size_t so_far) {
    constexpr size_t kMostSwallowed = 256 * 1024;
    stream_.async_read_some(asio::buffer(scrap_),
                            [self = shared_from_this(), so_far](error_code error, size_t got) {
                              if (error || so_far + got > kMostSwallowed) return self->close();
                              self->swallow(so_far + got);
                            });
  }

  void close() {
    stream_.close();
    shared_.sessions.erase(shared_from_this());
  }

  HttpStream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
  std::array<char, 4096> scrap_;
  bool keep_alive_ = false;
  bool writing_ = false;
  std::chrono::steady_clock::time_point reading_since_{};
};

// Connections that send nothing are not to keep others out: the one that has waited longest goes.
void make_room(const std::set<std::shared_ptr<Session>>& sessions) {
  std::shared_ptr<Session> longest;
  for (const auto& session : sessions) {
    const auto since = session->reading_since();
    if (since && (!longest || *since < *longest->reading_since())) longest = session;
  }
  if (longest) longest->close_if_idle();
}

}  // namespace

class AdminServer::Impl {
 public:
  Impl(AdminHandlers handlers, AdminLimits limits)
      : acceptor_(context_), pause_(context_), grace_(context_) {
    shared_.handlers = std::move(handlers);
    shared_.limits = limits;
  }

  Result<> listen(const model::Endpoint& endpoint) {
    const bool is_unix = endpoint.host.starts_with('/');
    const Result<Protocol::endpoint> address =
        is_unix ? unix_address(endpoint) : tcp_address(endpoint);
    if (!address) return Unexpected(address.error());
    error_code error;
    const mode_t mask = is_unix ? umask(0177) : mode_t{0};
    acceptor_.open(address->protocol(), error);
    if (!error && !is_unix) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(*address, error);
    if (is_unix) umask(mask);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return fail_errno(fmt::format("cannot listen at {}", name_of(endpoint)), error.value());
    address_ = endpoint;
    if (is_unix) {
      path_ = endpoint.host;
    } else {
      const Protocol::endpoint local = acceptor_.local_endpoint(error);
      const auto* family = reinterpret_cast<const sockaddr*>(local.data());
      address_.port = ntohs(family->sa_family == AF_INET6
                                ? reinterpret_cast<const sockaddr_in6*>(family)->sin6_port
                                : reinterpret_cast<const sockaddr_in*>(family)->sin_port);
    }
    accept();
    thread_ = std::thread([this] { context_.run(); });
    return {};
  }

  const model::Endpoint& address() const { return address_; }

  void stop() {
    if (!thread_.joinable()) return;
    if (!path_.empty()) unlink(path_.c_str());
    asio::post(context_, [this] {
      shared_.stopping = true;
      error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      const auto sessions = shared_.sessions;
      for (const auto& session : sessions) session->close_if_idle();
      if (shared_.sessions.empty()) return;
      grace_.expires_after(std::chrono::seconds(1));
      grace_.async_wait([this](error_code) { context_.stop(); });
      watch_drain();
    });
    thread_.join();
    shared_.sessions.clear();
  }

 private:
  static std::string name_of(const model::Endpoint& endpoint) {
    return endpoint.host.starts_with('/') ? endpoint.host
                                          : "admin address " + model::to_string(endpoint);
  }

  Result<Protocol::endpoint> tcp_address(const model::Endpoint& endpoint) {
    error_code error;
    Tcp::resolver resolver(context_);
    const auto found = resolver.resolve(endpoint.host, std::to_string(endpoint.port),
                                        Tcp::resolver::passive, error);
    if (error)
      return fail(ErrorCode::kInvalid, fmt::format("{}: {}", name_of(endpoint), error.message()));
    return Protocol::endpoint(found.begin()->endpoint());
  }

  // Left behind by a process that was killed, a socket's file would keep this one from listening.
  Result<Protocol::endpoint> unix_address(const model::Endpoint& endpoint) {
    if (endpoint.host.size() >= sizeof(sockaddr_un::sun_path))
      return fail(ErrorCode::kInvalid, endpoint.host + ": too long for a Unix socket's path");
    const asio::local::stream_protocol::endpoint address(endpoint.host);
    struct stat file{};
    if (stat(endpoint.host.c_str(), &file) != 0) return Protocol::endpoint(address);
    error_code error;
    asio::local::stream_protocol::socket probe(context_);
    probe.connect(address, error);
    if (!error || !S_ISSOCK(file.st_mode))
      return fail(ErrorCode::kState, endpoint.host + (error ? ": there, and no socket"
                                                            : ": another process listens there"));
    unlink(endpoint.host.c_str());
    return Protocol::endpoint(address);
  }

  void accept() {
    acceptor_.async_accept([this](error_code error, Protocol::socket socket) {
      if (shared_.stopping) return;
      if (error) return accept_later();
      if (shared_.sessions.size() >= shared_.limits.connections) make_room(shared_.sessions);
      const bool full = shared_.sessions.size() >= shared_.limits.connections;
      // Refused connections are held for the moment of their answer; beyond that they are dropped.
      if (shared_.sessions.size() < 2 * shared_.limits.connections) {
        auto session = std::make_shared<Session>(std::move(socket), shared_);
        shared_.sessions.insert(session);
        full ? session->refuse() : session->read();
      }
      accept();
    });
  }

  // Out of file descriptors: trying again at once would spin.
  void accept_later() {
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](error_code error) {
      if (!error && !shared_.stopping) accept();
    });
  }

  void watch_drain() {
    pause_.expires_after(std::chrono::milliseconds(10));
    pause_.async_wait([this](error_code) {
      if (shared_.sessions.empty()) return static_cast<void>(grace_.cancel());
      watch_drain();
    });
  }

  asio::io_context context_{1};
  Acceptor acceptor_;
  asio::steady_timer pause_;
  asio::steady_timer grace_;
  Shared shared_;
  model::Endpoint address_;
  std::string path_;  // of a Unix socket
  std::thread thread_;
};

AdminServer::AdminServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AdminServer::~AdminServer() { stop(); }

Result<std::unique_ptr<AdminServer>> AdminServer::start(const model::Endpoint& endpoint,
                                                        AdminHandlers handlers,
                                                        AdminLimits limits) {
  auto impl = std::make_unique<Impl>(std::move(handlers), limits);
  if (const Result<> listening = impl->listen(endpoint); !listening) {
    return Unexpected(listening.error());
  }
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(impl)));
}

model::Endpoint AdminServer::address() const { return impl_->address(); }

void AdminServer::stop() { impl_->stop(); }

}  // namespace ballast::telemetry
