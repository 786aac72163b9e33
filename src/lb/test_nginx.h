// SPDX-License-Identifier: Apache-2.0
// A real nginx for a test, on a loopback port of its own. Ends with the object.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/socket.h"

namespace ballast::lb {

class TestNginx {
 public:
  static constexpr const char* kProgram = "/usr/sbin/nginx";
  static bool is_installed() { return access(kProgram, X_OK) == 0; }

  // `locations`: of its one server.
  explicit TestNginx(const std::string& locations) {
    char name[] = "/tmp/ballast-nginx-XXXXXX";
    folder_ = mkdtemp(name);
    // Held until nginx is about to take it.
    auto held = io::listen_tcp(*io::resolve("127.0.0.1", 0));
    address_ = io::local_address(held->get());
    std::ofstream(folder_ / "conf")
        << "daemon off; master_process off; pid " << folder_.string() << "/pid;\n"
        << "events {}\nhttp { access_log off; keepalive_requests 7;\n"
        << "client_body_temp_path " << folder_.string() << "/a; proxy_temp_path "
        << folder_.string() << "/b;\nfastcgi_temp_path " << folder_.string()
        << "/c; uwsgi_temp_path " << folder_.string() << "/d;\nscgi_temp_path " << folder_.string()
        << "/e;\nserver { listen " << address_.text() << "; " << locations << " } }\n";
    held->reset();
    start();
  }
  ~TestNginx() {
    end();
    std::filesystem::remove_all(folder_);
  }
  TestNginx(const TestNginx&) = delete;
  TestNginx& operator=(const TestNginx&) = delete;

  const io::Address& address() const { return address_; }
  void send(int signal) const { kill(pid_, signal); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void start() {
    const std::string config = folder_ / "conf";
    const std::string log = folder_ / "log";
    pid_ = fork();
    if (pid_ == 0) {
      execl(kProgram, kProgram, "-e", log.c_str(), "-c", config.c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 500 && !is_listening(); ++i) usleep(10'000);
  }

 private:
  bool is_listening() const {
    const io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_.storage),
                   address_.length) == 0;
  }

  std::filesystem::path folder_;
  io::Address address_;
  pid_t pid_ = 0;
};

}  // namespace ballast::lb
