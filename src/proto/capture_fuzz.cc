// SPDX-License-Identifier: Apache-2.0
// A capture as length-prefixed frames: nothing leaves its bounds, and memory stays bounded. The
// first byte is the link type; frames that are not TCP are taken as segments of one connection.
#include <string>

#include "base/check.h"
#include "proto/frame.h"
#include "proto/request_stream.h"
#include "proto/tcp_stream.h"

namespace ballast::proto {
namespace {

class Reader : public TcpStream::Sink {
 public:
  void start() override { requests_.start(); }
  void gap() override { requests_.gap(); }
  void bytes(std::string_view data) override {
    BALLAST_CHECK(!data.empty());
    requests_.bytes(data, [this](auto args) {
      BALLAST_CHECK(!args.empty());
      for (const std::string_view arg : args) seen_ += arg.size();
    });
    BALLAST_CHECK(requests_.held() <= RequestStream::kMostCommand + data.size());
  }

 private:
  RequestStream requests_;
  size_t seen_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const auto link = static_cast<LinkType>(data[0] % 5);
  input.remove_prefix(1);
  Reader reader;
  TcpStream tcp;
  while (!input.empty()) {
    const size_t length = std::min<size_t>(static_cast<uint8_t>(input[0]), input.size() - 1);
    const std::string frame(input.substr(1, length));  // a copy of its own: overruns are seen
    input.remove_prefix(1 + length);
    TcpSegment segment;
    if (parse_frame(link, frame, segment) != FrameKind::kTcp) {
      segment = {};
      segment.syn = length % 16 == 1;
      segment.sequence = length > 0 ? static_cast<uint8_t>(frame[0]) : 0;
      segment.payload = std::string_view(frame).substr(std::min<size_t>(1, length));
    }
    tcp.segment(segment, reader);
  }
  tcp.finish(reader);
  return 0;
}

}  // namespace ballast::proto
