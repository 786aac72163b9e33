// SPDX-License-Identifier: Apache-2.0
// The words between a tier's processes, all of them RESP3 and readable with redis-cli -3:
//   BALLAST.READ weight shard key command        router -> node; |1 {load: n}, then the reply or
//   -MISS BALLAST.WRITE id shard proto flags skip n key… wire   router -> leaf; later >4
//   ballast.wrote id reply BALLAST.HOME incarnation shard kind field…    node -> leaf, not answered
//   >… ballast.node shard epoch kind field…       leaf -> node
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cache/messages.h"

namespace ballast::cache {

inline constexpr std::string_view kPeerRead = "BALLAST.READ";
inline constexpr std::string_view kPeerWrite = "BALLAST.WRITE";
inline constexpr std::string_view kPeerHome = "BALLAST.HOME";
inline constexpr std::string_view kPushWrote = "ballast.wrote";
inline constexpr std::string_view kPushNode = "ballast.node";

struct HomeMessage {
  Incarnation node = 0;
  uint32_t shard = 0;
  ToHome message;
};
struct NodeMessage {
  uint32_t shard = 0;
  ToNode message;
};

void append_home_message(std::string& out, const HomeMessage& message);
// From a command's arguments after its name; nothing if they are not a message.
std::optional<HomeMessage> parse_home_message(std::span<const std::string_view> args);

void append_node_message(std::string& out, const NodeMessage& message);
std::optional<NodeMessage> parse_node_message(std::span<const std::string_view> fields);

// A decimal number filling `text`; false if it is none or does not fit.
bool parse_number(std::string_view text, uint64_t& number);

}  // namespace ballast::cache
