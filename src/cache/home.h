// SPDX-License-Identifier: Apache-2.0
// The home of one shard's objects: who holds copies, which leases run, which writes wait. Pure:
// time is an argument, everything to be done leaves through HomeOutput. Rules and reasons:
// docs/design/coherence.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cache/messages.h"

namespace ballast::cache {

// What the home asks of its surroundings. Calls may come from within any Home method, and the
// surroundings may call back into the home from there only where said.
class HomeOutput {
 public:
  virtual ~HomeOutput() = default;
  virtual void send(Incarnation node,
                    ToNode message) = 0;  // may call Home::on_message at once (same process)
  // On the tracking connection: PTTL key, then each command. Answer by Home::on_read, or by
  // on_lost.
  virtual void read(uint64_t read_id, std::string_view key,
                    std::span<const CachedCommand> commands) = 0;
  // A round trip on the tracking connection. Answer by Home::on_pong, or by on_lost.
  virtual void ping(uint64_t ping_id) = 0;
  // The write begun under `token` may go to the shard: no node can serve an older value of its
  // keys.
  virtual void write_ready(uint64_t token) = 0;
};

struct HomeConfig {
  uint64_t epoch = 0;
  Nanos lease = kSecond;
  Nanos drift_margin = 50 * kMillisecond;  // added on the home's side
  Nanos patience = 100 * kMillisecond;     // an invalidation unanswered this long stops renewals
  Nanos repeat = 50 * kMillisecond;        // unanswered messages are sent again
  size_t max_reply = 64 * 1024;            // a larger reply is refused
  size_t max_entries = 1 << 20;            // directory bound; more admissions are refused
};

struct HomeStats {
  uint64_t admissions = 0, refusals = 0, fills = 0, invalidations = 0, writes_delayed = 0,
           lease_waits = 0, pushes = 0, drops = 0;
  size_t entries = 0, waiting = 0;
};

class Home {
 public:
  Home(HomeConfig config, HomeOutput& output);
  ~Home();
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  // A write to `keys` (hashes alongside) wants to go to the shard. True: send it now. False:
  // write_ready(token) comes later, possibly from another call. Either way write_end must follow
  // once the shard has answered, or once the connection that carried it is known dead at the shard.
  // Several writes to a key may be in flight at once; a blocking command is a write that is in
  // flight for long. Tokens are the caller's, unique while in use.
  bool write_begin(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                   uint64_t token, Nanos now);
  void write_end(std::span<const std::string_view> keys, std::span<const uint64_t> hashes,
                 Nanos now);
  // A write that waits gives up (its client left). No write_end then. False: it was not waiting.
  bool write_cancel(uint64_t token);

  // FLUSHALL and the like: all keys of the shard.
  bool flush_begin(uint64_t token, Nanos now);
  void flush_end(Nanos now);

  // True if a write to this key waits for copies to go: a later read of the same client must queue
  // behind it.
  bool write_waits(std::string_view key, uint64_t hash) const;

  // The fence stands (or stands again): this process alone can write, all tracking is on.
  // `unknown_history`: another home may have granted leases that still run (process start,
  // takeover); writes wait one lease.
  void on_fenced(bool unknown_history, Nanos now);
  // The tracking connection or a connection that carries writes is lost, or the fence is in doubt.
  // Every copy goes; writes wait until on_fenced and until no lease given so far runs.
  void on_lost(Nanos now);
  bool ready() const;  // fenced and past the wait: writes pass

  void on_message(Incarnation node, ToHome message, Nanos now);
  // A node's connection closed. Its lease runs on; it is only no longer written to.
  void on_node_gone(Incarnation node);
  // The first reply (PTTL's) of a read has come: a push to its key from now on is newer than the
  // read. Until this is called for the first time, every push during a read counts as newer.
  void on_read_begun(uint64_t read_id);
  // `ttl_ms` as PTTL says: -1 no expiry, -2 no such key. One reply per command, RESP3 bytes.
  void on_read(uint64_t read_id, int64_t ttl_ms, std::span<const std::string_view> replies,
               Nanos now);
  void on_pong(uint64_t ping_id, Nanos now);
  void on_push(std::string_view key, uint64_t hash,
               Nanos now);      // the shard: key was changed by somebody
  void on_push_all(Nanos now);  // the shard: everything was flushed

  // Repeats, lease ends, renewals. Call every few milliseconds at least while anything waits.
  void tick(Nanos now);

  HomeStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ballast::cache
