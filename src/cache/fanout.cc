// SPDX-License-Identifier: Apache-2.0
// Router's commands over several shards: split and join, sums, scans, flushes. Linear in the number
// of keys.
#include <algorithm>
#include <charconv>
#include <limits>

#include "balance/hash.h"
#include "cache/router.h"
#include "proto/resp_convert.h"
#include "proto/resp_reply.h"
#include "proto/resp_value.h"
#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

// The elements of an aggregate reply as slices of it; none if it is not one.
std::vector<std::string_view> elements_of(std::string_view reply) {
  std::vector<std::string_view> elements;
  const size_t line = reply.find("\r\n");
  if (line == std::string_view::npos || (reply[0] != '*' && reply[0] != '~')) return elements;
  std::string_view rest = reply.substr(line + 2);
  while (!rest.empty()) {
    proto::ReplyScanner scanner;
    const proto::Scan scan = scanner.scan(rest);
    if (!scan.complete) break;
    elements.push_back(rest.substr(0, scan.consumed));
    rest.remove_prefix(scan.consumed);
  }
  return elements;
}

int64_t integer_of(std::string_view reply) {
  int64_t number = 0;
  if (reply.starts_with(':'))
    std::from_chars(reply.data() + 1, reply.data() + reply.size(), number);
  return number;
}

int64_t aggregate(proto::ResponsePolicy policy, int64_t a, int64_t b) {
  switch (policy) {
    case proto::ResponsePolicy::kAggLogicalAnd:
      return a != 0 && b != 0;
    case proto::ResponsePolicy::kAggLogicalOr:
      return a != 0 || b != 0;
    case proto::ResponsePolicy::kAggMin:
      return std::min(a, b);
    case proto::ResponsePolicy::kAggMax:
      return std::max(a, b);
    default:
      return a + b;
  }
}

// Number by number, also within arrays (SCRIPT EXISTS).
std::string aggregated(proto::ResponsePolicy policy, const std::vector<std::string>& replies) {
  std::string out;
  if (!replies[0].starts_with('*')) {
    int64_t result = integer_of(replies[0]);
    for (size_t i = 1; i < replies.size(); ++i)
      result = aggregate(policy, result, integer_of(replies[i]));
    proto::append_integer(out, result);
    return out;
  }
  std::vector<int64_t> result;
  for (size_t i = 0; i < replies.size(); ++i) {
    const auto elements = elements_of(replies[i]);
    for (size_t j = 0; j < elements.size(); ++j) {
      if (i == 0) {
        result.push_back(integer_of(elements[j]));
      } else if (j < result.size()) {
        result[j] = aggregate(policy, result[j], integer_of(elements[j]));
      }
    }
  }
  proto::append_array_header(out, result.size());
  for (const int64_t number : result) proto::append_integer(out, number);
  return out;
}

std::string concatenated(const std::vector<std::string>& replies) {
  std::string body;
  size_t count = 0;
  for (const std::string& reply : replies) {
    for (const std::string_view element : elements_of(reply)) {
      body += element;
      ++count;
    }
  }
  std::string out;
  proto::append_header(out, replies[0][0], static_cast<int64_t>(count));
  return out + body;
}

std::string combined(const proto::CommandInfo& info, const std::vector<std::string>& replies) {
  using proto::ResponsePolicy;
  const auto is_error = [](const std::string& reply) { return reply.starts_with('-'); };
  const auto error = std::find_if(replies.begin(), replies.end(), is_error);
  if (info.response_policy == ResponsePolicy::kOneSucceeded) {
    const auto good = std::find_if_not(replies.begin(), replies.end(), is_error);
    return good != replies.end() ? *good : replies[0];
  }
  if (error != replies.end()) return *error;
  switch (info.response_policy) {
    case ResponsePolicy::kAggLogicalAnd:
    case ResponsePolicy::kAggLogicalOr:
    case ResponsePolicy::kAggMin:
    case ResponsePolicy::kAggMax:
    case ResponsePolicy::kAggSum:
      return aggregated(info.response_policy, replies);
    case ResponsePolicy::kDefault:
      return replies[0].starts_with('*') || replies[0].starts_with('~') ? concatenated(replies)
                                                                        : replies[0];
    default:
      return replies[0];
  }
}

bool splits(std::string_view name) {
  return name == "mget" || name == "mset" || name == "del" || name == "unlink" ||
         name == "exists" || name == "touch";
}

}  // namespace

// Several requests whose replies make one. Lives as long as a part is under way.
struct Router::Join {
  Join(Router& owner, Client& client) : router(owner), parent(&client.expect(Path::kShard, 0)) {
    router.pool_.hold(parent);
  }
  ~Join() { router.pool_.release(parent); }
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  void finish(std::string_view reply) {
    if (parent->client != nullptr) parent->client->on_answer(*parent, reply, true);
  }
  // A part of `join`; call the returned request's way to its shard, then release it.
  static Request& part(const std::shared_ptr<Join>& join, uint8_t proto) {
    Request* request = join->router.pool_.take();
    join->router.pool_.hold(request);
    request->proto = proto;
    request->parent = join->parent;
    const size_t index = join->replies.size();
    join->replies.emplace_back();
    ++join->left;
    request->done = [join, index](Request& answered) {
      join->replies[index] = std::move(answered.reply);
      if (--join->left == 0 && join->sealed) join->complete(*join);
    };
    return *request;
  }
  // No more parts come.
  static void seal(const std::shared_ptr<Join>& join) {
    join->sealed = true;
    if (join->left == 0) join->complete(*join);
  }

  Router& router;
  Request* parent;
  std::vector<std::string> replies;
  size_t left = 0;
  bool sealed = false;
  std::function<void(Join&)> complete;
};

// What one shard gets of a split command.
struct Router::Part {
  std::string body;
  size_t args = 0;
  std::vector<uint32_t> keys;  // positions in the command's list of keys
};

// Makes one reply of the parts': of MGET the values in the order asked, else the sum or the OK.
std::function<void(Router::Join&)> Router::rejoined(const Call& call,
                                                    const std::vector<Part>& parts) const {
  std::vector<std::pair<uint32_t, uint32_t>> origin;  // of each key: part, place in it
  if (call.info->name == "mget") origin.resize(positions_.size());
  uint32_t number = 0;
  for (const Part& part : parts) {
    if (part.keys.empty()) continue;
    for (uint32_t place = 0; place < part.keys.size() && !origin.empty(); ++place)
      origin[part.keys[place]] = {number, place};
    ++number;
  }
  return [origin = std::move(origin), info = call.info, count = positions_.size()](Join& all) {
    const auto error =
        std::find_if(all.replies.begin(), all.replies.end(),
                     [](const std::string& reply) { return reply.starts_with('-'); });
    if (error != all.replies.end()) return all.finish(*error);
    if (origin.empty()) {
      return all.finish(info->name == "mset"
                            ? all.replies[0]
                            : aggregated(proto::ResponsePolicy::kAggSum, all.replies));
    }
    std::vector<std::vector<std::string_view>> elements;
    for (const std::string& reply : all.replies) elements.push_back(elements_of(reply));
    std::string out;
    proto::append_array_header(out, count);
    for (const auto& [part, place] : origin)
      out += place < elements[part].size() ? elements[part][place] : std::string_view("$-1\r\n");
    all.finish(out);
  };
}

bool Router::split(Call& call) {
  if (!splits(call.info->name)) {
    call.client.error("CROSSSLOT Keys in request don't hash to the same slot (of one shard)");
    return true;
  }
  const bool writes = call.info->has(proto::kWrite);
  if (writes ? write_overtakes(call.client, 0) : call.client.overtakes(0)) return false;
  ++(writes ? metrics_.writes : metrics_.cold_reads);
  ++metrics_.split_commands;
  std::vector<Part> parts(shards_.size());
  const size_t stride = call.info->key_step > 0 ? static_cast<size_t>(call.info->key_step) : 1;
  if ((call.args.size() - 1) % stride != 0) {
    call.client.error("ERR wrong number of arguments for '" + call.info->name + "' command");
    return true;
  }
  for (uint32_t i = 0; i < positions_.size(); ++i) {
    const size_t index = positions_[i].index;
    Part& part = parts[shard_of(call.args[index])];
    part.keys.push_back(i);
    for (size_t j = 0; j < stride; ++j, ++part.args)
      proto::append_bulk(part.body, call.args[index + j]);
  }
  auto join = std::make_shared<Join>(*this, call.client);
  join->complete = rejoined(call, parts);
  for (uint32_t shard = 0; shard < parts.size(); ++shard) {
    const Part& part = parts[shard];
    if (part.keys.empty()) continue;
    std::string wire;
    proto::append_array_header(wire, part.args + 1);
    proto::append_bulk(wire, call.args[0]);
    wire += part.body;
    Request& request = Join::part(join, call.client.proto);
    if (writes) {
      for (const uint32_t key : part.keys) {
        const std::string_view text = call.args[positions_[key].index];
        request.add_key(text, balance::key_hash(text));
      }
      shards_[shard]->write(wire, request, call.now);
    } else {
      shards_[shard]->read(wire, request, call.now);
    }
    pool_.release(&request);
  }
  Join::seal(join);
  return true;
}

bool Router::fan_out(Call& call, std::string_view wire) {
  if (call.client.overtakes(0)) return false;
  if (shards_.size() == 1) {
    shards_[0]->read(wire, call.client.expect(Path::kShard, 0), call.now);
    return true;
  }
  gather(call, wire, Carrier::kLink,
         [info = call.info](const auto& replies) { return combined(*info, replies); });
  return true;
}

// The same command to every shard; `combine` makes one reply of theirs.
void Router::gather(Call& call, std::string_view wire, Carrier carrier,
                    std::function<std::string(const std::vector<std::string>&)> combine) {
  auto join = std::make_shared<Join>(*this, call.client);
  join->complete = [combine = std::move(combine)](Join& all) { all.finish(combine(all.replies)); };
  for (const auto& shard : shards_) {
    Request& request = Join::part(join, call.client.proto);
    if (carrier == Carrier::kFlush) {
      shard->flush(wire, request, call.now);
    } else if (carrier == Carrier::kControl) {
      shard->control(wire, request, call.now);
    } else {
      shard->read(wire, request, call.now);
    }
    pool_.release(&request);
  }
  Join::seal(join);
}

// SCRIPT KILL and its kind, which a shard answers while a script runs: on another connection than
// the script's. Not before the client's own commands are answered, or it would end its own script.
bool Router::while_busy(Call& call) {
  if (!call.client.idle()) return false;
  gather(call, call.wire, Carrier::kControl,
         [info = call.info, proto = call.client.proto](const auto& replies) {
           std::string reply = combined(*info, replies);
           std::string plain;
           return proto == 2 && proto::downgrade(reply, plain) ? plain : reply;
         });
  return true;
}

bool Router::flush_all(Call& call) {
  if (write_overtakes(call.client, 0)) return false;
  ++metrics_.writes;
  gather(call, call.wire, Carrier::kFlush,
         [info = call.info](const auto& replies) { return combined(*info, replies); });
  return true;
}

// The cursor a client sees is the shard's own times the number of shards, plus the shard's number.
bool Router::scan(Call& call) {
  if (call.client.overtakes(0)) return false;
  uint64_t cursor = 0;
  const std::string_view text = call.args[1];
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    call.client.error("ERR invalid cursor");
    return true;
  }
  const uint64_t shards = shards_.size();
  const uint64_t shard = cursor % shards;
  const std::string inner = std::to_string(cursor / shards);
  std::vector<std::string_view> args(call.args.begin(), call.args.end());
  args[1] = inner;
  std::string wire;
  proto::append_command(wire, args);
  auto join = std::make_shared<Join>(*this, call.client);
  join->complete = [shard, shards](Join& all) {
    const std::string& reply = all.replies[0];
    const auto elements = elements_of(reply);
    if (elements.size() != 2) return all.finish(reply);
    uint64_t next = 0;
    const size_t line = elements[0].find("\r\n");
    std::from_chars(elements[0].data() + line + 2, elements[0].data() + elements[0].size(), next);
    uint64_t shown = next * shards + shard;
    if (next == 0) shown = shard + 1 < shards ? shard + 1 : 0;
    std::string out;
    proto::append_array_header(out, 2);
    proto::append_bulk(out, std::to_string(shown));
    out += elements[1];
    all.finish(out);
  };
  Request& request = Join::part(join, call.client.proto);
  shards_[shard]->read(wire, request, call.now);
  pool_.release(&request);
  Join::seal(join);
  return true;
}

// Each shard is asked; one that has keys is drawn in proportion to how many.
bool Router::random_key(Call& call) {
  if (shards_.size() == 1) return single_shard(call, 0);
  if (call.client.overtakes(0)) return false;
  auto join = std::make_shared<Join>(*this, call.client);
  join->complete = [this](Join& all) {
    const size_t shards = shards_.size();
    uint64_t total = 0;
    for (size_t i = 0; i < shards; ++i) total += static_cast<uint64_t>(integer_of(all.replies[i]));
    uint64_t drawn = total > 0 ? random_.below(total) : 0;
    for (size_t i = 0; i < shards; ++i) {
      const uint64_t size = static_cast<uint64_t>(integer_of(all.replies[i]));
      if (drawn < size) return all.finish(all.replies[shards + i]);
      drawn -= size;
    }
    all.finish(all.replies[shards]);
  };
  for (const std::string_view wire : {std::string_view("*1\r\n$6\r\nDBSIZE\r\n"), call.wire}) {
    for (const auto& shard : shards_) {
      Request& request = Join::part(join, call.client.proto);
      shard->read(wire, request, call.now);
      pool_.release(&request);
    }
  }
  Join::seal(join);
  return true;
}

// PUBSUB NUMSUB and SHARDNUMSUB: each channel is counted on its shard.
bool Router::channel_counts(Call& call) {
  if (call.client.overtakes(0)) return false;
  auto join = std::make_shared<Join>(*this, call.client);
  join->complete = [](Join& all) {
    all.finish(all.replies.empty() ? std::string("*0\r\n") : concatenated(all.replies));
  };
  for (const std::string_view channel : call.args.subspan(2)) {
    std::string wire;
    const std::string_view args[] = {call.args[0], call.args[1], channel};
    proto::append_command(wire, args);
    Request& request = Join::part(join, call.client.proto);
    shards_[shard_of(channel)]->read(wire, request, call.now);
    pool_.release(&request);
  }
  Join::seal(join);
  return true;
}

bool Router::keyless(Call& call) {
  using proto::RequestPolicy;
  if (call.info->has(proto::kAdmin) && !config_.admin_commands) return refuse(call);
  if (call.info->has(proto::kAllowBusy)) return while_busy(call);
  if (may_write_unnamed_keys(call)) return unknown_keys(call);
  if (call.info->request_policy == RequestPolicy::kAllShards ||
      call.info->request_policy == RequestPolicy::kAllNodes || call.info->has(proto::kAdmin))
    return fan_out(call, call.wire);
  return single_shard(call, 0);
}

}  // namespace ballast::cache
