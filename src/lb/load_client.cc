// SPDX-License-Identifier: Apache-2.0
#include "lb/load_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>

#include "base/random.h"
#include "io/socket.h"

namespace ballast::lb {
namespace {

constexpr size_t kMostCheckText = 4096;

// False: nothing until the deadline.
Result<bool> wait_for(int fd, short events, Nanos deadline) {
  for (;;) {
    const Nanos left = deadline - now_ns();
    if (left <= 0) return false;
    pollfd polled{fd, events, 0};
    const int ready = poll(&polled, 1, static_cast<int>(left / kMillisecond) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return fail_errno("poll", errno);
  }
}

auto silent(const model::Endpoint& agent, Nanos timeout, const std::string& heard) {
  return fail(ErrorCode::kTimeout,
              fmt::format("{}: no answer within {} ms{}", model::to_string(agent),
                          timeout / kMillisecond, heard.empty() ? "" : " but " + heard));
}

}  // namespace

Result<proto::LoadReport> ask_agent(const model::Endpoint& agent, const std::string& secret,
                                    Nanos timeout) {
  const Nanos deadline = now_ns() + timeout;
  const auto address = io::resolve(agent.host, agent.port);
  if (!address) return Unexpected(address.error());
  const auto socket = io::connect_udp(*address);
  if (!socket) return Unexpected(socket.error());
  const uint64_t nonce = system_seed();
  const proto::LoadSecret key(secret);
  const std::string request = proto::encode_load_request(nonce, key);
  if (::send(socket->get(), request.data(), request.size(), 0) < 0)
    return fail_errno("ask " + model::to_string(agent), errno);
  std::string heard;
  for (;;) {
    const auto ready = wait_for(socket->get(), POLLIN, deadline);
    if (!ready) return Unexpected(ready.error());
    if (!*ready) return silent(agent, timeout, heard);
    char datagram[proto::kLoadReportSize + 1];
    const ssize_t got = recv(socket->get(), datagram, sizeof datagram, 0);
    if (got < 0 && errno == ECONNREFUSED)
      return fail(ErrorCode::kUnavailable, model::to_string(agent) + ": no agent there");
    if (got < 0) continue;
    auto report = proto::decode_load_report({datagram, static_cast<size_t>(got)}, nonce, key);
    if (report) return report;
    heard = "something that is " + report.error().message;
  }
}

Result<proto::AgentCheck> ask_agent_check(const model::Endpoint& agent, Nanos timeout) {
  const Nanos deadline = now_ns() + timeout;
  const auto address = io::resolve(agent.host, agent.port);
  if (!address) return Unexpected(address.error());
  const auto socket = io::connect_tcp(*address);
  if (!socket) return Unexpected(socket.error());
  std::string text;
  while (text.find_first_of("\r\n") == std::string::npos && text.size() < kMostCheckText) {
    const auto ready = wait_for(socket->get(), POLLIN, deadline);
    if (!ready) return Unexpected(ready.error());
    if (!*ready) return silent(agent, timeout, text.empty() ? "" : "half a line");
    char piece[512];
    const ssize_t got = recv(socket->get(), piece, sizeof piece, 0);
    if (got < 0 && errno != EAGAIN && errno != EINTR)
      return fail_errno("ask " + model::to_string(agent), errno);
    if (got == 0) break;
    if (got > 0) text.append(piece, static_cast<size_t>(got));
  }
  auto check = proto::parse_agent_check(text);
  if (!check)
    return fail(ErrorCode::kInvalid, model::to_string(agent) + ": " + check.error().message);
  return check;
}

}  // namespace ballast::lb
