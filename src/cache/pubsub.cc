// SPDX-License-Identifier: Apache-2.0
#include "cache/pubsub.h"

#include "cache/client.h"
#include "cache/deliver.h"
#include "cache/router.h"
#include "cache/shard.h"
#include "proto/resp_value.h"
#include "proto/resp_write.h"

namespace ballast::cache {

Subscriptions::~Subscriptions() {
  for (const auto& [shard, link] : links_) link->shut_down();
}

std::set<std::string, std::less<>>& Subscriptions::set_of(std::string_view kind) {
  if (kind.starts_with("un")) kind.remove_prefix(2);
  if (kind.starts_with('p')) return patterns_;
  return kind.starts_with("ss") || kind.starts_with("sun") ? shard_channels_ : channels_;
}

void Subscriptions::command(std::string_view kind, std::span<const std::string_view> channels) {
  client_.block();
  if (!channels.empty()) {
    for (const std::string_view channel : channels) ask(kind, channel);
  } else {
    const std::set<std::string, std::less<>> all = set_of(kind);
    if (all.empty()) tell(kind, {}, true);
    for (const std::string& channel : all) ask(kind, channel);
  }
  tell_confirmed();
}

void Subscriptions::ask(std::string_view kind, std::string_view channel) {
  const bool pattern = kind == "psubscribe" || kind == "punsubscribe";
  const bool everywhere =
      pattern || channel.starts_with("__keyspace@") || channel.starts_with("__keyevent@");
  std::string wire;
  const std::string_view args[] = {kind, channel};
  proto::append_command(wire, args);
  const uint32_t shards = static_cast<uint32_t>(router_.shards());
  asked_.push_back({std::string(kind), std::string(channel), everywhere ? shards : 1});
  if (!everywhere) return send_to(router_.shard_of(channel), wire);
  for (uint32_t shard = 0; shard < shards; ++shard) send_to(shard, wire);
}

void Subscriptions::send_to(uint32_t shard, std::string_view wire) {
  auto& link = links_[shard];
  if (link == nullptr) {
    const ShardOptions& options = router_.shard(shard).options();
    link = std::make_unique<Link>(router_.loop(), router_.pool(), *this,
                                  LinkOptions{.address = options.address,
                                              .name = {},
                                              .user = options.user,
                                              .password = options.password,
                                              .proto = 3,
                                              .connect_timeout = options.connect_timeout});
    link->open();
  }
  link->send_unanswered(wire);
}

void Subscriptions::on_push(Link& /*link*/, std::string_view push) {
  const auto value = proto::parse_value(push);
  if (!value || value->children.size() < 3) return;
  const std::string& kind = value->children[0].string;
  if (kind.ends_with("subscribe")) return confirmed(kind, value->children[1].string);
  if (client_.proto >= 3) return client_.push(push);
  std::string plain(push);
  plain[0] = '*';
  client_.push(plain);
}

void Subscriptions::confirmed(std::string_view kind, std::string_view channel) {
  for (Confirmation& asked : asked_) {
    if (asked.left == 0 || asked.kind != kind || asked.channel != channel) continue;
    --asked.left;
    break;
  }
  tell_confirmed();
}

void Subscriptions::tell_confirmed() {
  while (!asked_.empty() && asked_.front().left == 0) {
    const Confirmation done = std::move(asked_.front());
    asked_.pop_front();
    if (done.kind.starts_with("un") || done.kind.starts_with("pun") ||
        done.kind.starts_with("sun")) {
      set_of(done.kind).erase(done.channel);
    } else {
      set_of(done.kind).insert(done.channel);
    }
    tell(done.kind, done.channel, false);
  }
  router_.update_plain(client_);
  if (asked_.empty()) client_.unblock();
}

void Subscriptions::tell(std::string_view kind, std::string_view channel, bool nil) {
  std::string out;
  proto::append_push_header(out, 3, client_.proto);
  proto::append_bulk(out, kind);
  if (nil) {
    proto::append_null(out, client_.proto);
  } else {
    proto::append_bulk(out, channel);
  }
  const bool sharded = kind.starts_with("ss") || kind.starts_with("sun");
  proto::append_integer(out, static_cast<int64_t>(sharded ? shard_channels_.size()
                                                          : channels_.size() + patterns_.size()));
  client_.push(out);
}

void Subscriptions::on_link_up(Link& /*link*/) {}
void Subscriptions::on_answer(Request& request, std::string_view piece, bool last, Nanos /*now*/) {
  deliver(request, piece, last);
}
void Subscriptions::on_timeout(Request& /*request*/) {}
void Subscriptions::on_failure(Request& /*request*/, const std::string& /*cause*/) {}

void Subscriptions::on_link_down(Link& link, const std::string& cause) {
  link.shut_down();
  // Messages may have been missed: the client must know, as it would from a server of its own.
  client_.close("a shard's connection for its subscriptions broke: " + cause);
}

}  // namespace ballast::cache
