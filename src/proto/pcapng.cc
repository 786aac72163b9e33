// SPDX-License-Identifier: Apache-2.0
#include "proto/pcapng.h"

#include <cstring>

namespace ballast::proto {
namespace {

enum : uint32_t { kSection = 0x0A0D0D0A, kInterface = 1, kEnhancedPacket = 6 };
constexpr uint32_t kByteOrder = 0x1A2B3C4D;
constexpr uint16_t kEthernet = 1;

// Of options; the same number may mean another thing in another block.
enum : uint16_t {
  kEnd = 0,
  kComment = 1,
  kApplication = 4,     // of a section
  kName = 2,            // of an interface
  kTimeResolution = 9,  // of an interface
  kFlags = 2,           // of a packet
  kPacketId = 5,        // of a packet
  kVerdict = 7,         // of a packet
};
constexpr uint8_t kVerdictByXdp = 1;
constexpr uint8_t kNanoseconds = 9;  // 10^-9 s
constexpr uint32_t kInbound = 1;
constexpr uint32_t kOutbound = 2;

template <typename Number>
void put(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void put_padded(std::string& out, std::string_view bytes) {
  out += bytes;
  out.append((4 - bytes.size() % 4) % 4, '\0');
}

void put_option(std::string& out, uint16_t code, std::string_view value) {
  const std::string_view cut = value.substr(0, UINT16_MAX);
  put(out, code);
  put(out, static_cast<uint16_t>(cut.size()));
  put_padded(out, cut);
}

template <typename Number>
void put_number(std::string& out, uint16_t code, Number number) {
  std::string value;
  put(value, number);
  put_option(out, code, value);
}

std::string block(uint32_t type, std::string body) {
  put_option(body, kEnd, "");
  const auto length = static_cast<uint32_t>(body.size() + 12);
  std::string out;
  put(out, type);
  put(out, length);
  out += body;
  put(out, length);
  return out;
}

}  // namespace

std::string pcapng_section(std::string_view application) {
  std::string body;
  put(body, kByteOrder);
  put(body, uint16_t{1});  // version 1.0
  put(body, uint16_t{0});
  put(body, int64_t{-1});  // the section's length is not known
  put_option(body, kApplication, application);
  return block(kSection, std::move(body));
}

std::string pcapng_interface(std::string_view name, uint32_t most_captured) {
  std::string body;
  put(body, kEthernet);
  put(body, uint16_t{0});
  put(body, most_captured);
  put_option(body, kName, name);
  put_number(body, kTimeResolution, kNanoseconds);
  return block(kInterface, std::move(body));
}

std::string pcapng_packet(const PcapngPacket& packet) {
  std::string body;
  put(body, packet.interface);
  put(body, static_cast<uint32_t>(packet.time_ns >> 32));
  put(body, static_cast<uint32_t>(packet.time_ns));
  put(body, static_cast<uint32_t>(packet.bytes.size()));
  put(body, packet.length);
  put_padded(body, {reinterpret_cast<const char*>(packet.bytes.data()), packet.bytes.size()});
  put_number(body, kFlags, packet.is_outbound ? kOutbound : kInbound);
  put_number(body, kPacketId, packet.id);
  if (packet.verdict) {
    std::string verdict;
    put(verdict, kVerdictByXdp);
    put(verdict, *packet.verdict);
    put_option(body, kVerdict, verdict);
  }
  if (!packet.comment.empty()) put_option(body, kComment, packet.comment);
  return block(kEnhancedPacket, std::move(body));
}

}  // namespace ballast::proto
