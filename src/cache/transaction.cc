// SPDX-License-Identifier: Apache-2.0
// Router's transactions: MULTI keeps the commands here; EXEC sends them to the one shard of their
// keys as one block, on the shared link, or after WATCH on the client's own connection.
#include "balance/hash.h"
#include "cache/router.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

constexpr std::string_view kMulti = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view kExec = "*1\r\n$4\r\nEXEC\r\n";
constexpr std::string_view kUnwatch = "*1\r\n$7\r\nUNWATCH\r\n";

bool concerns_all_shards(const proto::CommandInfo& info) {
  using proto::RequestPolicy;
  if (info.name == "ping") return false;  // any shard's answer is as good
  return info.request_policy == RequestPolicy::kAllShards ||
         info.request_policy == RequestPolicy::kAllNodes ||
         info.request_policy == RequestPolicy::kSpecial || info.name.starts_with("pubsub");
}

}  // namespace

bool Router::multi(Call& call) {
  if (!call.client.idle()) return false;
  Session& session = call.client.session();
  if (session.transaction != nullptr) {
    call.client.error("ERR MULTI calls can not be nested");
    return true;
  }
  session.transaction = std::make_unique<Transaction>();
  session.transaction->shard = session.watched_shard;
  update_plain(call.client);
  call.client.reply_ok();
  return true;
}

// One command within MULTI.
bool Router::queue(Call& call) {
  Transaction& transaction = *call.client.session().transaction;
  const auto abort = [&](std::string_view text) {
    transaction.aborted = true;
    call.client.error(text);
    return true;
  };
  if (call.info == nullptr) return abort(unknown_command(call.args));
  const std::string& name = call.info->name;
  if (!call.info->arity_fits(call.args.size()))
    return abort("ERR wrong number of arguments for '" + name + "' command");
  if (call.info->has(proto::kNoMulti) || name.ends_with("subscribe"))
    return abort("ERR Command not allowed inside a transaction");
  const bool admin = call.info->has(proto::kAdmin);
  if (name == "copy" && leaves_database(call)) return abort("ERR DB index is out of range");
  const bool flush = name == "flushall" || name == "flushdb";
  const Handler handler = routes_[static_cast<size_t>(call.info - table_.all().data())].handler;
  // At the shard CLIENT would speak of a connection that many clients share.
  if ((admin && !config_.admin_commands) || name == "select" || name == "hello" || name == "auth" ||
      handler == &Router::refuse || handler == &Router::client_command)
    return abort("ERR '" + name + "' is not possible in a transaction through Ballast");
  if (call.info->container && call.args.size() > 1) return abort(unknown_subcommand(call));
  if ((flush || concerns_all_shards(*call.info)) && shards_.size() > 1)
    return abort("ERR '" + name + "' in a transaction would reach only one of the shards");
  int shard = transaction.shard;
  bool across = false;
  if (!find_keys(call, shard, across))
    return abort("ERR the keys of '" + name + "' cannot be told from its arguments");
  if (name == "publish") {  // its subscribers are at the channel's shard
    const int owner = static_cast<int>(shard_of(call.args[1]));
    across = shard >= 0 && owner != shard;
    shard = owner;
  }
  if (across) return abort("CROSSSLOT Keys in request don't hash to the same slot (of one shard)");
  transaction.shard = shard;
  if (shard >= 0 && !shards_[static_cast<uint32_t>(shard)]->busy().empty())
    return abort(shards_[static_cast<uint32_t>(shard)]->busy());
  for (const proto::KeyPosition& position : positions_)
    if (position.written) transaction.written_keys.emplace_back(call.args[position.index]);
  if (transaction.wire.size() + call.wire.size() > config_.query_limit)
    return abort("ERR the transaction is larger than the limit of a request");
  transaction.flush |= flush || may_write_unnamed_keys(call);
  transaction.wire += call.wire;
  ++transaction.commands;
  call.client.reply("+QUEUED\r\n");
  return true;
}

bool Router::exec(Call& call) {
  Client& client = call.client;
  if (!client.idle()) return false;
  Session& session = client.session();
  if (session.transaction == nullptr) {
    client.error("ERR EXEC without MULTI");
    return true;
  }
  const std::unique_ptr<Transaction> transaction = std::move(session.transaction);
  update_plain(client);
  const bool stands = watch_stands(session, client);
  session.watch_lost = false;
  const int watched = std::exchange(session.watched_shard, -1);
  const uint32_t shard = transaction->shard < 0 ? 0 : static_cast<uint32_t>(transaction->shard);
  if (const std::string& busy = shards_[shard]->busy(); transaction->aborted || !busy.empty()) {
    if (watched >= 0) session.dedicated.erase(static_cast<uint32_t>(watched));
    client.error(busy.empty() ? "EXECABORT Transaction discarded because of previous errors."
                              : "EXECABORT Transaction discarded because of: " + busy);
    return true;
  }
  if (!stands) {  // nobody can say whether the keys changed: the client tries again
    session.dedicated.erase(static_cast<uint32_t>(watched));
    std::string none;
    proto::append_null_array(none, client.proto);
    client.reply(none);
    return true;
  }
  std::string wire(kMulti);
  wire += transaction->wire;
  wire += kExec;
  Request& request = client.expect(watched >= 0 ? Path::kHome : Path::kShard, 0);
  request.skip = static_cast<uint32_t>(transaction->commands) + 1;
  request.flush = transaction->flush;
  for (const std::string& key : transaction->written_keys)
    request.add_key(key, balance::key_hash(key));
  ++metrics_.writes;
  if (watched >= 0) {
    dedicated(client, shard).send(wire, request, call.now);
  } else if (request.hashes.empty() && !request.flush) {
    shards_[shard]->read(wire, request, call.now);
  } else {
    shards_[shard]->write(wire, request, call.now);
  }
  return true;
}

void Router::end_transaction(Client& client) {
  if (client.session_if_any() == nullptr) return;
  Session& session = client.session();
  session.transaction.reset();
  session.watch_lost = false;
  // The connection that watches keys is given up with them.
  const int watched = std::exchange(session.watched_shard, -1);
  if (watched >= 0) session.dedicated.erase(static_cast<uint32_t>(watched));
  update_plain(client);
}

bool Router::discard(Call& call) {
  if (call.client.session().transaction == nullptr) {
    call.client.error("ERR DISCARD without MULTI");
    return true;
  }
  end_transaction(call.client);
  call.client.reply_ok();
  return true;
}

bool Router::watch(Call& call) {
  Client& client = call.client;
  Session& session = client.session();
  if (session.transaction != nullptr) {
    client.error("ERR WATCH inside MULTI is not allowed");
    return true;
  }
  if (!client.idle()) return false;
  int shard = session.watched_shard;
  bool across = false;
  find_keys(call, shard, across);
  if (across) {
    client.error("CROSSSLOT Keys in request don't hash to the same slot (of one shard)");
    return true;
  }
  session.watch_lost = !watch_stands(session, client);
  session.watched_shard = shard;
  Dedicated& connection = dedicated(client, static_cast<uint32_t>(shard));
  connection.set_watching();
  // On a path of its own: what follows waits until the keys are watched.
  connection.send(call.wire, client.expect(Path::kHome, 0), call.now);
  return true;
}

// True if the connection that heard the client's WATCH is still there to tell of changes.
bool Router::watch_stands(const Session& session, const Client& client) {
  if (session.watched_shard < 0) return true;
  const auto it = session.dedicated.find(static_cast<uint32_t>(session.watched_shard));
  return !session.watch_lost && it != session.dedicated.end() && it->second->watching() &&
         it->second->proto() == client.proto;
}

bool Router::unwatch(Call& call) {
  if (!call.client.idle()) return false;
  Session& session = call.client.session();
  session.watch_lost = false;
  const int watched = std::exchange(session.watched_shard, -1);
  if (watched < 0) {
    call.client.reply_ok();
    return true;
  }
  dedicated(call.client, static_cast<uint32_t>(watched))
      .send(kUnwatch, call.client.expect(Path::kHome, 0), call.now);
  return true;
}

Dedicated& Router::dedicated(Client& client, uint32_t shard) {
  std::unique_ptr<Dedicated>& slot = client.session().dedicated[shard];
  if (slot == nullptr || slot->broken() || slot->proto() != client.proto) {
    slot = take_spare(shard, client.proto);
    slot->give_to(client);
  }
  return *slot;
}

// Once one was needed another is kept ready, so that a client's first blocking command need not
// wait for a connection to be made.
std::unique_ptr<Dedicated> Router::take_spare(uint32_t shard, uint8_t proto) {
  std::unique_ptr<Dedicated>& spare = spares_[{shard, proto}];
  std::unique_ptr<Dedicated> taken = std::move(spare);
  const auto make = [&] {
    return std::make_unique<Dedicated>(loop_, pool_, *shards_[shard], proto);
  };
  if (taken == nullptr || taken->broken()) taken = make();
  spare = make();
  return taken;
}

}  // namespace ballast::cache
