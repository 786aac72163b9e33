// SPDX-License-Identifier: Apache-2.0
// One client of the recorded workload: sends batches of commands on a connection of its own, writes
// down what it sent and saw, and checks the order of replies to the keys only it writes (I3). Hot
// keys differ in how often they are written: the nodes keep no copy of one written all the time,
// and a run in which no copy is read proves nothing of copies.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "blocking_client.h"
#include "linearizability.h"

namespace ballast::faults {

struct WorkloadOptions {
  std::vector<Endpoint> endpoints;
  std::string prefix;  // of every key of this run, so that each begins as nil
  int sessions = 12;
  int hot_keys = 6;
  int cold_keys = 2000;
  int write_percent = 4;  // SET, one in five with a time to live
  int delete_percent = 1;
  Nanos timeout_ns = 3 * kSecond;
  uint64_t seed = 1;
  bool has_flushes = false;
};

// What all sessions share.
struct Progress {
  explicit Progress(int sessions) : own_generations(static_cast<size_t>(sessions)) {}

  // Each session's own key: only it writes it, all read it; a new one after an unknown outcome.
  std::vector<std::atomic<int>> own_generations;
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> operations = 0;
  std::atomic<uint64_t> errors = 0;  // error replies
  std::atomic<uint64_t> reconnects = 0;
  std::atomic<uint64_t> unknown = 0;  // writes of unknown outcome
};

struct Record {
  std::string key;
  Operation operation;
};

std::string encode_value(Value value, std::string_view key);
// Nothing if the text is no value of that key.
std::optional<Value> decode_value(std::string_view text, std::string_view key);

class Session {
 public:
  // `watched` are further keys to read, written by others.
  Session(const WorkloadOptions& options, int id, std::vector<std::string> watched,
          Progress& progress);

  // Until progress.stop; then records() and complaints() may be read.
  void run();

  const std::vector<Record>& records() const { return records_; }
  // Violations of I3, one sentence each.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  // One command of a batch. `own_before` is what the only writer knows the key to hold before it.
  struct Sent {
    std::vector<std::string> keys;
    Operation operation;
    std::optional<Value> own_before;
  };

  bool ensure_connected();
  void fill_batch();
  void add_read(std::string key);
  void add_multi_read();
  void add_write(const std::string& key, Nanos ttl_ns);
  void add_delete(const std::string& key);
  void add_own_pair();
  void push(Sent sent, const std::vector<std::string_view>& arguments);
  std::string own_key(int session) const;
  uint64_t pick_written_key();
  Nanos pick_ttl(uint64_t hot);
  std::string pick_key();
  std::string pick_key(uint64_t hot);  // that hot key or a cold one
  void exchange();
  void take_reply(Sent& sent, const Reply& reply, Nanos response_ns);
  void take_value(const Sent& sent, const std::string& key, const Reply& reply, Nanos response_ns);
  void lose(size_t from);
  void abandon_own_key();
  void complain(std::string sentence);

  const WorkloadOptions& options_;
  const int id_;
  const std::vector<std::string> watched_;
  Progress& progress_;
  Random random_;
  std::optional<BlockingClient> client_;
  size_t endpoint_;
  Value next_value_;
  Value own_value_ = kNil;
  std::vector<Sent> batch_;
  std::string request_;
  std::vector<Record> records_;
  std::vector<std::string> complaints_;
};

}  // namespace ballast::faults
