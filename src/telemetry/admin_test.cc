// SPDX-License-Identifier: Apache-2.0
#include "telemetry/admin.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

namespace ballast::telemetry {
namespace {

using std::chrono::milliseconds;

// A plain socket: what it sends and when is up to the test.
class Client {
 public:
  explicit Client(const model::Endpoint& endpoint) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    const timeval patience{5, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr generic;
    static_assert(sizeof generic == sizeof address);
    std::memcpy(&generic, &address, sizeof generic);
    connected_ = connect(fd_, &generic, sizeof generic) == 0;
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(const std::string& text) { ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }

  // Until the server closes, five seconds pass, or `stop` was seen.
  std::string receive(const std::string& stop = "") {
    std::string text;
    char buffer[4096];
    while (stop.empty() || text.find(stop) == std::string::npos) {
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class Admin : public testing::Test {
 protected:
  void start(AdminLimits limits = AdminLimits()) {
    AdminHandlers handlers;
    handlers.metrics = [this] { return metrics_; };
    handlers.status_json = [] { return std::string("{}\n"); };
    handlers.ready = [this] {
      return Readiness{ready_, {{"shard 127.0.0.1:7000", ready_, ready_ ? "" : "refused"}}};
    };
    auto started = AdminServer::start({"127.0.0.1", 0}, handlers, limits);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }

  std::string ask(const std::string& request) {
    Client client(server_->address());
    client.send(request);
    return client.receive();
  }

  std::string get(const std::string& target) {
    return ask("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  std::unique_ptr<AdminServer> server_;
  std::string metrics_ = "ballast_up 1\n";
  std::atomic<bool> ready_{true};
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Admin, AnswersItsPaths) {
  start();
  const std::string metrics = get("/metrics");
  EXPECT_TRUE(metrics.starts_with("HTTP/1.1 200 OK\r\n")) << metrics;
  EXPECT_TRUE(has(metrics, "Content-Type: text/plain; version=0.0.4")) << metrics;
  EXPECT_TRUE(metrics.ends_with("\r\n\r\nballast_up 1\n")) << metrics;
  EXPECT_TRUE(get("/status").ends_with("\r\n\r\n{}\n"));
  EXPECT_TRUE(get("/livez").ends_with("\r\n\r\nok\n"));
  EXPECT_TRUE(get("/healthz").ends_with("\r\n\r\nok\n"));
  EXPECT_TRUE(get("/readyz").ends_with("\r\n\r\nready\n"));
  EXPECT_TRUE(get("/readyz?verbose").ends_with("\r\n\r\n[+] shard 127.0.0.1:7000\nready\n"));
  ready_ = false;
  const std::string not_ready = get("/readyz?verbose");
  EXPECT_TRUE(not_ready.starts_with("HTTP/1.1 503 ")) << not_ready;
  EXPECT_TRUE(not_ready.ends_with("[-] shard 127.0.0.1:7000: refused\nnot ready\n")) << not_ready;
  EXPECT_TRUE(get("/livez").starts_with("HTTP/1.1 200 ")) << "not ready is not dead";
  EXPECT_EQ(*http_get(server_->address(), "/metrics", milliseconds(5000)), "ballast_up 1\n");
  EXPECT_TRUE(has(http_get(server_->address(), "/readyz", milliseconds(5000)).error().message,
                  "answered 503"));
}

TEST_F(Admin, RefusesTheRest) {
  start();
  EXPECT_TRUE(get("/").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(get("/metricsx").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(get("/../etc/passwd").starts_with("HTTP/1.1 404 "));
  const std::string post =
      ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab");
  EXPECT_TRUE(post.starts_with("HTTP/1.1 405 ")) << post;
  EXPECT_TRUE(has(post, "Allow: GET, HEAD\r\n")) << post;
  const std::string head = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has(head, "Content-Length: 13\r\n")) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST_F(Admin, MalformedAndOversizedRequestsGetAnErrorAndTheConnectionCloses) {
  start();
  for (const std::string request :
       {"*1\r\n$4\r\nPING\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x01\x02\x03\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n"}) {
    EXPECT_TRUE(ask(request).starts_with("HTTP/1.1 400 ")) << request;
  }
  EXPECT_TRUE(ask("GET / HTTP/1.1\r\nx: " + std::string(20'000, 'a') + "\r\n\r\n")
                  .starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(
      ask("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n").starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(get("/livez").starts_with("HTTP/1.1 200 "));
}

TEST_F(Admin, PipelinedRequestsOnOneConnectionAreAnsweredInOrder) {
  start();
  const std::string text =
      ask("GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /status HTTP/1.1\r\nHost: x\r\n"
          "Connection: close\r\n\r\n");
  EXPECT_LT(text.find("ok\n"), text.find("{}\n")) << text;
}

TEST_F(Admin, SlowClientsBlockNobodyAndAreClosed) {
  AdminLimits limits;
  limits.idle = milliseconds(300);
  start(limits);
  Client silent(server_->address());
  Client half(server_->address());
  half.send("GET /metrics HT");
  const Nanos before = now_ns();
  EXPECT_TRUE(get("/livez").starts_with("HTTP/1.1 200 "));
  EXPECT_LT(now_ns() - before, 250 * kMillisecond);
  EXPECT_EQ(silent.receive(), "");
  EXPECT_EQ(half.receive(), "");
  EXPECT_LT(now_ns() - before, 4 * kSecond);
}

TEST_F(Admin, SilentConnectionsKeepNobodyOut) {
  AdminLimits limits;
  limits.connections = 2;
  start(limits);
  Client first(server_->address());
  Client second(server_->address());
  first.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(first.receive("ok\n"), "200 OK"));
  second.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(second.receive("ok\n"), "200 OK"));
  Client third(server_->address());
  third.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(third.receive("ok\n"), "200 OK"));
  EXPECT_EQ(first.receive(), "");  // closed: it was silent for longest
  second.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(second.receive("ok\n"), "200 OK"));
}

TEST_F(Admin, ConnectionsAreBounded) {
  AdminLimits limits;
  limits.connections = 2;
  metrics_ = std::string(size_t{16} << 20, '#');  // more than the kernel holds of an answer
  start(limits);
  auto first = std::make_unique<Client>(server_->address());
  Client second(server_->address());
  for (Client* client : {first.get(), &second}) {
    client->send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(has(client->receive("\r\n\r\n"), "200 OK"));
  }
  EXPECT_TRUE(get("/livez").starts_with("HTTP/1.1 503 "));
  first.reset();
  std::string text;
  for (int i = 0; i < 100 && !text.starts_with("HTTP/1.1 200 "); ++i) {
    usleep(20'000);
    text = get("/livez");
  }
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 ")) << text;
}

TEST_F(Admin, StopsWithIdleConnectionsOpenAndRefusesNewOnes) {
  start();
  Client idle(server_->address());
  idle.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(idle.receive("ok\n"), "200 OK"));
  const model::Endpoint address = server_->address();
  const Nanos before = now_ns();
  server_->stop();
  server_->stop();
  EXPECT_LT(now_ns() - before, kSecond / 2);
  EXPECT_EQ(idle.receive(), "");
  EXPECT_FALSE(Client(address).connected());
}

TEST_F(Admin, AnAddressInUseIsNamed) {
  start();
  const auto second = AdminServer::start(server_->address(), {});
  ASSERT_FALSE(second);
  EXPECT_TRUE(has(second.error().message, model::to_string(server_->address())))
      << second.error().message;
  EXPECT_TRUE(has(second.error().message, "in use")) << second.error().message;
  EXPECT_FALSE(AdminServer::start({"host.invalid", 1}, {}));
}

// The caller's interface, at a Unix socket and at a loopback address.
class AdminApi : public testing::Test {
 protected:
  AdminApi() {
    char name[] = "/tmp/ballast-admin-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/api.sock";
  }
  ~AdminApi() override {
    server_.reset();
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  Result<> start(const model::Endpoint& endpoint) {
    AdminHandlers handlers;
    handlers.api = [this](const ApiRequest& request) {
      asked_ = request;
      return ApiAnswer{request.path == "/v1/bad" ? 409U : 200U,
                       "{\"length\":" + std::to_string(request.body.size()) + "}"};
    };
    AdminLimits limits;
    limits.body_bytes = 4096;
    auto started = AdminServer::start(endpoint, std::move(handlers), limits);
    if (!started) return Unexpected(started.error());
    server_ = std::move(*started);
    return {};
  }

  Result<HttpAnswer> call(const std::string& method, const std::string& target,
                          const std::string& body = "") {
    return http_call(server_->address(), method, target, body, milliseconds(5000));
  }

  std::string folder_;
  std::string path_;
  std::unique_ptr<AdminServer> server_;
  ApiRequest asked_;
};

TEST_F(AdminApi, TakesRequestsWithABody) {
  ASSERT_TRUE(start({path_, 0}));
  const auto put = call("PUT", "/v1/config?a=1&b=%5Bfd00%3A%3A1%5d%3a80&c&d=%zz%4", "{\"x\":1}");
  ASSERT_TRUE(put) << put.error().message;
  EXPECT_EQ(put->status, 200U);
  EXPECT_EQ(put->body, "{\"length\":7}");
  EXPECT_EQ(asked_.method, "PUT");
  EXPECT_EQ(asked_.path, "/v1/config");
  const std::map<std::string, std::string> query{
      {"a", "1"}, {"b", "[fd00::1]:80"}, {"c", ""}, {"d", "%zz%4"}};
  EXPECT_EQ(asked_.query, query);
  EXPECT_EQ(call("GET", "/v1/bad")->status, 409U);
  EXPECT_EQ(call("PUT", "/v1/config", std::string(4096, 'x'))->body, "{\"length\":4096}");
  EXPECT_EQ(call("PUT", "/v1/config", std::string(4097, 'x'))->status, 413U);
  EXPECT_EQ(call("GET", "/metrics")->status, 404U) << "there is no handler for it";
  EXPECT_EQ(call("GET", "/livez")->status, 200U);
}

TEST_F(AdminApi, ASocketIsItsOwnersAndGoesWithTheServer) {
  ASSERT_TRUE(start({path_, 0}));
  struct stat file{};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
  const auto first = std::move(server_);
  const Result<> second = start({path_, 0});
  ASSERT_FALSE(second) << "another one listens";
  EXPECT_TRUE(has(second.error().message, path_)) << second.error().message;
  first->stop();
  EXPECT_NE(stat(path_.c_str(), &file), 0);

  // Of a process that was killed only the file is left.
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(left);
  EXPECT_TRUE(start({path_, 0}));
  EXPECT_EQ(call("GET", "/v1/x")->status, 200U);
  server_->stop();

  close(open(path_.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_FALSE(start({path_, 0})) << "a file that is no socket stays";
  EXPECT_EQ(stat(path_.c_str(), &file), 0);
}

TEST_F(AdminApi, RefusesABrowsersRequests) {
  ASSERT_TRUE(start({"127.0.0.1", 0}));
  const auto ask = [&](const std::string& fields) {
    asked_ = {};
    Client client(server_->address());
    client.send("PUT /v1/config HTTP/1.1\r\n" + fields +
                "Content-Length: 2\r\nConnection: close\r\n\r\n{}");
    return client.receive();
  };
  const char* refused[] = {"Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n",
                           "Host: localhost\r\nOrigin: null\r\n", "Host: evil.example\r\n",
                           "Host: evil.example:9480\r\n", "Host: localhost.evil.example\r\n"};
  for (const char* fields : refused) {
    EXPECT_TRUE(ask(fields).starts_with("HTTP/1.1 403 ")) << fields;
    EXPECT_EQ(asked_.method, "") << fields << "must not reach the handler";
  }
  for (const char* fields : {"Host: 127.0.0.1\r\n", "Host: 127.0.0.1:9480\r\n",
                             "Host: localhost:1\r\n", "Host: [::1]:9480\r\n"})
    EXPECT_TRUE(ask(fields).starts_with("HTTP/1.1 200 ")) << fields;
}

}  // namespace
}  // namespace ballast::telemetry
