// SPDX-License-Identifier: Apache-2.0
#include "cache/dedicated.h"

#include <limits>

#include "cache/client.h"
#include "cache/deliver.h"

namespace ballast::cache {
namespace {

LinkOptions options_for(const Shard& shard, uint8_t proto) {
  const ShardOptions& options = shard.options();
  return {.address = options.session_address,
          .name = options.home ? options.name_prefix + std::to_string(options.coherence.epoch) : "",
          .user = options.session_user,
          .password = options.session_password,
          .proto = proto,
          .connect_timeout = options.connect_timeout};
}

}  // namespace

Dedicated::Dedicated(io::Loop& loop, RequestPool& pool, Shard& shard, uint8_t proto)
    : shard_(shard), link_(loop, pool, *this, options_for(shard, proto)) {
  link_.open();
}

Dedicated::~Dedicated() {
  link_.shut_down();
  shard_.forget_connection(known_id_);
}

void Dedicated::send(std::string_view wire, Request& request, Nanos now) {
  request.deadline = std::numeric_limits<Nanos>::max();
  if (request.hashes.empty() && !request.flush) return link_.send(wire, request);
  request.wire.assign(wire);
  shard_.guard(request, now, [this, &request] { link_.send(request.wire, request); });
}

void Dedicated::on_link_up(Link& link) {
  known_id_ = link.client_id();
  shard_.own_connection(known_id_);
}

void Dedicated::on_link_down(Link& link, const std::string& /*cause*/) {
  broken_ = true;
  link.shut_down();
}

void Dedicated::on_answer(Request& request, std::string_view piece, bool last, Nanos now) {
  if (last && request.guarded != nullptr) shard_.end_guard(request, now);
  deliver(request, piece, last);
}

void Dedicated::on_timeout(Request& /*request*/) {}

void Dedicated::on_failure(Request& request, const std::string& cause) {
  if (request.guarded != nullptr) shard_.end_guard_once_dead(request, known_id_);
  deliver_error(request, "CLUSTERDOWN shard " + shard_.options().text +
                             " is down: the connection for this command broke: " + cause);
}

void Dedicated::on_push(Link& /*link*/, std::string_view push) {
  if (client_ != nullptr) client_->push(push);
}

}  // namespace ballast::cache
