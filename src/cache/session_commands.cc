// SPDX-License-Identifier: Apache-2.0
// Router's commands that concern the connection or the tier itself, answered without a shard.
#include <openssl/crypto.h>
#include <sys/time.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "cache/router.h"
#include "cache/words.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

std::string bulk(std::string_view text) {
  std::string out;
  proto::append_bulk(out, text);
  return out;
}

constexpr std::string_view kBadName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

}  // namespace

std::span<const Router::Named> Router::handlers() {
  static constexpr Named kHandlers[] = {
      {"hello", &Router::hello},
      {"auth", &Router::auth},
      {"client", &Router::client_command},
      {"select", &Router::select},
      {"copy", &Router::copy},
      {"ping", &Router::ping},
      {"echo", &Router::echo},
      {"time", &Router::time},
      {"quit", &Router::quit},
      {"reset", &Router::reset},
      {"info", &Router::info},
      {"config", &Router::config},
      {"cluster", &Router::cluster},
      {"multi", &Router::multi},
      {"exec", &Router::exec},
      {"discard", &Router::discard},
      {"watch", &Router::watch},
      {"unwatch", &Router::unwatch},
      {"subscribe", &Router::subscribe},
      {"psubscribe", &Router::subscribe},
      {"ssubscribe", &Router::subscribe},
      {"unsubscribe", &Router::subscribe},
      {"punsubscribe", &Router::subscribe},
      {"sunsubscribe", &Router::subscribe},
      {"publish", &Router::publish},
      {"spublish", &Router::publish},
      {"pubsub", &Router::pubsub},
      {"scan", &Router::scan},
      {"randomkey", &Router::random_key},
      {"flushall", &Router::flush_all},
      {"flushdb", &Router::flush_all},
      {"monitor", &Router::refuse},
      {"sync", &Router::refuse},
      {"psync", &Router::refuse},
      {"replconf", &Router::refuse},
      {"replicaof", &Router::refuse},
      {"slaveof", &Router::refuse},
      {"shutdown", &Router::refuse},
      {"failover", &Router::refuse},
      {"swapdb", &Router::refuse},
      {"move", &Router::refuse},
      {"migrate", &Router::refuse},
      {"wait", &Router::refuse},
      {"asking", &Router::refuse},
      {"readonly", &Router::refuse},
      {"readwrite", &Router::refuse},
  };
  return kHandlers;
}

bool Router::refuse(Call& call) {
  std::string why = "is not possible through Ballast";
  const std::string& name = call.info->name;
  if (name == "swapdb" || name == "move") why = "needs several databases, and the tier has one";
  if (name == "monitor" || name == "shutdown")
    why = "is for one server: send it to the shard itself";
  if (name == "wait" || name == "readonly" || name == "readwrite" || name == "asking" ||
      name.ends_with("sync") || name == "replconf" || name.ends_with("of") || name == "failover")
    why = "concerns one server's replication: send it to the shard itself";
  if (call.info->has(proto::kAdmin) && why.starts_with("is not"))
    why =
        "administers one server: send it to the shard itself, or start the tier with "
        "--admin-commands";
  call.client.error("ERR '" + name + "' " + why);
  return true;
}

bool Router::sign_in(Client& client, std::string_view user, std::string_view password) {
  const std::string& wanted = config_.password;
  const bool same = user == "default" && password.size() == wanted.size() &&
                    CRYPTO_memcmp(password.data(), wanted.data(), wanted.size()) == 0;
  if (!same && !(wanted.empty() && user == "default")) {
    ++metrics_.auth_failures;
    return false;
  }
  client.set_authenticated(true);
  update_plain(client);
  return true;
}

bool Router::auth(Call& call) {
  Client& client = call.client;
  if (!client.idle()) return false;
  if (call.args.size() > 3) {
    client.error("ERR syntax error");
    return true;
  }
  if (call.args.size() == 2 && !needs_password()) {
    client.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
    return true;
  }
  const bool named = call.args.size() == 3;
  if (sign_in(client, named ? call.args[1] : "default", call.args.back())) {
    client.reply_ok();
  } else {
    client.error("WRONGPASS invalid username-password pair or user is disabled.");
  }
  return true;
}

// [AUTH user password] [SETNAME name]; false: the client was told what is wrong.
bool Router::hello_options(Call& call, size_t next, std::string_view& name) {
  while (next < call.args.size()) {
    const size_t left = call.args.size() - next - 1;
    if (equals_word(call.args[next], "auth") && left >= 2) {
      if (!sign_in(call.client, call.args[next + 1], call.args[next + 2])) {
        call.client.error("WRONGPASS invalid username-password pair or user is disabled.");
        return false;
      }
      next += 3;
    } else if (equals_word(call.args[next], "setname") && left >= 1) {
      name = call.args[next + 1];
      if (!is_printable_name(name)) {
        call.client.error(kBadName);
        return false;
      }
      next += 2;
    } else {
      call.client.error("ERR Syntax error in HELLO option '" + std::string(call.args[next]) + "'");
      return false;
    }
  }
  return true;
}

bool Router::hello(Call& call) {
  Client& client = call.client;
  if (!client.idle()) return false;
  int64_t version = client.proto;
  size_t next = 1;
  if (call.args.size() > 1) {
    const std::string_view text = call.args[1];
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), version);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      client.error("ERR Protocol version is not an integer or out of range");
      return true;
    }
    if (version != 2 && version != 3) {
      client.error("NOPROTO unsupported protocol version");
      return true;
    }
    next = 2;
  }
  std::string_view name;
  if (!hello_options(call, next, name)) return true;
  if (!client.authenticated()) {
    client.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
    return true;
  }
  if (name.data() != nullptr) client.session().name = name;
  client.proto = static_cast<uint8_t>(version);
  update_plain(client);
  std::string out;
  proto::append_map_header(out, 7, client.proto);
  out += bulk("server") + bulk("redis") + bulk("version") + bulk(redis_version_) + bulk("proto");
  proto::append_integer(out, version);
  out += bulk("id");
  proto::append_integer(out, static_cast<int64_t>(client.id()));
  out += bulk("mode") + bulk("standalone") + bulk("role") + bulk("master") + bulk("modules");
  proto::append_array_header(out, 0);
  client.reply(out);
  return true;
}

bool Router::select(Call& call) {
  int64_t index = -1;
  const std::string_view text = call.args[1];
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    call.client.error("ERR value is not an integer or out of range");
  } else if (index != 0) {
    call.client.error("ERR DB index is out of range");
  } else {
    call.client.reply_ok();
  }
  return true;
}

// COPY source destination [DB number] [REPLACE]; the tier has one database. What is no number the
// shard refuses in its own words.
bool Router::leaves_database(const Call& call) {
  for (size_t i = 3; i + 1 < call.args.size(); ++i) {
    uint64_t number = 0;
    const std::string_view text = call.args[i + 1];
    if (!equals_word(call.args[i], "db")) continue;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec == std::errc() && number != 0) return true;
  }
  return false;
}

bool Router::copy(Call& call) {
  if (leaves_database(call)) return own_error(call, "ERR DB index is out of range");
  return by_keys(call, false);
}

bool Router::ping(Call& call) {
  if (call.args.size() > 2) {
    call.client.error("ERR wrong number of arguments for 'ping' command");
    return true;
  }
  const std::string_view text = call.args.size() == 2 ? call.args[1] : std::string_view();
  const Session* session = call.client.session_if_any();
  if (call.client.proto == 2 && session != nullptr && session->subscribed()) {
    call.client.reply("*2\r\n$4\r\npong\r\n" + bulk(text));
  } else {
    call.client.reply(call.args.size() == 2 ? bulk(text) : "+PONG\r\n");
  }
  return true;
}

bool Router::echo(Call& call) {
  call.client.reply(bulk(call.args[1]));
  return true;
}

bool Router::time(Call& call) {
  timeval now;
  gettimeofday(&now, nullptr);
  call.client.reply("*2\r\n" + bulk(std::to_string(now.tv_sec)) +
                    bulk(std::to_string(now.tv_usec)));
  return true;
}

bool Router::quit(Call& call) {
  call.client.reply_ok();
  call.client.close_after_replies();
  return true;
}

bool Router::reset(Call& call) {
  Client& client = call.client;
  if (!client.idle()) return false;
  end_transaction(client);
  if (client.session_if_any() != nullptr) client.session() = Session();
  client.proto = 2;
  client.set_authenticated(!needs_password());
  update_plain(client);
  client.reply("+RESET\r\n");
  return true;
}

// CONFIG GET is answered by the first shard, for clients that look at a setting when they start.
bool Router::config(Call& call) {
  const std::string& name = call.info->name;
  if (name == "config|get" || name == "config|help") {
    positions_.clear();
    return single_shard(call, 0);
  }
  if (!config_.admin_commands) return refuse(call);
  return fan_out(call, call.wire);
}

bool Router::cluster(Call& call) {
  call.client.error("ERR This instance has cluster support disabled");
  return true;
}

}  // namespace ballast::cache
