// SPDX-License-Identifier: Apache-2.0
// The connection to another process of the tier: reads of its node's copies, writes to the shards
// whose home it is, and the messages between this process's nodes and its homes. See peer_wire.h
// for the words.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cache/link.h"
#include "cache/peer_wire.h"

namespace ballast::cache {

class Peer;

class PeerOwner {
 public:
  virtual ~PeerOwner() = default;
  virtual void on_peer(Peer& peer, bool up) = 0;
  virtual void on_node_message(NodeMessage message) = 0;
};

struct PeerOptions {
  std::string name;  // "leaf rack-0", as errors name it
  io::Address address;
  std::string password;
  uint16_t member = 0;  // its node's number
  Nanos connect_timeout = kSecond;
  Nanos read_timeout = 200 * kMillisecond;  // a copy that takes longer is not worth waiting for
  Nanos write_timeout = 5 * kSecond;
};

class Peer final : public LinkOwner {
 public:
  Peer(io::Loop& loop, RequestPool& pool, PeerOwner& owner, PeerOptions options);

  void open() { link_.open(); }
  void shut_down() { link_.shut_down(); }
  bool up() const { return link_.up(); }
  std::string why() const { return link_.up() ? "" : link_.cause(); }
  const PeerOptions& options() const { return options_; }

  // `done` gets the answer in request.reply: an attribute with the node's load, then the copy or
  // -MISS; an error alone if the node does not answer.
  void read(uint32_t shard, std::string_view key, std::string_view command, uint32_t weight,
            std::function<void(Request&)> done);
  // A write of request.keys to a shard whose home the peer is; the answer goes to the request's
  // client or `done`.
  void write(uint32_t shard, std::string_view wire, Request& request);
  void send(const HomeMessage& message);

  void tick(Nanos now);

  void on_link_up(Link& link) override;
  void on_link_down(Link& link, const std::string& cause) override;
  void on_answer(Request& request, std::string_view piece, bool last, Nanos now) override;
  void on_timeout(Request& request) override;
  void on_failure(Request& request, const std::string& cause) override;
  void on_push(Link& link, std::string_view push) override;

 private:
  std::string error() const;
  void finish_write(uint64_t id, std::string_view reply);

  RequestPool& pool_;
  PeerOwner& owner_;
  PeerOptions options_;
  Link link_;
  std::map<uint64_t, Request*> writes_;  // by id, which is the order sent
  uint64_t next_write_ = 1;
  std::string scratch_;
};

}  // namespace ballast::cache
