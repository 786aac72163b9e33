// SPDX-License-Identifier: Apache-2.0
// Router's CLIENT command.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "cache/router.h"
#include "cache/words.h"
#include "proto/resp_write.h"

namespace ballast::cache {
void Router::client_list_line(std::string& out, const Client& client) const {
  const Session* session = client.session_if_any();
  const int fd = client.stream() != nullptr ? client.stream()->fd() : -1;
  out += fmt::format(
      "id={} addr={} laddr={} fd={} name={} db=0 sub={} multi={} resp={} lib-name={} "
      "lib-ver={} omem={} user=default\n",
      client.id(), io::peer_address(fd).text(), io::local_address(fd).text(), fd,
      session != nullptr ? session->name : "",
      session != nullptr && session->subscriptions ? session->subscriptions->count() : 0,
      session != nullptr && session->transaction
          ? static_cast<int64_t>(session->transaction->commands)
          : -1,
      client.proto, session != nullptr ? session->library : "",
      session != nullptr ? session->library_version : "",
      client.stream() != nullptr ? client.stream()->buffered() : 0);
}

bool Router::client_kill(Call& call) {
  std::vector<Client*> chosen;
  const auto& args = call.args;
  const bool old_form = args.size() == 3;
  bool skip_me = true;
  for (const auto& [id, client] : clients_) {
    bool matches = true;
    if (old_form) {
      matches = io::peer_address(client->stream()->fd()).text() == args[2];
    } else {
      for (size_t i = 2; i + 1 < args.size(); i += 2) {
        const std::string filter = lower(args[i]);
        const std::string_view value = args[i + 1];
        const int fd = client->stream()->fd();
        if (filter == "id") {
          matches &= std::to_string(id) == value;
        } else if (filter == "addr") {
          matches &= io::peer_address(fd).text() == value;
        } else if (filter == "laddr") {
          matches &= io::local_address(fd).text() == value;
        } else if (filter == "user") {
          matches &= value == "default";
        } else if (filter == "type") {
          const Session* session = client->session_if_any();
          const bool pubsub = session != nullptr && session->subscribed();
          matches &= lower(value) == (pubsub ? "pubsub" : "normal");
        } else if (filter == "skipme") {
          skip_me = lower(value) != "no";
        } else {
          call.client.error("ERR syntax error");
          return true;
        }
      }
    }
    if (matches) chosen.push_back(client.get());
  }
  if (!old_form && skip_me) std::erase(chosen, &call.client);
  if (old_form && chosen.empty()) {
    call.client.error("ERR No such client");
    return true;
  }
  if (old_form) {
    call.client.reply_ok();
  } else {
    std::string out;
    proto::append_integer(out, static_cast<int64_t>(chosen.size()));
    call.client.reply(out);
  }
  for (Client* client : chosen) {
    if (client == &call.client) {
      client->close_after_replies();
    } else {
      client->close("killed by CLIENT KILL");
    }
  }
  return true;
}

bool Router::client_reply_mode(Call& call) {
  Session& session = call.client.session();
  const std::string mode = lower(call.args[2]);
  if (mode == "on") {
    session.replies = Session::Replies::kOn;
    update_plain(call.client);
    call.client.reply_ok();
  } else if (mode == "off") {
    session.replies = Session::Replies::kOff;
  } else if (mode == "skip") {
    if (session.replies != Session::Replies::kOff) session.replies = Session::Replies::kSkipNext;
  } else {
    call.client.error("ERR syntax error");
  }
  update_plain(call.client);
  return true;
}

bool Router::client_list(Call& call) {
  std::string text;
  const bool by_id = call.args.size() > 3 && lower(call.args[2]) == "id";
  for (const auto& [id, client] : clients_) {
    if (by_id &&
        std::find(call.args.begin() + 3, call.args.end(), std::to_string(id)) == call.args.end())
      continue;
    client_list_line(text, *client);
  }
  std::string out;
  proto::append_bulk(out, text);
  call.client.reply(out);
  return true;
}

bool Router::client_command(Call& call) {
  Client& client = call.client;
  const std::string name = call.args.size() > 1 ? lower(call.args[1]) : "";
  const auto& args = call.args;
  std::string out;
  if (name == "id" && args.size() == 2) {
    proto::append_integer(out, static_cast<int64_t>(client.id()));
  } else if (name == "getname" && args.size() == 2) {
    const Session* session = client.session_if_any();
    if (session == nullptr || session->name.empty()) {
      proto::append_null(out, client.proto);
    } else {
      proto::append_bulk(out, session->name);
    }
  } else if (name == "setname" && args.size() == 3) {
    if (!is_printable_name(args[2])) {
      client.error("ERR Client names cannot contain spaces, newlines or special characters.");
      return true;
    }
    client.session().name = args[2];
    out = "+OK\r\n";
  } else if (name == "setinfo" && args.size() == 4) {
    const std::string option = lower(args[2]);
    if ((option != "lib-name" && option != "lib-ver") || !is_printable_name(args[3])) {
      client.error(option.starts_with("lib-")
                       ? "ERR " + option + " cannot contain spaces, newlines or special characters."
                       : "ERR Unrecognized option '" + std::string(args[2]) + "'");
      return true;
    }
    (option == "lib-name" ? client.session().library : client.session().library_version) = args[3];
    out = "+OK\r\n";
  } else if (name == "list") {
    return client_list(call);
  } else if (name == "info" && args.size() == 2) {
    std::string text;
    client_list_line(text, client);
    proto::append_bulk(out, text);
  } else if (name == "kill" && args.size() >= 3) {
    return client_kill(call);
  } else if (name == "reply" && args.size() == 3) {
    return client_reply_mode(call);
  } else if (name == "no-evict" || name == "no-touch") {
    out = "+OK\r\n";
  } else if (name == "getredir") {
    proto::append_integer(out, -1);
  } else if (name == "tracking" && args.size() == 3 && lower(args[2]) == "off") {
    out = "+OK\r\n";
  } else {
    client.error("ERR 'client|" + name + "' is not possible through Ballast");
    return true;
  }
  client.reply(out);
  return true;
}

}  // namespace ballast::cache
