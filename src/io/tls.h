// SPDX-License-Identifier: Apache-2.0
// TLS over memory: OpenSSL reads and writes buffers, the stream moves the bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;
struct bio_st;

namespace ballast::io {

struct TlsFiles {
  enum class ClientCertificate { kNone, kOptional, kRequired };

  std::string cert;  // PEM chain
  std::string key;   // PEM
  std::string ca;    // PEM, who signs client certificates; empty: the system's roots
  // A certificate that is shown must be right, also where none is needed.
  ClientCertificate client = ClientCertificate::kNone;
};

class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> server(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  Result<> verify_clients(const TlsFiles& files);
  ssl_ctx_st* context_;
};

class TlsSession {
 public:
  explicit TlsSession(std::shared_ptr<TlsContext> context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Takes bytes from the peer, appends what they decrypt to; false: the session is broken or was
  // closed by the peer.
  bool receive(std::string_view encrypted, std::string& plain);
  // Encrypts; false until the handshake is done (nothing taken) or when broken.
  bool send(std::string_view plain);
  // Bytes for the peer produced since the last call (handshake records too), appended.
  void take_output(std::string& encrypted);
  void shut_down();
  bool established() const;

 private:
  std::shared_ptr<TlsContext> context_;
  ssl_st* ssl_;
  bio_st* in_;
  bio_st* out_;
};

}  // namespace ballast::io
