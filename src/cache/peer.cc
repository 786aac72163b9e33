// SPDX-License-Identifier: Apache-2.0
#include "cache/peer.h"

#include "cache/deliver.h"
#include "proto/resp_value.h"
#include "proto/resp_write.h"

namespace ballast::cache {

Peer::Peer(io::Loop& loop, RequestPool& pool, PeerOwner& owner, PeerOptions options)
    : pool_(pool),
      owner_(owner),
      options_(std::move(options)),
      link_(loop, pool, *this,
            {.address = options_.address,
             .name = {},
             .user = {},
             .password = options_.password,
             .proto = 3,
             .connect_timeout = options_.connect_timeout,
             .silence = options_.write_timeout}) {}

std::string Peer::error() const {
  return "CLUSTERDOWN " + options_.name + " at " + options_.address.text() +
         " is down: " + link_.cause();
}

void Peer::read(uint32_t shard, std::string_view key, std::string_view command, uint32_t weight,
                std::function<void(Request&)> done) {
  Request* request = pool_.take();
  pool_.hold(request);
  request->done = std::move(done);
  request->deadline = now_ns() + options_.read_timeout;
  const std::string member = std::to_string(options_.member);
  const std::string weight_text = std::to_string(weight);
  const std::string shard_text = std::to_string(shard);
  const std::string_view args[] = {kPeerRead, member, weight_text, shard_text, key, command};
  scratch_.clear();
  proto::append_command(scratch_, args);
  link_.send(scratch_, *request);
  pool_.release(request);
}

void Peer::write(uint32_t shard, std::string_view wire, Request& request) {
  if (!link_.up()) return deliver_error(request, error());
  const uint64_t id = next_write_++;
  scratch_.clear();
  proto::append_array_header(scratch_, 8 + request.hashes.size());
  proto::append_bulk(scratch_, kPeerWrite);
  for (const uint64_t number :
       {id, uint64_t{shard}, uint64_t{request.proto}, uint64_t{request.flush},
        uint64_t{request.skip}, uint64_t{request.hashes.size()}})
    proto::append_bulk(scratch_, std::to_string(number));
  for (size_t i = 0; i < request.hashes.size(); ++i) proto::append_bulk(scratch_, request.keys[i]);
  proto::append_bulk(scratch_, wire);
  pool_.hold(&request);
  request.deadline = now_ns() + options_.write_timeout;
  writes_.emplace(id, &request);
  link_.send_unanswered(scratch_);
}

void Peer::send(const HomeMessage& message) {
  if (!link_.up()) return;  // messages may be lost; the lease sees to the rest
  scratch_.clear();
  append_home_message(scratch_, message);
  link_.send_unanswered(scratch_);
}

void Peer::finish_write(uint64_t id, std::string_view reply) {
  const auto it = writes_.find(id);
  if (it == writes_.end()) return;
  Request* request = it->second;
  writes_.erase(it);
  deliver(*request, reply, true);
  pool_.release(request);
}

void Peer::tick(Nanos now) {
  link_.tick(now);
  while (!writes_.empty() && writes_.begin()->second->deadline <= now) {
    Request* request = writes_.begin()->second;
    writes_.erase(writes_.begin());
    deliver_error(*request, "ERR " + options_.name + " did not answer a write in time");
    pool_.release(request);
  }
}

void Peer::on_link_up(Link& /*link*/) { owner_.on_peer(*this, true); }

void Peer::on_link_down(Link& /*link*/, const std::string& /*cause*/) {
  std::map<uint64_t, Request*> lost = std::exchange(writes_, {});
  for (const auto& [id, request] : lost) {
    deliver_error(*request, error());
    pool_.release(request);
  }
  owner_.on_peer(*this, false);
}

void Peer::on_answer(Request& request, std::string_view piece, bool last, Nanos /*now*/) {
  deliver(request, piece, last);
}

void Peer::on_timeout(Request& request) {
  deliver_error(request, "ERR " + options_.name + " did not answer in time");
}

void Peer::on_failure(Request& request, const std::string& /*cause*/) {
  deliver_error(request, error());
}

void Peer::on_push(Link& /*link*/, std::string_view push) {
  const auto value = proto::parse_value(push);
  if (!value || value->children.empty()) return;
  const auto& children = value->children;
  if (children[0].string == kPushWrote && children.size() == 3) {
    uint64_t id = 0;
    if (parse_number(children[1].string, id)) finish_write(id, children[2].string);
  } else if (children[0].string == kPushNode) {
    std::vector<std::string_view> fields;
    for (size_t i = 1; i < children.size(); ++i) fields.push_back(children[i].string);
    if (auto message = parse_node_message(fields)) owner_.on_node_message(std::move(*message));
  }
}

}  // namespace ballast::cache
