// SPDX-License-Identifier: Apache-2.0
// A real redis-server for tests: started on a free loopback port, ended with the object. Also a
// plain blocking connection to it. Header only; include it as "redis_server.h".
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "proto/resp_reply.h"
#include "proto/resp_write.h"

namespace ballast::test {

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A port that was free a moment ago; 0 if there is none.
inline uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  sockaddr* generic = reinterpret_cast<sockaddr*>(&address);
  const bool known = bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  close(fd);
  return known ? ntohs(address.sin_port) : uint16_t{0};
}

class RedisConnection {
 public:
  explicit RedisConnection(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = loopback(port);
    open_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;
  ~RedisConnection() { close(fd_); }

  bool is_open() const { return open_; }

  void send_bytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void finish_sending() { shutdown(fd_, SHUT_WR); }

  // One reply's bytes; what there is of it if the server closes or is silent for five seconds.
  std::string read_reply() {
    proto::ReplyScanner scanner;
    size_t scanned = 0;
    while (true) {
      const proto::Scan scan = scanner.scan(std::string_view(input_).substr(scanned));
      scanned += scan.consumed;
      if (scan.complete || scan.error || !read_more()) break;
    }
    std::string reply = input_.substr(0, scanned);
    input_.erase(0, scanned);
    return reply;
  }

  // All bytes until the server closes.
  std::string read_rest() {
    while (read_more()) {
    }
    return std::exchange(input_, {});
  }

  std::string command(std::initializer_list<std::string_view> args) {
    const std::vector<std::string_view> list(args);
    std::string request;
    proto::append_command(request, list);
    send_bytes(request);
    return read_reply();
  }

 private:
  bool read_more() {
    pollfd readable{fd_, POLLIN, 0};
    if (poll(&readable, 1, 5000) != 1) return false;
    std::array<char, 65536> piece;
    const ssize_t got = recv(fd_, piece.data(), piece.size(), 0);
    if (got <= 0) return false;
    input_.append(piece.data(), static_cast<size_t>(got));
    return true;
  }

  int fd_;
  bool open_ = false;
  std::string input_;
};

class RedisServer {
 public:
  // nullptr if redis-server is not installed or does not come up within ten seconds.
  static std::unique_ptr<RedisServer> start(std::vector<std::string> options = {}) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      std::unique_ptr<RedisServer> server(new RedisServer(options));
      if (server->wait_until_up()) return server;
    }
    return nullptr;
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  uint16_t port() const { return port_; }

 private:
  explicit RedisServer(const std::vector<std::string>& options) : port_(free_port()) {
    std::string folder = std::filesystem::temp_directory_path() / "ballast-redis-XXXXXX";
    if (mkdtemp(folder.data()) != nullptr) folder_ = folder;
    std::vector<std::string> words = {"redis-server",
                                      "--bind",
                                      "127.0.0.1",
                                      "--port",
                                      std::to_string(port_),
                                      "--dir",
                                      folder_,
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "no",
                                      "--logfile",
                                      "/dev/null",
                                      "--daemonize",
                                      "no"};
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the server ends with a test that crashes
    if (getppid() != parent) _exit(1);
    execvp(argv[0], argv.data());
    _exit(127);
  }

  bool wait_until_up() {
    for (int i = 0; i < 500 && pid_ > 0; ++i) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return false;
      }
      RedisConnection connection(port_);
      if (connection.is_open() && connection.command({"PING"}) == "+PONG\r\n") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  uint16_t port_;
  std::string folder_;
  pid_t pid_ = -1;
};

}  // namespace ballast::test
