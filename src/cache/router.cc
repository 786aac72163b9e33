// SPDX-License-Identifier: Apache-2.0
// The data path: execute() -> get() for a hot or cold GET, dispatch() -> single_shard() for a
// write.
#include "cache/router.h"

#include <algorithm>
#include <cctype>

#include "balance/hash.h"
#include "base/log.h"
#include "cache/words.h"
#include "proto/resp_write.h"
#include "proto/slot.h"

namespace ballast::cache {
namespace {

balance::SlotMap slot_map(const model::TierConfig& config) {
  std::vector<size_t> shards_per_rack;
  for (const model::Rack& rack : config.racks) shards_per_rack.push_back(rack.shards.size());
  return balance::SlotMap(shards_per_rack);
}

bool is_get(std::span<const std::string_view> args) {
  return args.size() == 2 && args[0].size() == 3 && (args[0][0] | 0x20) == 'g' &&
         (args[0][1] | 0x20) == 'e' && (args[0][2] | 0x20) == 't';
}

constexpr std::string_view kCrossShard =
    "CROSSSLOT Keys in request don't hash to the same slot (of one shard)";

// Replies of these are kept as copies: single key, the same for the same data. GET has its own
// path.
constexpr std::string_view kCacheable[] = {
    "strlen",      "getrange", "substr",   "exists",    "type",          "hget",
    "hmget",       "hgetall",  "hlen",     "hexists",   "hkeys",         "hvals",
    "hstrlen",     "lrange",   "llen",     "lindex",    "smembers",      "sismember",
    "smismember",  "scard",    "zrange",   "zrevrange", "zscore",        "zmscore",
    "zcard",       "zrank",    "zrevrank", "zcount",    "zrangebyscore", "zrevrangebyscore",
    "zrangebylex", "getbit",   "bitcount", "xlen"};

}  // namespace

// Redis's words, with its bounds on how much of the command is quoted.
std::string Router::unknown_command(std::span<const std::string_view> args) {
  std::string text = "ERR unknown command '" + std::string(args[0].substr(0, 128)) +
                     "', with args beginning with: ";
  std::string quoted;
  for (size_t i = 1; i < args.size() && quoted.size() < 128; ++i)
    quoted += "'" + std::string(args[i].substr(0, 128 - quoted.size())) + "' ";
  return text + quoted;
}

Router::Router(io::Loop& loop, const model::TierConfig& config, RequestPool& pool, Layer& layer,
               std::vector<std::unique_ptr<Shard>>& shards)
    : loop_(loop),
      config_(config),
      pool_(pool),
      layer_(layer),
      shards_(shards),
      slots_(slot_map(config)),
      collapse_(pool, layer.durations(), config.max_object),
      random_(system_seed()),
      started_(now_ns()) {
  recount_at_ = config.output_memory;
  limits_.max_bulk = static_cast<int64_t>(config.max_bulk);
  limits_.max_total = config.query_limit;
  unauthenticated_limits_ = limits_;
  unauthenticated_limits_.unauthenticated = true;
}

Router::~Router() = default;

void Router::set_commands(proto::CommandTable table) {
  table_ = std::move(table);
  routes_.assign(table_.all().size(), Route{});
  for (size_t i = 0; i < routes_.size(); ++i) {
    const proto::CommandInfo& info = table_.all()[i];
    for (const Named& named : handlers())
      if (info.name.substr(0, info.name.find('|')) == named.name)
        routes_[i].handler = named.handler;
    if (info.name == "get") get_index_ = static_cast<uint32_t>(i);
    for (const std::string_view name : kCacheable)
      if (info.name == name && info.repeatable()) routes_[i].cacheable = true;
  }
}

const proto::CommandLimits& Router::command_limits(const Client& client) const {
  return client.authenticated() ? limits_ : unauthenticated_limits_;
}

void Router::accept(io::Fd fd, const std::shared_ptr<io::TlsContext>& tls) {
  if (clients_.size() >= config_.max_clients) {
    ++metrics_.connections_refused;
    const std::string_view text = "-ERR max number of clients reached\r\n";
    [[maybe_unused]] const auto sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    return;
  }
  auto client = std::make_unique<Client>(*this, next_client_++);
  auto stream = io::Stream::create(loop_, std::move(fd), false, client.get(), tls);
  if (!stream) return;
  client->attach(*stream);
  ++metrics_.connections;
  clients_.emplace(client->id(), std::move(client));
}

void Router::on_client_gone(Client& client, const std::string& /*cause*/) {
  const auto it = clients_.find(client.id());
  if (it == clients_.end()) return;
  std::unique_ptr<Client> gone = std::move(it->second);
  clients_.erase(it);
  layer_.on_client_gone(gone->id());
  loop_.dispose(std::move(gone));
}

// Counts anew what is kept for clients, and closes the fattest until it is no more than allowed.
void Router::shed() {
  std::vector<Client*> fattest;
  held_ = 0;
  for (const auto& [id, client] : clients_) {
    client->counted = client->held();
    held_ += client->counted;
    fattest.push_back(client.get());
  }
  const auto thinner = [](const Client* a, const Client* b) { return a->counted < b->counted; };
  std::make_heap(fattest.begin(), fattest.end(), thinner);
  while (held_ > config_.output_memory && !fattest.empty()) {
    std::pop_heap(fattest.begin(), fattest.end(), thinner);
    Client* client = fattest.back();
    fattest.pop_back();
    held_ -= client->counted;
    log_warning("client {} is closed: output_memory is used up, {} bytes by it", client->id(),
                client->counted);
    ++metrics_.clients_closed_slow;
    client->close("output memory is used up");
  }
  // A recount looks at every client, so the next has to be worth it.
  recount_at_ = std::max(config_.output_memory, held_ + config_.output_memory / 64);
}

size_t Router::held_bytes() const {
  size_t held = 0;
  for (const auto& [id, client] : clients_) held += client->held();
  return held;
}

void Router::drain() {
  std::vector<Client*> open;
  for (const auto& [id, client] : clients_) open.push_back(client.get());
  for (Client* client : open) client->close_after_replies();
}

void Router::update_plain(Client& client) {
  const Session* session = client.session_if_any();
  client.plain = client.authenticated() &&
                 (session == nullptr ||
                  (session->transaction == nullptr && session->replies == Session::Replies::kOn &&
                   !(session->subscribed() && client.proto < 3)));
}

uint32_t Router::shard_of(std::string_view key) const { return slots_.shard(proto::key_slot(key)); }

bool Router::execute(Client& client, std::span<const std::string_view> args, std::string_view wire,
                     Nanos now) {
  if (args.empty()) return true;
  if (wire.empty()) {
    inline_wire_.clear();
    proto::append_command(inline_wire_, args);
    wire = inline_wire_;
  }
  if (client.plain && is_get(args)) [[likely]] {
    ++metrics_.commands;
    client.last_command = get_index_;
    return get(client, args[1], wire, now);
  }
  Call call{client, args, wire, now, table_.find(args)};
  if (call.info != nullptr)
    client.last_command = static_cast<uint32_t>(call.info - table_.all().data());
  const bool done = dispatch(call);
  if (done) ++metrics_.commands;
  return done;
}

bool Router::guard_state(Call& call, bool& done) {
  Client& client = call.client;
  done = true;
  const auto name = std::string_view(call.info != nullptr ? call.info->name.c_str() : "");
  if (!client.authenticated() && name != "auth" && name != "hello" && name != "quit" &&
      name != "reset") {
    client.error("NOAUTH Authentication required.");
    return false;
  }
  Session* session = client.session_if_any() != nullptr ? &client.session() : nullptr;
  if (session == nullptr) return true;
  if (session->replies == Session::Replies::kSkipThis) session->replies = Session::Replies::kOn;
  if (session->replies == Session::Replies::kSkipNext)
    session->replies = Session::Replies::kSkipThis;
  if (session->subscribed() && client.proto < 3 && name != "subscribe" && name != "psubscribe" &&
      name != "ssubscribe" && name != "unsubscribe" && name != "punsubscribe" &&
      name != "sunsubscribe" && name != "ping" && name != "quit" && name != "reset") {
    std::string shown(call.args[0]);
    for (char& byte : shown)
      byte = static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    client.error("ERR Can't execute '" + shown +
                 "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                 "this context");
    return false;
  }
  if (session->transaction != nullptr && name != "multi" && name != "exec" && name != "discard" &&
      name != "watch" && name != "quit" && name != "reset") {
    done = queue(call);
    return false;
  }
  return true;
}

bool Router::dispatch(Call& call) {
  bool done = true;
  if (!call.client.plain && !guard_state(call, done)) return done;
  if (call.info == nullptr) {
    if (call.args[0].size() > 8 && equals_word(call.args[0].substr(0, 8), "ballast.") && peer(call))
      return true;
    if (equals_word(call.args[0], "post") || equals_word(call.args[0], "host:")) {
      // A web page can make a browser send commands to a port of its user's machine.
      log_warning("client {} is closed: it speaks HTTP", call.client.id());
      call.client.close_after_replies();
      return true;
    }
    call.client.error(unknown_command(call.args));
    return true;
  }
  if (!call.info->arity_fits(call.args.size())) return refuse_arity(call);
  const Route& route = routes_[static_cast<size_t>(call.info - table_.all().data())];
  if (route.handler != nullptr) return (this->*route.handler)(call);
  return by_keys(call, route.cacheable);
}

// Within MULTI it spoils the transaction; EXEC itself ends it.
bool Router::refuse_arity(Call& call) {
  const std::string text = "wrong number of arguments for '" + call.info->name + "' command";
  if (call.info->name == "exec") {
    if (!call.client.idle()) return false;  // the connection that watches may be in use
    end_transaction(call.client);
    return own_error(call, "EXECABORT Transaction discarded because of: " + text);
  }
  const Session* session = call.client.session_if_any();
  if (session != nullptr && session->transaction != nullptr) session->transaction->aborted = true;
  return own_error(call, "ERR " + text);
}

bool Router::by_keys(Call& call, bool cacheable) {
  int shard = -1;
  bool across = false;
  if (!find_keys(call, shard, across)) return unknown_keys(call);
  if (positions_.empty()) return keyless(call);
  if (across) {
    if (call.info->request_policy == proto::RequestPolicy::kMultiShard) return split(call);
    call.client.error(kCrossShard);
    return true;
  }
  if (cacheable && positions_.size() == 1 && positions_[0].index == 1)
    return cached_read(call, call.args[1], canonical(call));
  if (call.info->has(proto::kBlocking) && blocks(call))
    return blocking(call, static_cast<uint32_t>(shard));
  return single_shard(call, static_cast<uint32_t>(shard));
}

bool Router::find_keys(const Call& call, int& shard, bool& across) {
  positions_.clear();
  const bool sort = call.info->name == "sort" || call.info->name == "sort_ro";
  if (sort ? !sort_keys(call) : !call.info->keys(call.args, positions_)) return false;
  for (const proto::KeyPosition& position : positions_) {
    const int owner = static_cast<int>(shard_of(call.args[position.index]));
    across |= shard >= 0 && owner != shard;
    shard = owner;
  }
  return true;
}

// The server's table does not tell every command's keys, nor those of a command that is wrong. It
// goes to the shard of its first argument, and what it may write there is unknown: no copy of that
// shard may stand meanwhile.
bool Router::unknown_keys(Call& call) {
  if (call.info->name.starts_with("sort")) {
    call.client.error("ERR BY and GET patterns of SORT need a tier of one shard");
    return true;
  }
  if (write_overtakes(call.client, 0)) return false;
  const bool named = call.args.size() > 1 && !may_write_unnamed_keys(call);
  const uint32_t shard = named ? shard_of(call.args[1]) : 0;
  Request& request = call.client.expect(Path::kShard, 0);
  if (call.info->has(proto::kReadonly)) {
    shards_[shard]->read(call.wire, request, call.now);
  } else {
    ++metrics_.writes;
    shards_[shard]->flush(call.wire, request, call.now);
  }
  return true;
}

// A script or function that was given no keys; it goes to the first shard.
bool Router::may_write_unnamed_keys(const Call& call) const {
  return positions_.empty() && call.info->has(proto::kNoMandatoryKeys) &&
         call.info->has(proto::kMovablekeys) && call.info->may_write_keys();
}

// SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA] [STORE
// destination]. Over several shards a pattern would find keys on one of them only.
bool Router::sort_keys(const Call& call) {
  positions_.push_back({1, false});
  for (uint32_t i = 2; i + 1 < call.args.size(); ++i) {
    const std::string_view word = call.args[i];
    if (equals_word(word, "store")) {
      positions_.push_back({i + 1, true});
    } else if ((equals_word(word, "by") || equals_word(word, "get")) && shards_.size() > 1 &&
               call.args[i + 1].find('*') != std::string_view::npos) {
      return false;
    }
  }
  return true;
}

std::string_view Router::canonical(const Call& call) {
  canonical_.clear();
  std::string name(call.args[0]);
  for (char& byte : name) byte = static_cast<char>(std::toupper(static_cast<unsigned char>(byte)));
  proto::append_array_header(canonical_, call.args.size());
  proto::append_bulk(canonical_, name);
  for (const std::string_view arg : call.args.subspan(1)) proto::append_bulk(canonical_, arg);
  return canonical_;
}

bool Router::get(Client& client, std::string_view key, std::string_view wire, Nanos now) {
  Call call{client, {}, wire, now, nullptr};
  return cached_read(call, key, {});
}

bool Router::cached_read(Call& call, std::string_view key, std::string_view command) {
  Client& client = call.client;
  const uint64_t hash = balance::key_hash(key);
  const uint16_t slot = proto::key_slot(key);
  const uint32_t shard = slots_.shard(slot);
  // An answer from a copy would overtake an earlier command on the key: then this one follows it to
  // the shard.
  if (!layer_.caching() || client.key_pending(hash))
    return cold_read(client, shard, hash, call.wire, call.now);
  const Layer::Found found = layer_.find({shard, key, hash, command}, slot, call.now);
  if (found.where == Layer::Found::Where::kHere) {
    ++metrics_.hot_reads;
    client.reply(client.proto == 3 ? found.reply->resp3 : found.reply->resp2);
    return true;
  }
  const bool at_shard = found.where == Layer::Found::Where::kShard;
  if (at_shard && !found.hot) return cold_read(client, shard, hash, call.wire, call.now);
  Request& request = client.expect(Path::kNode, hash);
  request.started = call.now;
  request.wire.assign(call.wire);
  if (at_shard) {
    read_at_shard(shard, request, call.now);
    return true;
  }
  request.add_key(key, hash);
  request.command.assign(command);
  if (found.where == Layer::Found::Where::kQueued) {
    layer_.queue(found.node, request);
  } else {
    layer_.read_remote(found, shard, request);
  }
  return true;
}

bool Router::cold_read(Client& client, uint32_t shard, uint64_t hash, std::string_view wire,
                       Nanos now) {
  if (client.overtakes(hash)) return false;
  ++metrics_.cold_reads;
  shards_[shard]->read(wire, client.expect(Path::kShard, hash), now);
  return true;
}

void Router::serve_read(Request& request, Nanos now) {
  if (request.client == nullptr) return;
  const std::string_view key = request.keys[0];
  const uint32_t shard = shard_of(key);
  const Node::Reply* reply =
      layer_.find_at(request.node, {shard, key, request.hash, request.command}, 1, now);
  if (request.wire.empty()) {  // of another process's router: it asks the shard itself
    std::string out;
    append_peer_reply(out, request.node, reply, now);
    return request.client->on_answer(request, out, true);
  }
  if (reply != nullptr) {
    layer_.count_hot(request, now);
    request.client->on_answer(request, request.proto == 3 ? reply->resp3 : reply->resp2, true);
    return;
  }
  read_at_shard(shard, request, now);
}

void Router::read_at_shard(uint32_t shard, Request& request, Nanos now) {
  request.hashes.clear();  // a read guards nothing
  ++(collapse_.read(*shards_[shard], request, now) ? metrics_.cold_reads : metrics_.joined_reads);
}

// A write that goes by another process, the shard's home, can also overtake reads sent to the shard
// directly.
bool Router::write_overtakes(const Client& client, uint64_t hash) const {
  if (client.overtakes(hash)) return true;
  if (!layer_.has_peers()) return false;
  return hash == 0 ? !client.idle() : client.key_pending(hash);
}

bool Router::single_shard(Call& call, uint32_t shard) {
  // A script may use keys that it does not name.
  const bool one_key = positions_.size() == 1 && !call.info->has(proto::kNoMandatoryKeys);
  const uint64_t hash = one_key ? balance::key_hash(call.args[positions_[0].index]) : 0;
  const bool writes = call.info->has(proto::kWrite) || call.info->has(proto::kMayReplicate) ||
                      call.info->may_write_keys();
  if (writes ? write_overtakes(call.client, hash) : call.client.overtakes(hash)) return false;
  Request& request = call.client.expect(Path::kShard, hash);
  if (!writes) {
    ++metrics_.cold_reads;
    shards_[shard]->read(call.wire, request, call.now);
    return true;
  }
  ++metrics_.writes;
  for (const proto::KeyPosition& position : positions_) {
    if (!position.written) continue;
    const std::string_view key = call.args[position.index];
    request.add_key(key, one_key ? hash : balance::key_hash(key));
  }
  if (request.hashes.empty()) {
    shards_[shard]->read(call.wire, request, call.now);
  } else {
    shards_[shard]->write(call.wire, request, call.now);
  }
  return true;
}

}  // namespace ballast::cache
