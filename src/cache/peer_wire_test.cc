// SPDX-License-Identifier: Apache-2.0
#include "cache/peer_wire.h"

#include <gtest/gtest.h>

#include "proto/resp_command.h"
#include "proto/resp_value.h"

namespace ballast::cache {
namespace {

std::string round_trip_home(const HomeMessage& message) {
  std::string wire;
  append_home_message(wire, message);
  proto::CommandParser parser;
  EXPECT_EQ(parser.parse(wire), proto::CommandParser::Status::kCommand);
  const auto parsed = parse_home_message(parser.args().subspan(1));
  if (!parsed) return "not parsed";
  std::string again;
  append_home_message(again, *parsed);
  return again == wire ? "" : again;
}

std::string round_trip_node(const NodeMessage& message) {
  std::string wire;
  append_node_message(wire, message);
  const auto value = proto::parse_value(wire);
  if (!value || value->children.empty() || value->children[0].string != kPushNode) return wire;
  std::vector<std::string_view> fields;
  for (size_t i = 1; i < value->children.size(); ++i) fields.push_back(value->children[i].string);
  const auto parsed = parse_node_message(fields);
  if (!parsed) return "not parsed";
  std::string again;
  append_node_message(again, *parsed);
  return again == wire ? "" : again;
}

TEST(PeerWire, EveryMessageToAHomeComesBackTheSame) {
  const std::string binary("a\0\r\n\xff", 5);
  for (const ToHome& message :
       {ToHome(Admit{binary, "", 7}), ToHome(Admit{"", binary, ~uint64_t{0}}),
        ToHome(Ack{binary, 3, 4}), ToHome(Release{"k", 9}), ToHome(Renew{1}),
        ToHome(DropAllAck{5, 6})})
    EXPECT_EQ(round_trip_home({~uint64_t{0}, 31, message}), "");
}

TEST(PeerWire, EveryMessageToANodeComesBackTheSame) {
  const std::string binary("a\0\r\n\xff", 5);
  Fill fill{};
  fill.key = binary;
  fill.reply = "$1\r\nx\r\n";
  fill.ttl_ms = -1;
  fill.version = 12;
  for (const ToNode& message :
       {ToNode{1, fill}, ToNode{2, Refuse{binary, 1}}, ToNode{3, Invalidate{"", 2}},
        ToNode{4, Lease{3}}, ToNode{~uint64_t{0}, DropAll{4}}})
    EXPECT_EQ(round_trip_node({3, message}), "");
}

TEST(PeerWire, WhatIsCutOrNoNumberIsNoMessage) {
  const std::string_view good[] = {"1", "2", "ack", "k", "3", "4"};
  for (size_t count = 0; count < 6; ++count)
    EXPECT_FALSE(parse_home_message(std::span(good, count)));
  EXPECT_TRUE(parse_home_message(good));
  const std::string_view bad[] = {"1", "2", "renew", "-1"};
  EXPECT_FALSE(parse_home_message(bad));
  const std::string_view long_one[] = {"1", "2", "renew", "1", "x"};
  EXPECT_FALSE(parse_home_message(long_one));
  const std::string_view unknown[] = {"1", "2", "melt", "1"};
  EXPECT_FALSE(parse_home_message(unknown));
}

}  // namespace
}  // namespace ballast::cache
