// SPDX-License-Identifier: Apache-2.0
#include "app/lb_client.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/lb_config.h"
#include "telemetry/admin.h"

namespace ballast::app {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kTimeout{6000};
constexpr int kMostAttempts = 8;

Result<model::Endpoint> endpoint_of(const std::string& api) {
  if (api.starts_with('/')) return model::Endpoint{api, 0};
  auto parsed = model::parse_endpoint(api);
  if (!parsed || parsed->port == 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("\"{}\": give a Unix socket's path, or HOST:PORT", api));
  return *parsed;
}

Unexpected refused(const telemetry::HttpAnswer& answer) {
  const json body = json::parse(answer.body, nullptr, false);
  const bool has_words = body.is_object() && body.contains("error") && body["error"].is_string();
  const ErrorCode code = answer.status == 400   ? ErrorCode::kInvalid
                         : answer.status == 409 ? ErrorCode::kState
                                                : ErrorCode::kUnavailable;
  return fail(code, has_words ? body["error"].get<std::string>()
                              : fmt::format("the balancer answered {}", answer.status));
}

Unexpected not_understood() {
  return fail(ErrorCode::kUnavailable, "the balancer's answer is not understood");
}

}  // namespace

LbClient::LbClient() : api_(model::LbSettings().api) {
  const char* given = std::getenv("BALLAST_LB_API");
  if (given != nullptr && *given != '\0') api_ = given;
}

Flag LbClient::flag() {
  return {.name = "--api",
          .value = "PATH or H:P",
          .help = "the HTTP interface of `ballast lb run`; also BALLAST_LB_API",
          .default_text = model::LbSettings().api,
          .set = [this](const std::string& text) -> Result<> {
            if (const auto good = endpoint_of(text); !good) return Unexpected(good.error());
            api_ = text;
            return {};
          }};
}

Result<std::string> LbClient::call(const std::string& method, const std::string& target,
                                   const std::string& body) const {
  const auto endpoint = endpoint_of(api_);
  if (!endpoint) return Unexpected(endpoint.error());
  auto answer = telemetry::http_call(*endpoint, method, target, body, kTimeout);
  if (!answer)
    return fail(ErrorCode::kUnavailable,
                fmt::format("no balancer answers at {} ({}); is `ballast lb run` there, and its "
                            "api the same?",
                            api_, answer.error().message));
  if (answer->status != 200) return refused(*answer);
  return std::move(answer->body);
}

Result<std::string> LbClient::get(const std::string& target) const {
  return call("GET", target, "");
}

Result<LbState> LbClient::state() const {
  const auto text = get("/v1/config");
  if (!text) return Unexpected(text.error());
  auto vips = read_vips(api_, *text, true);
  if (!vips) return Unexpected(vips.error());
  const json root = json::parse(*text, nullptr, false);
  if (!root.contains("generation") || !root["generation"].is_number_unsigned())
    return not_understood();
  return LbState{std::move(*vips), root["generation"].get<uint64_t>()};
}

Result<std::vector<std::string>> LbClient::put(const std::vector<model::Vip>& vips,
                                               const std::string& query) const {
  const auto text = call("PUT", "/v1/config" + query, vips_json(vips));
  if (!text) return Unexpected(text.error());
  const json root = json::parse(*text, nullptr, false);
  if (!root.is_object() || !root.contains("changes") || !root["changes"].is_array())
    return not_understood();
  std::vector<std::string> changes;
  for (const json& line : root["changes"]) {
    if (!line.is_string()) return not_understood();
    changes.push_back(line.get<std::string>());
  }
  return changes;
}

Result<std::vector<std::string>> LbClient::replace(const std::vector<model::Vip>& vips,
                                                   bool is_dry_run) const {
  return put(vips, is_dry_run ? "?dry_run=1" : "");
}

Result<std::vector<std::string>> LbClient::change(const Edit& edit) const {
  Result<std::vector<std::string>> done;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    auto now = state();
    if (!now) return Unexpected(now.error());
    if (const Result<> edited = edit(now->vips); !edited) return Unexpected(edited.error());
    done = put(now->vips, fmt::format("?may_be_empty=1&generation={}", now->generation));
    if (done || done.error().code != ErrorCode::kState) return done;
  }
  return done;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
    out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

int lb_failed(const std::string& name, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), error.message.c_str());
  return error.code == ErrorCode::kInvalid ? kExitUsage : kExitFailed;
}

}  // namespace ballast::app
