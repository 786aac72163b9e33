// SPDX-License-Identifier: Apache-2.0
#include "proto/load_report.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ballast::proto {
namespace {

// Request: magic, nonce, MAC. Report: magic, nonce, incarnation, number, which of the five figures
// are there (bits from the lowest), the figures, MAC. Numbers are big endian.
constexpr std::string_view kRequestMagic = "BLQ1";
constexpr std::string_view kReportMagic = "BLR1";
constexpr size_t kMacSize = 16;
constexpr double kMillion = 1e6;   // utilisation
constexpr double kThousand = 1e3;  // cores

void append(std::string& out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(value >> shift));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number(size_t size) {
    uint64_t value = 0;
    for (const char byte : bytes_.substr(0, size)) value = value << 8 | static_cast<uint8_t>(byte);
    bytes_.remove_prefix(size);
    return value;
  }

 private:
  std::string_view bytes_;
};

bool authentic(std::string_view datagram, const LoadSecret& secret) {
  const std::string_view body = datagram.substr(0, datagram.size() - kMacSize);
  return CRYPTO_memcmp(secret.mac(body).data(), datagram.data() + body.size(), kMacSize) == 0;
}

uint32_t scaled(double value, double unit, double most) {
  return static_cast<uint32_t>(std::llround(std::clamp(value * unit, 0.0, most)));
}

}  // namespace

void LoadSecret::Free::operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }

LoadSecret::LoadSecret(std::string_view secret) {
  EVP_MAC* hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  BALLAST_CHECK(hmac != nullptr);
  context_.reset(EVP_MAC_CTX_new(hmac));
  EVP_MAC_free(hmac);
  char digest[] = "SHA256";
  const OSSL_PARAM settings[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                                 OSSL_PARAM_construct_end()};
  // OpenSSL takes no key where there is none of any length: an empty one is a zero byte's.
  const std::string key = secret.empty() ? std::string(1, '\0') : std::string(secret);
  BALLAST_CHECK(EVP_MAC_init(context_.get(), reinterpret_cast<const unsigned char*>(key.data()),
                             key.size(), settings) == 1);
}

std::string LoadSecret::mac(std::string_view bytes) const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  size_t size = 0;
  // Without a key this begins anew with the one it has.
  BALLAST_CHECK(EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1 &&
                EVP_MAC_update(context_.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                               bytes.size()) == 1 &&
                EVP_MAC_final(context_.get(), digest, &size, sizeof digest) == 1);
  return {reinterpret_cast<const char*>(digest), kMacSize};
}

std::string encode_load_request(uint64_t nonce, const LoadSecret& secret) {
  std::string out(kRequestMagic);
  append(out, nonce, 8);
  return out + secret.mac(out);
}

Result<uint64_t> decode_load_request(std::string_view datagram, const LoadSecret& secret) {
  if (datagram.size() != kLoadRequestSize || !datagram.starts_with(kRequestMagic))
    return fail(ErrorCode::kInvalid, "not a load request");
  if (!authentic(datagram, secret)) return fail(ErrorCode::kInvalid, "forged, or another secret");
  return Reader(datagram.substr(kRequestMagic.size())).number(8);
}

std::string encode_load_report(const LoadReport& report, uint64_t nonce, const LoadSecret& secret) {
  std::string out(kReportMagic);
  append(out, nonce, 8);
  append(out, report.incarnation, 8);
  append(out, report.number, 8);
  const std::optional<uint32_t> figures[] = {
      report.utilisation ? std::optional(scaled(*report.utilisation, kMillion, kMillion))
                         : std::nullopt,
      report.cores ? std::optional(scaled(*report.cores, kThousand, UINT32_MAX)) : std::nullopt,
      report.connections, report.accept_queue, report.latency_us};
  uint32_t present = 0;
  for (size_t i = 0; i < std::size(figures); ++i)
    present |= static_cast<uint32_t>(figures[i].has_value()) << i;
  append(out, present, 4);
  for (const auto& figure : figures) append(out, figure.value_or(0), 4);
  return out + secret.mac(out);
}

std::optional<uint64_t> load_report_nonce(std::string_view datagram) {
  if (datagram.size() != kLoadReportSize || !datagram.starts_with(kReportMagic)) return {};
  return Reader(datagram.substr(kReportMagic.size())).number(8);
}

Result<LoadReport> decode_load_report(std::string_view datagram, uint64_t nonce,
                                      const LoadSecret& secret) {
  if (datagram.size() != kLoadReportSize || !datagram.starts_with(kReportMagic))
    return fail(ErrorCode::kInvalid, "not a load report");
  if (!authentic(datagram, secret)) return fail(ErrorCode::kInvalid, "forged, or another secret");
  Reader reader(datagram.substr(kReportMagic.size()));
  if (reader.number(8) != nonce) return fail(ErrorCode::kInvalid, "answers another request");
  LoadReport report;
  report.incarnation = reader.number(8);
  report.number = reader.number(8);
  const auto present = static_cast<uint32_t>(reader.number(4));
  std::optional<uint32_t> figures[5];
  for (size_t i = 0; i < std::size(figures); ++i) {
    const auto figure = static_cast<uint32_t>(reader.number(4));
    if ((present >> i & 1) != 0) figures[i] = figure;
  }
  if (figures[0].value_or(0) > kMillion)
    return fail(ErrorCode::kInvalid, "says that more than all of the capacity is in use");
  if (figures[0]) report.utilisation = *figures[0] / kMillion;
  if (figures[1]) report.cores = *figures[1] / kThousand;
  if (report.cores && *report.cores == 0)
    return fail(ErrorCode::kInvalid, "says that it has no capacity");
  report.connections = figures[2];
  report.accept_queue = figures[3];
  report.latency_us = figures[4];
  return report;
}

}  // namespace ballast::proto
