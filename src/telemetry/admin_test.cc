// SPDX-License-Identifier: Apache-2.0
#include "telemetry/admin.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
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
    handlers.metrics = [] { return std::string("ballast_up 1\n"); };
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

TEST_F(Admin, ConnectionsAreBounded) {
  AdminLimits limits;
  limits.connections = 2;
  start(limits);
  auto first = std::make_unique<Client>(server_->address());
  Client second(server_->address());
  first->send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  second.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(has(first->receive("ok\n"), "200 OK"));
  EXPECT_TRUE(has(second.receive("ok\n"), "200 OK"));
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

}  // namespace
}  // namespace ballast::telemetry
