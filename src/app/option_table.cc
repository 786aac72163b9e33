// SPDX-License-Identifier: Apache-2.0
#include "app/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"

namespace ballast::app {
namespace {

using model::TierConfig;

constexpr const char* kMembers = "Members and addresses";
constexpr const char* kCache = "Cache";
constexpr const char* kCoherence = "Coherence and times";
constexpr const char* kSecrets = "Passwords and TLS";
constexpr const char* kLimits = "Limits";

template <auto Member>
Option text(const char* key, const char* value, const char* group, const char* help) {
  return {.key = key,
          .value = value,
          .group = group,
          .help = help,
          .set = [](TierConfig& config, std::string_view input) -> Result<> {
            config.*Member = std::string(input);
            return {};
          },
          .get = [](const TierConfig& config) { return config.*Member; }};
}

template <auto Member>
Option secret(const char* key, const char* help) {
  Option option = text<Member>(key, "SECRET", kSecrets, help);
  option.secret = true;
  option.in_file = false;
  return option;
}

template <auto Member>
Option endpoint(const char* key, const char* help) {
  return {.key = key,
          .value = "H:P",
          .group = kMembers,
          .help = help,
          .set = [](TierConfig& config, std::string_view input) -> Result<> {
            if (input.empty() || input == "off") {
              config.*Member = {};
              return {};
            }
            auto parsed = model::parse_endpoint(input);
            if (!parsed) return Unexpected(parsed.error());
            config.*Member = *parsed;
            return {};
          },
          .get =
              [](const TierConfig& config) {
                const std::string shown = model::to_string(config.*Member);
                return shown.empty() ? std::string("off") : shown;
              }};
}

// One field of a number-like type with its parser and formatter.
template <auto Member, auto Parse, auto Format>
Option parsed(const char* key, const char* value, const char* group, const char* help) {
  return {.key = key,
          .value = value,
          .group = group,
          .help = help,
          .set = [](TierConfig& config, std::string_view input) -> Result<> {
            auto result = Parse(input);
            if (!result) return Unexpected(result.error());
            config.*Member = *result;
            return {};
          },
          .get = [](const TierConfig& config) { return Format(config.*Member); }};
}

template <auto Member>
Option bytes(const char* key, const char* group, const char* help) {
  Option option = parsed<Member, parse_bytes, format_bytes>(key, "BYTES", group, help);
  option.form = Form::kBytes;
  return option;
}

template <auto Member>
Option duration(const char* key, const char* help) {
  return parsed<Member, parse_duration_ms, format_duration_ms>(key, "TIME", kCoherence, help);
}

std::string format_count(size_t count) { return fmt::format("{}", count); }

template <auto Member>
Option count(const char* key, const char* group, const char* help) {
  Option option = parsed<Member, parse_count, format_count>(key, "COUNT", group, help);
  option.form = Form::kNumber;
  return option;
}

template <auto Member>
Option rate(const char* key, const char* help) {
  Option option = parsed<Member, parse_rate, format_rate>(key, "REQ/S", kLimits, help);
  option.form = Form::kNumber;
  return option;
}

// A word out of an enum's values; model::to_string names them.
template <typename Enum, Enum Last>
Result<Enum> parse_word(std::string_view input) {
  std::string words;
  for (int i = 0; i <= static_cast<int>(Last); ++i) {
    const std::string_view word = model::to_string(static_cast<Enum>(i));
    if (word == input) return static_cast<Enum>(i);
    words += fmt::format("{}{}", i == 0 ? "" : ", ", word);
  }
  return fail(ErrorCode::kInvalid, fmt::format("\"{}\" is not one of: {}", input, words));
}

template <typename Enum>
std::string format_word(Enum value) {
  return std::string(model::to_string(value));
}

template <auto Member, typename Enum, Enum Last>
Option word(const char* key, const char* value, const char* group, const char* help) {
  return parsed<Member, parse_word<Enum, Last>, format_word<Enum>>(key, value, group, help);
}

template <auto Member>
Option tls_text(const char* key, const char* help) {
  return {.key = key,
          .value = "FILE",
          .group = kSecrets,
          .help = help,
          .set = [](TierConfig& config, std::string_view input) -> Result<> {
            if (!config.tls) config.tls.emplace();
            (*config.tls).*Member = std::string(input);
            if (config.tls == model::Tls{}) config.tls.reset();
            return {};
          },
          .get =
              [](const TierConfig& config) {
                return config.tls ? (*config.tls).*Member : std::string();
              }};
}

Option tls_client_auth() {
  return {.key = "tls_client_auth",
          .value = "none|optional|required",
          .group = kSecrets,
          .help = "whether clients must show a certificate",
          .set = [](TierConfig& config, std::string_view input) -> Result<> {
            using model::ClientCertificate;
            auto result = parse_word<ClientCertificate, ClientCertificate::kRequired>(input);
            if (!result) return Unexpected(result.error());
            if (!config.tls) config.tls.emplace();
            config.tls->client_auth = *result;
            if (config.tls == model::Tls{}) config.tls.reset();
            return {};
          },
          .get =
              [](const TierConfig& config) {
                return format_word(config.tls ? config.tls->client_auth
                                              : model::ClientCertificate::kNone);
              }};
}

Option admin_commands() {
  return {.key = "admin_commands",
          .value = "",
          .form = Form::kSwitch,
          .group = kLimits,
          .help = "let CONFIG SET, DEBUG and the like through, to every shard",
          .set = [](TierConfig& config, std::string_view input) -> Result<> {
            auto result = parse_switch(input);
            if (!result) return Unexpected(result.error());
            config.admin_commands = *result;
            return {};
          },
          .get =
              [](const TierConfig& config) {
                return std::string(config.admin_commands ? "true" : "false");
              }};
}

std::vector<std::string_view> split(std::string_view input, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = input.find(separator);
    parts.push_back(input.substr(0, at));
    if (at == std::string_view::npos) return parts;
    input.remove_prefix(at + 1);
  }
}

// Racks as flags and environment give them: shards joined by ',', racks by ';', named rack-N.
Result<> set_racks(TierConfig& config, std::string_view input) {
  std::vector<model::Rack> racks;
  for (const std::string_view part : split(input, ';')) {
    model::Rack rack{fmt::format("rack-{}", racks.size()), {}, {}};
    for (const std::string_view shard : split(part, ',')) {
      auto parsed_shard = model::parse_endpoint(shard);
      if (!parsed_shard) return Unexpected(parsed_shard.error());
      rack.shards.push_back(*parsed_shard);
    }
    racks.push_back(std::move(rack));
  }
  config.racks = std::move(racks);
  return {};
}

std::string get_racks(const TierConfig& config) {
  std::string out;
  for (const model::Rack& rack : config.racks) {
    if (!out.empty()) out += ';';
    for (size_t i = 0; i < rack.shards.size(); ++i) {
      out += (i == 0 ? "" : ",") + model::to_string(rack.shards[i]);
    }
  }
  return out;
}

Option racks() {
  return {.key = "rack",
          .value = "H:P[,H:P...]",
          .group = kMembers,
          .help =
              "a rack's shards: Redis-protocol primaries; racks are named rack-0, rack-1, ... "
              "(in the environment racks are joined by ';', in tier.toml use [[rack]])",
          .in_file = false,
          .set = set_racks,
          .get = get_racks};
}

Option spines() {
  return {.key = "spines",
          .value = "COUNT",
          .form = Form::kNumber,
          .group = kMembers,
          .help =
              "spine nodes of the one-process form, named spine-0, spine-1, ...; one for each "
              "rack when neither this nor [[spine]] is given",
          .set = [](TierConfig& config, std::string_view input) -> Result<> {
            auto result = parse_count(input);
            if (!result) return Unexpected(result.error());
            if (*result > 256) return fail(ErrorCode::kInvalid, "at most 256 spines");
            config.spines = model::numbered_spines(*result);
            return {};
          },
          .get = [](const TierConfig& config) { return format_count(config.spines.size()); }};
}

using model::ColdReads;
using model::Mechanism;

std::vector<Option> make_options() {
  std::vector<Option> all = {
      text<&TierConfig::tier>("tier", "NAME", kMembers,
                              "the tier's name, part of the names of its connections to shards"),
      text<&TierConfig::role_name>("name", "NAME", kMembers,
                                   "which rack's leaf or which spine this process is"),
      racks(),
      spines(),
      endpoint<&TierConfig::listen>("listen",
                                    "where clients connect; :P is 127.0.0.1:P, port 0 lets the "
                                    "kernel choose"),
      endpoint<&TierConfig::admin>("admin",
                                   "metrics, health and status over HTTP; port 0 lets the kernel "
                                   "choose, off for none"),
      word<&TierConfig::log_level, LogLevel, LogLevel::kError>(
          "log_level", "debug|info|warning|error", kMembers, "the least that is logged"),
      word<&TierConfig::mechanism, Mechanism, Mechanism::kNoCache>(
          "mechanism", "distcache|partition|replication|nocache", kCache,
          "how hot objects are spread over the nodes; the others are there to compare with"),
      word<&TierConfig::cold_reads, ColdReads, ColdReads::kViaLeaf>(
          "cold_reads", "direct|via-leaf", kCache,
          "the way of reads of keys not known to be cached: to the shard, or by its leaf"),
      count<&TierConfig::sample>("sample", kCache,
                                 "one cold read in this many goes through the nodes, so that they "
                                 "see what is hot"),
      bytes<&TierConfig::cache_memory>("cache_memory", kCache, "copies held by one node, at most"),
      count<&TierConfig::cache_objects>(
          "cache_objects", kCache,
          "objects held by one node, at most; 0 is bounded by memory only"),
      bytes<&TierConfig::max_object>("max_object", kCache, "a larger reply is not cached"),
      duration<&TierConfig::lease_ms>("lease",
                                      "how long a node may serve copies after its last renewal; a "
                                      "dead node delays a write at most that long"),
      duration<&TierConfig::heartbeat_ms>("heartbeat", "between renewals of a node's leases"),
      duration<&TierConfig::drift_margin_ms>(
          "drift_margin", "added to a lease by its giver, for clocks that run apart"),
      duration<&TierConfig::window_ms>("window", "over which a node counts its load"),
      duration<&TierConfig::shard_timeout_ms>("shard_timeout",
                                              "a command unanswered for so long is an error"),
      duration<&TierConfig::connect_timeout_ms>("connect_timeout",
                                                "to connect to a shard or another process"),
      secret<&TierConfig::password>("password", "what clients must give by AUTH"),
      text<&TierConfig::password_file>("password_file", "FILE", kSecrets,
                                       "file that holds what clients must give by AUTH"),
      text<&TierConfig::shard_user>("shard_user", "NAME", kSecrets,
                                    "user towards the shards; their default user when not given"),
      secret<&TierConfig::shard_password>("shard_password", "password towards the shards"),
      text<&TierConfig::shard_password_file>("shard_password_file", "FILE", kSecrets,
                                             "file that holds the password towards the shards"),
      tls_text<&model::Tls::cert_file>(
          "tls_cert", "certificate chain (PEM); with tls_key clients must speak TLS"),
      tls_text<&model::Tls::key_file>("tls_key", "private key (PEM)"),
      tls_text<&model::Tls::ca_file>("tls_ca", "who signs client certificates (PEM)"),
      tls_client_auth(),
      count<&TierConfig::max_clients>("max_clients", kLimits, "client connections, at most"),
      bytes<&TierConfig::client_output_limit>(
          "client_output_limit", kLimits, "a client with more unread replies than this is closed"),
      bytes<&TierConfig::output_memory>("output_memory", kLimits,
                                        "unread replies of all clients together, at most"),
      bytes<&TierConfig::query_limit>("query_limit", kLimits, "one request's bytes, at most"),
      bytes<&TierConfig::max_bulk>("max_bulk", kLimits, "one argument's bytes, at most"),
      rate<&TierConfig::shard_rate>("shard_rate",
                                    "requests a second sent to each shard, at most; 0 is no limit"),
      rate<&TierConfig::node_rate>(
          "node_rate", "requests a second answered by each leaf and spine, at most; 0 is no limit"),
      admin_commands(),
  };
  return all;
}

constexpr const char* kPageHead = R"(# ballast cache: options

<!-- Written by `ballast help --markdown`; a test compares this page with it. -->

An option beats the environment, which beats tier.toml (`-c FILE`), which beats the default. In tier.toml the keys below
stand at the top or under `[cache]`. Sizes are bytes or carry a unit (`64KiB`, `64MiB`, `1GiB`; `KB`, `MB`, `GB` are powers of
1000); times carry theirs (`300ms`, `2s`, `1m`). `ballast config check -c FILE` says whether a file is good;
`ballast config show --origin` prints every value and where it came from.

A wrong value or an unknown key names the file, the line, the key and what would be right; the exit status is 2 and nothing
is started. Passwords are taken from files or the environment only.
)";

constexpr const char* kPageTail = R"(
## Members in tier.toml

Several processes share one file; each is told which it is by its subcommand and `--name`. `leaf` and `address` are where
the others find that process; they are not needed by `ballast cache up`, which runs all members itself.

```toml
tier = "shop"
listen = "0.0.0.0:6379"
lease = "1s"

[[rack]]
name = "rack-0"
shards = ["10.0.0.1:6379", "10.0.0.2:6379"]
leaf = "10.0.0.1:7100"

[[spine]]
name = "spine-0"
address = "10.0.1.1:7200"
```
)";

}  // namespace

std::string Option::flag() const {
  std::string out = "--" + key;
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string Option::environment() const {
  std::string out = "BALLAST_" + key;
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

const std::vector<Option>& cache_options() {
  static const std::vector<Option> all = make_options();
  return all;
}

const Option* find_option(std::string_view key) {
  for (const Option& option : cache_options()) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

std::string reference_page() {
  std::string page = kPageHead;
  const TierConfig defaults;
  for (const char* wanted : {kMembers, kCache, kCoherence, kSecrets, kLimits}) {
    page += fmt::format(
        "\n## {}\n\n| option | environment | tier.toml | default | meaning |\n"
        "|---|---|---|---|---|\n",
        wanted);
    for (const Option& option : cache_options()) {
      if (option.group != wanted) continue;
      std::string value = option.value;
      for (size_t at = 0; (at = value.find('|', at)) != std::string::npos; at += 2) {
        value.insert(at, "\\");
      }
      const std::string shown = option.get(defaults);
      page += fmt::format(
          "| {} | `{}` | {} | {} | {} |\n",
          option.secret ? "–"
                        : fmt::format("`{}{}{}`", option.flag(), value.empty() ? "" : " ", value),
          option.environment(), option.in_file ? fmt::format("`{}`", option.key) : "–",
          shown.empty() || option.key == "spines" ? "–" : fmt::format("`{}`", shown), option.help);
    }
  }
  return page + kPageTail;
}

}  // namespace ballast::app
