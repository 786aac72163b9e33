// SPDX-License-Identifier: Apache-2.0
// Writes captures in the format pcapng (draft-ietf-opsawg-pcapng), with what became of each packet.
// Blocks are in this machine's byte order, as the format allows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ballast::proto {

// The section's header, which a file begins with.
std::string pcapng_section(std::string_view application);

// An Ethernet interface; packets name it by how many came before it in the section.
std::string pcapng_interface(std::string_view name, uint32_t most_captured);

struct PcapngPacket {
  uint32_t interface = 0;
  uint64_t time_ns = 0;  // since 1970
  uint32_t length = 0;   // on the wire; `bytes` may be fewer
  std::span<const uint8_t> bytes = {};
  bool is_outbound = false;
  uint64_t id = 0;                       // the same for one packet at two interfaces
  std::optional<uint64_t> verdict = {};  // enum xdp_action
  std::string comment = {};
};

std::string pcapng_packet(const PcapngPacket& packet);

}  // namespace ballast::proto
