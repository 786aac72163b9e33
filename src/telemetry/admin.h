// SPDX-License-Identifier: Apache-2.0
// The administration's HTTP server, on a thread of its own: /metrics, /livez, /healthz,
// /readyz[?verbose], /status, and an interface of the caller's own under /v1/. No request can slow
// the data path but by what a handler does.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/tier.h"

namespace ballast::telemetry {

struct Check {
  std::string name;  // "shard 127.0.0.1:7000", "draining"
  bool good = true;
  std::string detail;
};

struct Readiness {
  bool ready = false;
  std::vector<Check> checks;  // shown by /readyz?verbose
};

struct ApiRequest {
  std::string method;  // "GET", "PUT", …
  std::string path;    // "/v1/config"
  std::map<std::string, std::string> query;
  std::string body;
};

struct ApiAnswer {
  unsigned status = 200;
  std::string body;  // JSON
};

// Called on the server's thread, one at a time; what they read of the data path they fetch safely.
// Two seconds is a long time for them: all other requests wait.
struct AdminHandlers {
  std::function<std::string()> metrics;      // text format 0.0.4
  std::function<std::string()> status_json;  // to_json(Status)
  std::function<Readiness()> ready;
  std::function<ApiAnswer(const ApiRequest&)> api = {};
};

struct AdminLimits {
  // One more takes the place of that which has waited longest for a request; while all are being
  // answered, it is answered 503 and closed.
  size_t connections = 64;
  uint32_t header_bytes = 8192;
  uint64_t body_bytes = 1024;
  std::chrono::milliseconds idle{10'000};  // to send a request, to take an answer, between them
};

class AdminServer {
 public:
  // Listening when it returns; the error names the address. A host that begins with / is the path
  // of a Unix socket, which only its owner may open; one that nobody listens at is replaced. What
  // has no handler is not found.
  static Result<std::unique_ptr<AdminServer>> start(const model::Endpoint& endpoint,
                                                    AdminHandlers handlers,
                                                    AdminLimits limits = AdminLimits());
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  model::Endpoint address() const;  // with the port the kernel chose
  // Closes idle connections, lets answers being sent go out for up to a second, joins the thread.
  // Not from a handler. Idempotent.
  void stop();

 private:
  class Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

// One request over HTTP, to a host or to a Unix socket as above. Blocks for up to `timeout`.
Result<HttpAnswer> http_call(const model::Endpoint& endpoint, const std::string& method,
                             const std::string& target, const std::string& body,
                             std::chrono::milliseconds timeout);

// GET of a path over HTTP; the body of a 200 answer. Blocks for up to `timeout`.
Result<std::string> http_get(const model::Endpoint& endpoint, const std::string& path,
                             std::chrono::milliseconds timeout);

}  // namespace ballast::telemetry
