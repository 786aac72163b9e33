// SPDX-License-Identifier: Apache-2.0
#include "proto/request_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "proto/resp_write.h"
#include "proto/tcp_stream.h"

namespace ballast::proto {
namespace {

std::string command(std::initializer_list<std::string_view> args) {
  std::string out;
  append_command(out, std::vector<std::string_view>(args));
  return out;
}

// The commands seen, each as its first two arguments; what TcpStream hands out goes to them.
class Reader : public TcpStream::Sink {
 public:
  void start() override { requests_.start(); }
  void gap() override {
    requests_.gap();
    ++gaps;
  }
  void bytes(std::string_view data) override {
    requests_.bytes(data, [this](auto args) {
      seen.push_back(std::string(args[0]) + (args.size() > 1 ? " " + std::string(args[1]) : ""));
    });
  }
  const RequestStream& requests() const { return requests_; }

  std::vector<std::string> seen;
  int gaps = 0;

 private:
  RequestStream requests_;
};

using Seen = std::vector<std::string>;

TEST(RequestStream, CommandsHoweverTheyAreCut) {
  const std::string stream = command({"SET", "a", "1"}) + "PING\r\n" + command({"GET", "b"}) +
                             "*0\r\n" + "get 'c d'\r\n" + command({"MGET", "e", "f"});
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    Reader reader;
    reader.start();
    for (size_t at = 0; at < stream.size(); at += piece) reader.bytes(stream.substr(at, piece));
    ASSERT_EQ(reader.seen, (Seen{"SET a", "PING", "GET b", "get c d", "MGET e"})) << piece;
    EXPECT_EQ(reader.requests().losses(), 0U);
    EXPECT_EQ(reader.requests().held(), 0U);
  }
}

TEST(RequestStream, AfterAGapItGoesOnAtTheNextCommand) {
  const std::string tail = command({"SET", "x", "*1 $3 *9\r\n$"}) + command({"GET", "b"});
  for (size_t cut = 0; cut <= tail.size() - command({"GET", "b"}).size(); ++cut) {
    Reader reader;
    reader.gap();
    for (const char byte : tail.substr(cut)) reader.bytes({&byte, 1});
    ASSERT_EQ(reader.seen, cut == 0 ? (Seen{"SET x", "GET b"}) : Seen{"GET b"}) << cut;
  }
}

TEST(RequestStream, NonsenseIsSkipped) {
  Reader reader;
  reader.start();
  reader.bytes("*2\r\n$3\r\nGET\r\n!x" + command({"GET", "a"}) + "*999999999999\r\n" +
               command({"GET", "b"}) + std::string(100'000, '*') + command({"GET", "c"}));
  EXPECT_EQ(reader.seen, (Seen{"GET a", "GET b", "GET c"}));
  EXPECT_GT(reader.requests().losses(), 1U);
}

TEST(RequestStream, ALargeValueIsNotKept) {
  Reader reader;
  reader.start();
  const std::string value(size_t{20} << 20, 'v');
  const std::string stream = command({"SET", "big", value, "EX", "10"}) + command({"GET", "b"});
  size_t most = 0;
  for (size_t at = 0; at < stream.size(); at += 1460) {
    reader.bytes(std::string_view(stream).substr(at, 1460));
    most = std::max(most, reader.requests().held());
  }
  EXPECT_EQ(reader.seen, (Seen{"SET big", "GET b"}));
  EXPECT_LT(most, 2 * RequestStream::kMostArgument);
  EXPECT_EQ(reader.requests().losses(), 0U);
}

TEST(RequestStream, AnEndlessCommandIsGivenUp) {
  Reader reader;
  reader.start();
  reader.bytes("*1000000\r\n");
  const std::string argument = "$1000\r\n" + std::string(1000, 'x') + "\r\n";
  size_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    reader.bytes(argument);
    most = std::max(most, reader.requests().held());
  }
  EXPECT_LT(most, RequestStream::kMostCommand + 2000);
  reader.bytes(command({"GET", "b"}));
  EXPECT_EQ(reader.seen, Seen{"GET b"});
}

// Segments of a stream that begins with a SYN of `sequence`.
class Sender {
 public:
  explicit Sender(uint32_t sequence) : first_(sequence) {}
  TcpSegment syn() const {
    TcpSegment segment;
    segment.sequence = first_;
    segment.syn = true;
    return segment;
  }
  TcpSegment data(std::string_view stream, size_t at, size_t size) const {
    TcpSegment segment;
    segment.sequence = first_ + 1 + static_cast<uint32_t>(at);
    segment.payload = stream.substr(at, size);
    return segment;
  }

 private:
  uint32_t first_;
};

TEST(TcpStream, AnyOrderRepetitionAndOverlapGiveTheStream) {
  Random random(5);
  std::string stream;
  Seen expected;
  for (int i = 0; i < 60; ++i) {
    const std::string key = "key" + std::to_string(i);
    stream += command({"GET", key});
    expected.push_back("GET " + key);
  }
  for (int round = 0; round < 300; ++round) {
    const Sender sender(round % 2 == 0 ? 0xffffff00U : static_cast<uint32_t>(random.next()));
    Reader reader;
    TcpStream tcp;
    tcp.segment(sender.syn(), reader);
    std::vector<TcpSegment> segments;
    for (size_t at = 0; at < stream.size();) {
      const size_t size = 1 + random.below(100);
      const size_t back = std::min<size_t>(at, random.below(20));
      segments.push_back(sender.data(stream, at - back, size + back));
      if (random.below(4) == 0) segments.push_back(segments.back());
      at += size;
    }
    // Nobody overtakes more than a few others.
    for (size_t i = 0; i + 1 < segments.size(); ++i)
      std::swap(segments[i], segments[i + random.below(std::min<size_t>(8, segments.size() - i))]);
    for (const TcpSegment& segment : segments) {
      tcp.segment(segment, reader);
      if (random.below(10) == 0) tcp.segment(sender.syn(), reader);
    }
    ASSERT_EQ(reader.seen, expected) << round;
    ASSERT_EQ(reader.gaps, 0) << round;
  }
}

TEST(TcpStream, WhatNeverComesIsAGap) {
  std::string stream;
  for (int i = 0; i < 300; ++i) stream += command({"GET", "key" + std::to_string(i)});
  const Sender sender(7);
  Reader reader;
  TcpStream tcp;
  tcp.segment(sender.syn(), reader);
  for (size_t at = 0; at < stream.size(); at += 50)
    if (at != 1000) tcp.segment(sender.data(stream, at, 50), reader);
  tcp.finish(reader);
  EXPECT_EQ(reader.gaps, 1);
  EXPECT_GE(reader.seen.size(), 296U);
  EXPECT_EQ(reader.seen.back(), "GET key299");
}

TEST(TcpStream, MidStreamCutFramesAndNewConnections) {
  const std::string stream = command({"GET", "a"}) + command({"GET", "b"}) + command({"GET", "c"});
  const size_t one = command({"GET", "a"}).size();
  const Sender sender(7);
  Reader reader;
  TcpStream tcp;
  tcp.segment(sender.data(stream, 3, one - 3), reader);  // the beginning was not seen
  TcpSegment cut = sender.data(stream, one, 5);
  cut.missing = one - 5;
  tcp.segment(cut, reader);
  tcp.segment(sender.data(stream, 2 * one, one), reader);
  EXPECT_EQ(reader.seen, Seen{"GET c"});
  EXPECT_EQ(reader.gaps, 2);
  const Sender again(90'000);
  tcp.segment(again.syn(), reader);
  tcp.segment(again.data("PING\r\n", 0, 6), reader);
  EXPECT_EQ(reader.seen, (Seen{"GET c", "PING"}));
  TcpSegment keep_alive = again.data("x", 0, 1);
  tcp.segment(keep_alive, reader);
  TcpSegment wild = again.data(stream, 0, one);
  wild.sequence += 0x40000000;
  tcp.segment(wild, reader);
  EXPECT_EQ(reader.seen.back(), "GET a");
}

}  // namespace
}  // namespace ballast::proto
