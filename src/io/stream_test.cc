// SPDX-License-Identifier: Apache-2.0
#include "io/stream.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "io/listener.h"

namespace ballast::io {
namespace {

class Echo final : public StreamSink {
 public:
  size_t on_data(std::string_view data, Nanos) override {
    received.append(data);
    if (stream != nullptr && echo) stream->write(data);
    if (on_receive) on_receive();
    return data.size();
  }
  void on_closed(const std::string& cause) override {
    closed = cause;
    stream = nullptr;
    if (on_close) on_close();
  }
  void on_connected() override { connected = true; }

  Stream* stream = nullptr;
  bool echo = false;
  bool connected = false;
  std::string received;
  std::string closed;
  std::function<void()> on_receive;
  std::function<void()> on_close;
};

class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(*Loop::create());
    server_.echo = true;
    listener_ = std::move(*Listener::create(*loop_, *resolve("127.0.0.1", 0), [this](Fd fd) {
      server_.stream = *Stream::create(*loop_, std::move(fd), false, &server_);
    }));
    auto fd = connect_tcp(listener_->address());
    client_.stream = *Stream::create(*loop_, std::move(*fd), true, &client_);
    loop_->after(10 * kSecond, [this] { loop_->stop(); });
  }

  void TearDown() override {
    for (Echo* end : {&server_, &client_}) {
      if (end->stream != nullptr) end->stream->close();
    }
  }

  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Listener> listener_;
  Echo server_;
  Echo client_;
};

TEST_F(StreamTest, EchoesMegabytesWrittenBeforeTheConnectionStands) {
  std::string sent;
  for (int i = 0; i < 1'000'000; ++i) sent += std::to_string(i);
  client_.stream->write(sent);
  client_.on_receive = [&] {
    if (client_.received.size() == sent.size()) loop_->stop();
  };
  loop_->run();
  EXPECT_TRUE(client_.connected);
  EXPECT_TRUE(client_.received == sent);
}

TEST_F(StreamTest, PausedReaderGetsEverythingAfterResuming) {
  std::string sent(3'000'000, 'x');
  client_.stream->write(sent);
  client_.stream->pause_reading();
  loop_->after(50 * kMillisecond, [&] {
    EXPECT_EQ(client_.received.size(), 0U);
    client_.stream->resume_reading();
  });
  client_.on_receive = [&] {
    if (client_.received.size() == sent.size()) loop_->stop();
  };
  loop_->run();
  EXPECT_EQ(client_.received.size(), sent.size());
}

TEST_F(StreamTest, CloseAfterFlushDeliversAllThenCloses) {
  server_.on_receive = [this] {
    server_.stream->write(std::string(2'000'000, 'y'));
    std::exchange(server_.stream, nullptr)->close_after_flush();
  };
  client_.stream->write(std::string_view("go"));
  client_.on_close = [this] { loop_->stop(); };
  loop_->run();
  EXPECT_EQ(client_.received.size(), 2'000'002U);
  EXPECT_EQ(client_.closed, "closed by the peer");
}

TEST_F(StreamTest, RefusedConnectNamesTheCause) {
  const Address gone = listener_->address();
  loop_->dispose(std::move(listener_));
  client_.stream->close();
  loop_->after(20 * kMillisecond, [&] {
    auto fd = connect_tcp(gone);
    client_.stream = *Stream::create(*loop_, std::move(*fd), true, &client_);
  });
  client_.on_close = [this] { loop_->stop(); };
  loop_->run();
  EXPECT_EQ(client_.closed, "Connection refused");
}

}  // namespace
}  // namespace ballast::io
