// SPDX-License-Identifier: Apache-2.0
#include "app/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ballast::app {
namespace {

// What a manager bound at `name` gets; "@" begins an abstract name.
std::string heard_at(const std::string& name, const std::string& state) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  void* generic = &address;
  EXPECT_EQ(bind(fd, static_cast<sockaddr*>(generic), length), 0);
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  const Result<> sent = notify_service_manager(state);
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(sent) << sent.error().message;
  char buffer[256];
  const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
  close(fd);
  return std::string(buffer, got > 0 ? static_cast<size_t>(got) : 0);
}

TEST(Notify, SendsTheStateToTheSocketOfEitherKind) {
  const std::string path = testing::TempDir() + "/ballast-notify-" + std::to_string(getpid());
  EXPECT_EQ(heard_at(path, "READY=1"), "READY=1");
  unlink(path.c_str());
  EXPECT_EQ(heard_at("@ballast-notify-" + std::to_string(getpid()), "STOPPING=1"), "STOPPING=1");
}

TEST(Notify, WithoutAManagerItDoesNothingAndAWrongPathIsNamed) {
  EXPECT_TRUE(notify_service_manager("READY=1"));
  setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
  const Result<> sent = notify_service_manager("READY=1");
  unsetenv("NOTIFY_SOCKET");
  ASSERT_FALSE(sent);
  EXPECT_NE(sent.error().message.find("/nowhere/notify"), std::string::npos);
}

}  // namespace
}  // namespace ballast::app
