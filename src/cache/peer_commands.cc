// SPDX-License-Identifier: Apache-2.0
// Router's answers to the tier's other processes (peer_wire.h).
#include "balance/hash.h"
#include "cache/peer_wire.h"
#include "cache/router.h"
#include "cache/words.h"
#include "proto/resp_write.h"

namespace ballast::cache {

bool Router::peer(Call& call) {
  if (!layer_.has_peers()) return false;  // in the one-process form nobody may speak as one
  const std::string_view name = call.args[0];
  if (equals_word(name, "ballast.read")) return peer_read(call);
  if (equals_word(name, "ballast.write")) return peer_write(call);
  if (equals_word(name, "ballast.home")) return peer_home(call);
  return false;
}

void Router::append_peer_reply(std::string& out, uint16_t member, const Node::Reply* reply,
                               Nanos now) {
  proto::append_attribute_header(out, 1);
  proto::append_bulk(out, "load");
  proto::append_integer(out, layer_.load(member, now));
  out += reply != nullptr ? reply->resp3 : std::string_view("-MISS\r\n");
}

// BALLAST.READ member weight shard key command
bool Router::peer_read(Call& call) {
  uint64_t member = 0;
  uint64_t weight = 0;
  uint64_t shard = 0;
  if (call.args.size() != 6 || !parse_number(call.args[1], member) ||
      !parse_number(call.args[2], weight) || !parse_number(call.args[3], shard) ||
      !layer_.is_local(member) || shard >= shards_.size()) {
    call.client.error("ERR BALLAST.READ: not for this process");
    return true;
  }
  const uint16_t id = static_cast<uint16_t>(member);
  const std::string_view key = call.args[4];
  const uint64_t hash = balance::key_hash(key);
  if (!layer_.admits(id, call.now)) {
    Request& request = call.client.expect(Path::kNode, hash);
    request.add_key(key, hash);
    request.command.assign(call.args[5]);
    layer_.queue(id, request);
    return true;
  }
  const Node::Reply* reply =
      layer_.find_at(id, {static_cast<uint32_t>(shard), key, hash, call.args[5]},
                     static_cast<uint32_t>(weight), call.now);
  std::string out;
  append_peer_reply(out, id, reply, call.now);
  call.client.reply(out);
  return true;
}

// BALLAST.WRITE id shard proto flush skip n key… wire
bool Router::peer_write(Call& call) {
  uint64_t numbers[6] = {};
  bool good = call.args.size() >= 8;
  for (size_t i = 0; i < 6 && good; ++i) good = parse_number(call.args[i + 1], numbers[i]);
  const auto [id, shard, proto, flush, skip, count] = numbers;
  if (!good || shard >= shards_.size() || !shards_[shard]->options().home ||
      call.args.size() != 8 + count) {
    call.client.error("ERR BALLAST.WRITE: not for this process");
    return true;
  }
  Request* request = pool_.take();
  pool_.hold(request);
  request->proto = static_cast<uint8_t>(proto);
  request->skip = static_cast<uint32_t>(skip);
  for (const std::string_view key : call.args.subspan(7, count))
    request->add_key(key, balance::key_hash(key));
  request->done = [this, client = call.client.id(), id](Request& answered) {
    const auto it = clients_.find(client);
    if (it == clients_.end()) return;
    std::string out;
    proto::append_push_header(out, 3, 3);
    proto::append_bulk(out, kPushWrote);
    proto::append_bulk(out, std::to_string(id));
    proto::append_bulk(out, answered.reply);
    it->second->push(out);
  };
  ++metrics_.writes;
  if (flush != 0) {
    shards_[shard]->flush(call.args.back(), *request, call.now);
  } else {
    shards_[shard]->write(call.args.back(), *request, call.now);
  }
  pool_.release(request);
  return true;
}

// BALLAST.HOME incarnation shard kind field…
bool Router::peer_home(Call& call) {
  auto message = parse_home_message(call.args.subspan(1));
  if (!message || message->shard >= shards_.size() || !shards_[message->shard]->options().home) {
    call.client.error("ERR BALLAST.HOME: not for this process");
    return true;
  }
  layer_.know_remote(message->node, call.client.id());
  shards_[message->shard]->home().on_message(message->node, std::move(message->message), call.now);
  return true;
}

void Router::push_to(uint64_t client, std::string_view bytes) {
  const auto it = clients_.find(client);
  if (it != clients_.end()) it->second->push(bytes);
}

}  // namespace ballast::cache
