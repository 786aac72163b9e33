// SPDX-License-Identifier: Apache-2.0
// Router's CLIENT LIST, INFO and KILL: which clients there are, in Redis's words.
#include <algorithm>
#include <charconv>

#include "cache/router.h"
#include "cache/words.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

bool is_client_type(std::string_view text) {
  for (const std::string_view type : {"normal", "pubsub", "master", "replica", "slave"})
    if (equals_word(text, type)) return true;
  return false;
}

bool is_of_type(const Client& client, std::string_view type) {
  const Session* session = client.session_if_any();
  const bool pubsub = session != nullptr && session->subscribed();
  return equals_word(type, pubsub ? "pubsub" : "normal");
}

// Above zero, as ids of clients are.
bool parse_id(std::string_view text, uint64_t& id) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && id > 0;
}

std::string flags_of(const Client& client) {
  const Session* session = client.session_if_any();
  std::string flags;
  if (session != nullptr && session->subscribed()) flags += 'P';
  if (session != nullptr && session->transaction != nullptr) flags += 'x';
  if (client.runs_blocking()) flags += 'b';
  if (client.closing()) flags += 'c';
  return flags.empty() ? "N" : flags;
}

struct KillFilter {
  uint64_t id = 0;  // 0: any
  std::string_view type, address, local_address, user;
  bool skip_me = true;

  bool matches(const Client& client) const {
    const int fd = client.stream() != nullptr ? client.stream()->fd() : -1;
    return (id == 0 || client.id() == id) && (type.empty() || is_of_type(client, type)) &&
           (address.empty() || io::peer_address(fd).text() == address) &&
           (local_address.empty() || io::local_address(fd).text() == local_address);
  }
};

// CLIENT KILL with filters; the error in Redis's words, empty if there is none.
std::string parse_filter(std::span<const std::string_view> args, KillFilter& filter) {
  for (size_t i = 2; i < args.size(); i += 2) {
    if (i + 1 == args.size()) return "ERR syntax error";
    const std::string_view word = args[i];
    const std::string_view value = args[i + 1];
    if (equals_word(word, "id")) {
      if (!parse_id(value, filter.id)) return "ERR client-id should be greater than 0";
    } else if (equals_word(word, "type")) {
      if (!is_client_type(value)) return "ERR Unknown client type '" + std::string(value) + "'";
      filter.type = value;
    } else if (equals_word(word, "addr")) {
      filter.address = value;
    } else if (equals_word(word, "laddr")) {
      filter.local_address = value;
    } else if (equals_word(word, "user")) {
      if (value != "default") return "ERR No such user '" + std::string(value) + "'";
    } else if (equals_word(word, "skipme")) {
      if (!equals_word(value, "yes") && !equals_word(value, "no")) return "ERR syntax error";
      filter.skip_me = equals_word(value, "yes");
    } else {
      return "ERR syntax error";
    }
  }
  return {};
}

}  // namespace

void Router::client_list_line(std::string& out, const Client& client, Nanos now) const {
  static const Session kNone;
  const Session& session = client.session_if_any() != nullptr ? *client.session_if_any() : kNone;
  const int fd = client.stream() != nullptr ? client.stream()->fd() : -1;
  const Subscriptions* subscriptions = session.subscriptions.get();
  out += fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db=0 sub={} psub={} ssub={} "
      "multi={} omem={} cmd={} user=default resp={} lib-name={} lib-ver={}\n",
      client.id(), io::peer_address(fd).text(), io::local_address(fd).text(), fd, session.name,
      (now - client.since()) / kSecond, (now - client.last_active()) / kSecond, flags_of(client),
      subscriptions != nullptr ? subscriptions->channels() : 0,
      subscriptions != nullptr ? subscriptions->patterns() : 0,
      subscriptions != nullptr ? subscriptions->shard_channels() : 0,
      session.transaction != nullptr ? static_cast<int64_t>(session.transaction->commands) : -1,
      client.stream() != nullptr ? client.stream()->buffered() : 0,
      client.last_command < table_.all().size() ? table_.all()[client.last_command].name : "NULL",
      client.proto, session.library, session.library_version);
}

std::vector<Client*> Router::clients_by_id() const {
  std::vector<Client*> all;
  for (const auto& [id, client] : clients_) all.push_back(client.get());
  std::sort(all.begin(), all.end(),
            [](const Client* a, const Client* b) { return a->id() < b->id(); });
  return all;
}

bool Router::client_info(Call& call) {
  std::string text;
  client_list_line(text, call.client, call.now);
  std::string out;
  proto::append_verbatim(out, text, call.client.proto);
  call.client.reply(out);
  return true;
}

bool Router::client_list(Call& call) {
  const auto& args = call.args;
  const bool by_type = args.size() == 4 && equals_word(args[2], "type");
  const bool by_id = args.size() > 3 && equals_word(args[2], "id");
  if (args.size() > 2 && !by_type && !by_id) return own_error(call, "ERR syntax error");
  if (by_type && !is_client_type(args[3]))
    return own_error(call, "ERR Unknown client type '" + std::string(args[3]) + "'");
  std::vector<uint64_t> ids;
  for (const std::string_view text : args.subspan(by_id ? 3 : args.size()))
    if (!parse_id(text, ids.emplace_back())) return own_error(call, "ERR Invalid client ID");
  std::string text;
  for (const Client* client : clients_by_id()) {
    if (by_type && !is_of_type(*client, args[3])) continue;
    if (by_id && std::find(ids.begin(), ids.end(), client->id()) == ids.end()) continue;
    client_list_line(text, *client, call.now);
  }
  std::string out;
  proto::append_verbatim(out, text, call.client.proto);
  call.client.reply(out);
  return true;
}

bool Router::client_kill(Call& call) {
  const bool old_form = call.args.size() == 3;
  KillFilter filter;
  if (old_form) {
    filter.address = call.args[2];
    filter.skip_me = false;
  } else if (const std::string wrong = parse_filter(call.args, filter); !wrong.empty()) {
    return own_error(call, wrong);
  }
  std::vector<Client*> chosen = clients_by_id();
  std::erase_if(chosen, [&](const Client* client) {
    return (filter.skip_me && client == &call.client) || !filter.matches(*client);
  });
  if (old_form && chosen.empty()) return own_error(call, "ERR No such client");
  std::string out = "+OK\r\n";
  if (!old_form) {
    out.clear();
    proto::append_integer(out, static_cast<int64_t>(chosen.size()));
  }
  call.client.reply(out);
  for (Client* client : chosen) {
    if (client == &call.client) {
      client->close_after_replies();
    } else {
      client->close("killed by CLIENT KILL");
    }
  }
  return true;
}

}  // namespace ballast::cache
