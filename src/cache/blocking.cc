// SPDX-License-Identifier: Apache-2.0
// Router's commands that need a connection of their own: blocking ones and subscriptions.
#include <algorithm>
#include <cctype>

#include "balance/hash.h"
#include "cache/router.h"
#include "cache/words.h"
#include "proto/resp_write.h"

namespace ballast::cache {
// XREAD and XREADGROUP block only with BLOCK; the others always may.
bool Router::blocks(const Call& call) const {
  if (call.info->name != "xread" && call.info->name != "xreadgroup") return true;
  for (const std::string_view arg : call.args.subspan(1)) {
    if (equals_word(arg, "block")) return true;
    if (equals_word(arg, "streams")) return false;
  }
  return false;
}

bool Router::blocking(Call& call, uint32_t shard) {
  if (!call.client.idle()) return false;
  ++metrics_.writes;
  // On a path of its own: what the client sends meanwhile waits.
  Request& request = call.client.expect(Path::kHome, 0);
  request.blocking = true;
  call.client.session().blocked_shard = shard;
  if (call.info->has(proto::kWrite)) {
    for (const proto::KeyPosition& position : positions_) {
      const std::string_view key = call.args[position.index];
      request.add_key(key, balance::key_hash(key));
    }
  }
  dedicated(call.client, shard).send(call.wire, request, call.now);
  return true;
}

bool Router::subscribe(Call& call) {
  if (!call.client.idle()) return false;
  Session& session = call.client.session();
  if (session.subscriptions == nullptr)
    session.subscriptions = std::make_unique<Subscriptions>(*this, call.client);
  session.subscriptions->command(call.info->name, call.args.subspan(1));
  return true;
}

// PUBLISH goes to the shard of its channel, where its subscribers are.
bool Router::publish(Call& call) {
  if (call.client.overtakes(0)) return false;
  shards_[shard_of(call.args[1])]->read(call.wire, call.client.expect(Path::kShard, 0), call.now);
  return true;
}

std::string Router::unknown_subcommand(const Call& call) {
  std::string name = call.info->name;
  for (char& byte : name) byte = static_cast<char>(std::toupper(static_cast<unsigned char>(byte)));
  return "ERR unknown subcommand '" + std::string(call.args[1].substr(0, 128)) + "'. Try " + name +
         " HELP.";
}

// CHANNELS and SHARDCHANNELS are joined, NUMSUB is asked channel by channel's shard, patterns stand
// on every shard.
bool Router::pubsub(Call& call) {
  const std::string& name = call.info->name;
  if (call.info->container && call.args.size() > 1)
    return own_error(call, unknown_subcommand(call));
  positions_.clear();
  if (shards_.size() == 1 || name == "pubsub|numpat" || name == "pubsub|help")
    return single_shard(call, 0);
  if (name.ends_with("channels")) return fan_out(call, call.wire);
  return channel_counts(call);
}

}  // namespace ballast::cache
