// SPDX-License-Identifier: Apache-2.0
// One client's subscriptions. A channel lives on the shard of its slot; patterns and keyspace
// channels are subscribed on every shard. The connections speak RESP3, so that everything that
// comes is a push.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "cache/link.h"

namespace ballast::cache {

class Client;
class Router;

class Subscriptions final : public LinkOwner {
 public:
  Subscriptions(Router& router, Client& client) : router_(router), client_(client) {}
  ~Subscriptions() override;

  // `kind`: "subscribe", "psubscribe", "ssubscribe" or the same with "un". The client is blocked
  // until every confirmation has come.
  void command(std::string_view kind, std::span<const std::string_view> channels);
  size_t count() const { return channels() + patterns() + shard_channels(); }
  size_t channels() const { return channels_.size(); }
  size_t patterns() const { return patterns_.size(); }
  size_t shard_channels() const { return shard_channels_.size(); }

  void on_link_up(Link& link) override;
  void on_link_down(Link& link, const std::string& cause) override;
  void on_answer(Request& request, std::string_view piece, bool last, Nanos now) override;
  void on_timeout(Request& request) override;
  void on_failure(Request& request, const std::string& cause) override;
  void on_push(Link& link, std::string_view push) override;

 private:
  struct Confirmation {
    std::string kind;
    std::string channel;
    size_t left;  // shards that have not confirmed
  };
  std::set<std::string, std::less<>>& set_of(std::string_view kind);
  void ask(std::string_view kind, std::string_view channel);
  void send_to(uint32_t shard, std::string_view wire);
  void confirmed(std::string_view kind, std::string_view channel);
  void tell_confirmed();
  void tell(std::string_view kind, std::string_view channel, bool nil);

  Router& router_;
  Client& client_;
  std::map<uint32_t, std::unique_ptr<Link>> links_;
  std::set<std::string, std::less<>> channels_;
  std::set<std::string, std::less<>> patterns_;
  std::set<std::string, std::less<>> shard_channels_;
  std::deque<Confirmation> asked_;
};

}  // namespace ballast::cache
