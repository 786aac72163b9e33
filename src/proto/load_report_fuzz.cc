// SPDX-License-Identifier: Apache-2.0
// Figures signed by who knows the secret but lies: the input stands for what is signed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "proto/load_report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ballast::proto::LoadSecret kSecret("known to the liar");
  std::string datagram(reinterpret_cast<const char*>(data), size);
  datagram += kSecret.mac(datagram);
  (void)ballast::proto::decode_load_request(datagram, kSecret);
  const auto report = ballast::proto::decode_load_report(datagram, 0, kSecret);
  if (!report) return 0;
  if (report->utilisation) BALLAST_CHECK(*report->utilisation >= 0 && *report->utilisation <= 1);
  if (report->cores) BALLAST_CHECK(*report->cores > 0);
  return 0;
}
