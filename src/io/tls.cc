// SPDX-License-Identifier: Apache-2.0
#include "io/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <climits>

#include "base/check.h"

namespace ballast::io {
namespace {

Unexpected fail_tls(const std::string& what) {
  char text[256] = "unknown error";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return fail(ErrorCode::kInvalid, what + ": " + text);
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::server(const TlsFiles& files) {
  SSL_CTX* raw = SSL_CTX_new(TLS_server_method());
  BALLAST_CHECK(raw != nullptr);
  std::shared_ptr<TlsContext> context(new TlsContext(raw));
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION);
  if (SSL_CTX_use_certificate_chain_file(raw, files.cert.c_str()) != 1)
    return fail_tls("TLS certificate " + files.cert);
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail_tls("TLS key " + files.key);
  // A session taken up again carries its client's certificate only within one context.
  static constexpr unsigned char kSessions[] = "ballast";
  SSL_CTX_set_session_id_context(raw, kSessions, sizeof kSessions - 1);
  if (files.client == TlsFiles::ClientCertificate::kNone) return context;
  const auto verified = context->verify_clients(files);
  if (!verified) return Unexpected(verified.error());
  return context;
}

Result<> TlsContext::verify_clients(const TlsFiles& files) {
  if (files.ca.empty()) {
    if (SSL_CTX_set_default_verify_paths(context_) != 1) return fail_tls("TLS system roots");
  } else {
    if (SSL_CTX_load_verify_locations(context_, files.ca.c_str(), nullptr) != 1)
      return fail_tls("TLS CA " + files.ca);
    // Tells clients which of their certificates is wanted.
    SSL_CTX_set_client_CA_list(context_, SSL_load_client_CA_file(files.ca.c_str()));
  }
  const bool required = files.client == TlsFiles::ClientCertificate::kRequired;
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return {};
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsSession::TlsSession(std::shared_ptr<TlsContext> context)
    : context_(std::move(context)),
      ssl_(SSL_new(context_->context_)),
      in_(BIO_new(BIO_s_mem())),
      out_(BIO_new(BIO_s_mem())) {
  BALLAST_CHECK(ssl_ != nullptr && in_ != nullptr && out_ != nullptr);
  SSL_set_bio(ssl_, in_, out_);
  SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

bool TlsSession::receive(std::string_view encrypted, std::string& plain) {
  while (!encrypted.empty()) {
    const int piece = static_cast<int>(std::min<size_t>(encrypted.size(), INT_MAX));
    const int taken = BIO_write(in_, encrypted.data(), piece);
    if (taken <= 0) return false;
    encrypted.remove_prefix(static_cast<size_t>(taken));
  }
  char buffer[16 * 1024];
  for (;;) {
    const int got = SSL_read(ssl_, buffer, sizeof buffer);
    if (got > 0) {
      plain.append(buffer, static_cast<size_t>(got));
      continue;
    }
    const int error = SSL_get_error(ssl_, got);
    ERR_clear_error();
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }
}

bool TlsSession::send(std::string_view plain) {
  if (!established()) return false;
  while (!plain.empty()) {
    const int piece = static_cast<int>(std::min<size_t>(plain.size(), 1 << 20));
    const int taken = SSL_write(ssl_, plain.data(), piece);
    if (taken <= 0) {
      ERR_clear_error();
      return false;
    }
    plain.remove_prefix(static_cast<size_t>(taken));
  }
  return true;
}

void TlsSession::take_output(std::string& encrypted) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(out_, &data);
  if (size <= 0) return;
  encrypted.append(data, static_cast<size_t>(size));
  BIO_reset(out_);
}

void TlsSession::shut_down() {
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

bool TlsSession::established() const { return SSL_is_init_finished(ssl_) == 1; }

}  // namespace ballast::io
