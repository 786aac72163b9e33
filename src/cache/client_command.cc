// SPDX-License-Identifier: Apache-2.0
// Router's CLIENT command: it speaks of the router's own clients, never of its connections to a
// shard. LIST and KILL are in client_list.cc.
#include <algorithm>
#include <charconv>

#include "cache/router.h"
#include "cache/words.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

constexpr size_t kAny = SIZE_MAX;

std::string integer(int64_t number) {
  std::string out;
  proto::append_integer(out, number);
  return out;
}

}  // namespace

struct Router::ClientSubcommand {
  std::string_view name;
  size_t min_args, max_args;  // with CLIENT and the name
  Handler handler;
  std::string_view help;
};

std::span<const Router::ClientSubcommand> Router::client_subcommands() {
  static constexpr ClientSubcommand kSubcommands[] = {
      {"id", 2, 2, &Router::client_id, "ID: the number of this connection."},
      {"getname", 2, 2, &Router::client_getname, "GETNAME: the name of this connection."},
      {"setname", 3, 3, &Router::client_setname, "SETNAME name: names this connection."},
      {"setinfo", 4, 4, &Router::client_setinfo,
       "SETINFO lib-name|lib-ver text: names the client's library."},
      {"info", 2, 2, &Router::client_info, "INFO: this connection's line of LIST."},
      {"list", 2, kAny, &Router::client_list,
       "LIST [TYPE normal|pubsub|master|replica | ID id ...]: the tier's clients."},
      {"kill", 3, kAny, &Router::client_kill,
       "KILL addr:port | [ID id] [TYPE type] [ADDR addr:port] [LADDR addr:port] [USER user] "
       "[SKIPME yes|no]: closes connections."},
      {"unblock", 3, 4, &Router::client_unblock,
       "UNBLOCK id [TIMEOUT|ERROR]: ends another connection's blocking command."},
      {"reply", 3, 3, &Router::client_reply_mode, "REPLY ON|OFF|SKIP: whether replies are sent."},
      {"no-evict", 3, 3, &Router::client_switch,
       "NO-EVICT ON|OFF: accepted; the tier evicts no clients."},
      {"no-touch", 3, 3, &Router::client_switch, "NO-TOUCH ON|OFF: accepted, without effect."},
      {"getredir", 2, 2, &Router::client_tracking_state, "GETREDIR: -1, tracking being off."},
      {"tracking", 3, kAny, &Router::client_tracking, "TRACKING OFF: tracking is not offered."},
      {"trackinginfo", 2, 2, &Router::client_tracking_state, "TRACKINGINFO: off."},
      {"caching", 3, 3, &Router::client_tracking_state, "CACHING: tracking is not offered."},
      {"pause", 3, 4, &Router::client_refuse, "PAUSE: is not offered."},
      {"unpause", 2, 2, &Router::client_refuse, "UNPAUSE: is not offered."},
      {"help", 2, 2, &Router::client_help, "HELP: this text."},
  };
  return kSubcommands;
}

bool Router::client_command(Call& call) {
  const std::string name = call.args.size() > 1 ? lower(call.args[1]) : "";
  for (const ClientSubcommand& subcommand : client_subcommands()) {
    if (subcommand.name != name) continue;
    if (call.args.size() >= subcommand.min_args && call.args.size() <= subcommand.max_args)
      return (this->*subcommand.handler)(call);
    return own_error(call, "ERR wrong number of arguments for 'client|" + name + "' command");
  }
  return own_error(call, "ERR unknown subcommand '" + std::string(call.args[1].substr(0, 128)) +
                             "'. Try CLIENT HELP.");
}

bool Router::own_error(Call& call, std::string_view text) {
  call.client.error(text);
  return true;
}

bool Router::client_id(Call& call) {
  call.client.reply(integer(static_cast<int64_t>(call.client.id())));
  return true;
}

bool Router::client_getname(Call& call) {
  const Session* session = call.client.session_if_any();
  std::string out;
  if (session == nullptr || session->name.empty()) {
    proto::append_null(out, call.client.proto);
  } else {
    proto::append_bulk(out, session->name);
  }
  call.client.reply(out);
  return true;
}

bool Router::client_setname(Call& call) {
  if (!is_printable_name(call.args[2]))
    return own_error(call,
                     "ERR Client names cannot contain spaces, newlines or special characters.");
  call.client.session().name = call.args[2];
  call.client.reply_ok();
  return true;
}

bool Router::client_setinfo(Call& call) {
  const std::string option = lower(call.args[2]);
  if (option != "lib-name" && option != "lib-ver")
    return own_error(call, "ERR Unrecognized option '" + std::string(call.args[2]) + "'");
  if (!is_printable_name(call.args[3]))
    return own_error(call,
                     "ERR " + option + " cannot contain spaces, newlines or special characters.");
  Session& session = call.client.session();
  (option == "lib-name" ? session.library : session.library_version) = call.args[3];
  call.client.reply_ok();
  return true;
}

bool Router::client_reply_mode(Call& call) {
  Session& session = call.client.session();
  const std::string mode = lower(call.args[2]);
  if (mode != "on" && mode != "off" && mode != "skip") return own_error(call, "ERR syntax error");
  if (mode == "on") {
    session.replies = Session::Replies::kOn;
    call.client.reply_ok();
  } else if (mode == "off") {
    session.replies = Session::Replies::kOff;
  } else if (session.replies != Session::Replies::kOff) {
    session.replies = Session::Replies::kSkipNext;
  }
  update_plain(call.client);
  return true;
}

// Settings that concern a server's memory: right as they are.
bool Router::client_switch(Call& call) {
  if (!equals_word(call.args[2], "on") && !equals_word(call.args[2], "off"))
    return own_error(call, "ERR syntax error");
  call.client.reply_ok();
  return true;
}

bool Router::client_tracking(Call& call) {
  if (call.args.size() == 3 && equals_word(call.args[2], "off")) {
    call.client.reply_ok();
    return true;
  }
  return own_error(call,
                   "ERR CLIENT TRACKING is not offered by Ballast: the tier itself keeps copies, "
                   "and uses the tracking of the shards for them");
}

// What GETREDIR, TRACKINGINFO and CACHING say while tracking is off, as it always is.
bool Router::client_tracking_state(Call& call) {
  const std::string name = lower(call.args[1]);
  std::string out;
  if (name == "getredir") {
    out = integer(-1);
  } else if (name == "caching") {
    return own_error(call,
                     "ERR CLIENT CACHING can be called only when the client is in tracking mode "
                     "with OPTIN or OPTOUT mode enabled");
  } else {
    proto::append_map_header(out, 3, call.client.proto);
    proto::append_bulk(out, "flags");
    proto::append_set_header(out, 1, call.client.proto);
    proto::append_bulk(out, "off");
    proto::append_bulk(out, "redirect");
    proto::append_integer(out, -1);
    proto::append_bulk(out, "prefixes");
    proto::append_array_header(out, 0);
  }
  call.client.reply(out);
  return true;
}

// Asks where the other client's blocking command went, a shard or its leaf; its word is passed on.
bool Router::client_unblock(Call& call) {
  if (!call.client.idle()) return false;
  uint64_t id = 0;
  const std::string_view text = call.args[2];
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return own_error(call, "ERR value is not an integer or out of range");
  const std::string_view reason = call.args.size() == 4 ? call.args[3] : "TIMEOUT";
  if (!equals_word(reason, "timeout") && !equals_word(reason, "error"))
    return own_error(call, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  const auto it = clients_.find(id);
  const Client* other = it != clients_.end() ? it->second.get() : nullptr;
  if (other == nullptr || !other->runs_blocking()) {
    call.client.reply(integer(0));
    return true;
  }
  const uint32_t shard = other->session_if_any()->blocked_shard;
  const std::string at_shard =
      std::to_string(other->session_if_any()->dedicated.at(shard)->client_id());
  const std::string_view args[] = {"CLIENT", "UNBLOCK", at_shard, reason};
  std::string wire;
  proto::append_command(wire, args);
  dedicated(call.client, shard).send(wire, call.client.expect(Path::kHome, 0), call.now);
  return true;
}

bool Router::client_refuse(Call& call) {
  return own_error(call, "ERR 'client|" + lower(call.args[1]) +
                             "' is not possible through Ballast: it would hold up one router's "
                             "clients and no other's");
}

bool Router::client_help(Call& call) {
  const auto subcommands = client_subcommands();
  std::string out;
  proto::append_array_header(out, subcommands.size() + 1);
  proto::append_simple(out, "CLIENT <subcommand> [<arg> ...]. Through Ballast:");
  for (const ClientSubcommand& subcommand : subcommands) proto::append_simple(out, subcommand.help);
  call.client.reply(out);
  return true;
}

}  // namespace ballast::cache
