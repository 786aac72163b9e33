// SPDX-License-Identifier: Apache-2.0
#include "cache/collapse.h"

#include <utility>

#include "cache/client.h"

namespace ballast::cache {

bool Collapse::read(Shard& shard, Request& request, Nanos now) {
  pool_.hold(&request);
  if (request.started == 0) request.started = now;
  const std::string key = static_cast<char>('0' + request.proto) + request.wire;
  auto [it, first] = flights_.try_emplace(key);
  if (!first) {
    it->second.next.push_back(&request);
    return false;
  }
  it->second.sent.push_back(&request);
  send(shard, key, now);
  return true;
}

void Collapse::send(Shard& shard, const std::string& key, Nanos now) {
  Request* read = pool_.take();
  pool_.hold(read);
  read->proto = static_cast<uint8_t>(key[0] - '0');
  read->reply_limit = most_shared_;
  read->done = [this, &shard, key](Request& answered) { on_answer(shard, key, answered.reply); };
  shard.read(std::string_view(key).substr(1), *read, now);
  pool_.release(read);
}

void Collapse::on_answer(Shard& shard, const std::string& key, std::string_view reply) {
  Flight& flight = flights_.at(key);
  const std::vector<Request*> answered = std::exchange(flight.sent, std::exchange(flight.next, {}));
  const bool more = !flight.sent.empty();
  if (!more) flights_.erase(key);
  const Nanos now = now_ns();
  if (more) send(shard, key, now);
  for (Request* request : answered) {
    if (request->client != nullptr && reply.size() > most_shared_) {
      shard.read(request->wire, *request, now);
    } else if (request->client != nullptr) {
      durations_.cold_read.record(now - request->started);
      request->client->on_answer(*request, reply, true);
    }
    pool_.release(request);
  }
}

}  // namespace ballast::cache
