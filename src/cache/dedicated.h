// SPDX-License-Identifier: Apache-2.0
// Connections to shards that belong to one client: for what a shard remembers of a connection
// (WATCH), for what holds it up (blocking commands), and for subscriptions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "cache/link.h"
#include "cache/shard.h"

namespace ballast::cache {

class Client;

class Dedicated final : public LinkOwner {
 public:
  Dedicated(io::Loop& loop, RequestPool& pool, Shard& shard, uint8_t proto);
  ~Dedicated() override;

  // Until then it is a spare one.
  void give_to(Client& client) { client_ = &client; }

  // `request` holds a place in the client's queue and may name keys it writes; then the home sees
  // to their copies before the command leaves, and for as long as it is not answered.
  void send(std::string_view wire, Request& request, Nanos now);
  bool broken() const { return broken_; }
  // The client's WATCH went this way.
  void set_watching() { watching_ = true; }
  bool watching() const { return watching_ && !broken_; }
  uint8_t proto() { return link_.options().proto; }
  int64_t client_id() const { return link_.client_id(); }
  Shard& shard() { return shard_; }

  void on_link_up(Link& link) override;
  void on_link_down(Link& link, const std::string& cause) override;
  void on_answer(Request& request, std::string_view piece, bool last, Nanos now) override;
  void on_timeout(Request& request) override;
  void on_failure(Request& request, const std::string& cause) override;
  void on_push(Link& link, std::string_view push) override;

 private:
  Client* client_ = nullptr;
  Shard& shard_;
  Link link_;
  int64_t known_id_ = 0;
  bool broken_ = false;
  bool watching_ = false;
};

}  // namespace ballast::cache
