// SPDX-License-Identifier: Apache-2.0
#include "proto/load_report.h"

#include <gtest/gtest.h>

namespace ballast::proto {
namespace {

const LoadSecret kSecret("of the balancer and its agents");
constexpr uint64_t kNonce = 0x0123456789abcdef;

LoadReport full() {
  return {.incarnation = 7,
          .number = 1,
          .utilisation = 0.25,
          .cores = 1.5,
          .connections = 12,
          .accept_queue = 0,
          .latency_us = 1234};
}

TEST(LoadReport, ReadsBackWhatWasWritten) {
  const std::string request = encode_load_request(kNonce, kSecret);
  EXPECT_EQ(request.size(), kLoadRequestSize);
  EXPECT_EQ(decode_load_request(request, kSecret).value(), kNonce);
  LoadReport little;
  little.utilisation = 1;
  for (const LoadReport& report : {full(), little, LoadReport()}) {
    const std::string datagram = encode_load_report(report, kNonce, kSecret);
    EXPECT_EQ(datagram.size(), kLoadReportSize);
    EXPECT_EQ(decode_load_report(datagram, kNonce, kSecret).value(), report);
  }
}

TEST(LoadSecret, IsHmacSha256) {  // RFC 4231, test case 2, cut to 16 bytes
  const std::string mac = LoadSecret("Jefe").mac("what do ya want for nothing?");
  const unsigned char wanted[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
                                  0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7};
  EXPECT_EQ(mac, std::string(reinterpret_cast<const char*>(wanted), sizeof wanted));
}

TEST(LoadReport, EveryChangedBitIsSeen) {
  const std::string request = encode_load_request(kNonce, kSecret);
  const std::string report = encode_load_report(full(), kNonce, kSecret);
  for (size_t bit = 0; bit < 8 * report.size(); ++bit) {
    const auto flipped = [bit](std::string bytes) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      return bytes;
    };
    EXPECT_FALSE(decode_load_report(flipped(report), kNonce, kSecret)) << bit;
    if (bit < 8 * request.size()) {
      EXPECT_FALSE(decode_load_request(flipped(request), kSecret)) << bit;
    }
  }
}

TEST(LoadReport, AnotherSecretOrAnotherQuestionsAnswerIsRefused) {
  const std::string report = encode_load_report(full(), kNonce, kSecret);
  EXPECT_FALSE(decode_load_report(report, kNonce, LoadSecret("another")));
  EXPECT_EQ(decode_load_report(report, kNonce + 1, kSecret).error().message,
            "answers another request");
  EXPECT_FALSE(decode_load_request(encode_load_request(kNonce, LoadSecret("")), kSecret));
  EXPECT_FALSE(decode_load_request(report, kSecret));
  EXPECT_FALSE(decode_load_report(encode_load_request(kNonce, kSecret), kNonce, kSecret));
}

TEST(LoadReport, AnyOtherLengthIsRefused) {
  const std::string report = encode_load_report(full(), kNonce, kSecret);
  for (size_t size = 0; size < report.size(); ++size) {
    EXPECT_FALSE(decode_load_report(report.substr(0, size), kNonce, kSecret)) << size;
    EXPECT_FALSE(decode_load_request(report.substr(0, size), kSecret)) << size;
  }
  EXPECT_FALSE(decode_load_report(report + "x", kNonce, kSecret));
}

TEST(LoadReport, WhatCannotBeIsWrittenAsTheNearestThatCan) {
  LoadReport lies = full();
  lies.utilisation = 3;
  EXPECT_EQ(decode_load_report(encode_load_report(lies, 1, kSecret), 1, kSecret)->utilisation, 1);
  lies.utilisation = -1;
  EXPECT_EQ(decode_load_report(encode_load_report(lies, 1, kSecret), 1, kSecret)->utilisation, 0);
  lies.cores = 0;
  EXPECT_EQ(decode_load_report(encode_load_report(lies, 1, kSecret), 1, kSecret).error().message,
            "says that it has no capacity");
}

}  // namespace
}  // namespace ballast::proto
