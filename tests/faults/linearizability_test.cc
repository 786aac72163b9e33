// SPDX-License-Identifier: Apache-2.0
#include "linearizability.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/random.h"

namespace ballast::faults {
namespace {

using Operations = std::vector<Operation>;

Operation read(Value value, Nanos from, Nanos until) { return {OpKind::kRead, value, from, until}; }
Operation write(Value value, Nanos from, Nanos until, Nanos ttl = 0) {
  return {OpKind::kWrite, value, from, until, ttl};
}
Operation del(Nanos from, Nanos until) { return {OpKind::kDelete, kNil, from, until}; }

constexpr CheckOptions kExact{.expiry_slack_ns = 0};

bool is_linearizable(const Operations& operations) { return !check_key("k", operations, kExact); }

TEST(Linearizability, AcceptsWhatOneRegisterCanDo) {
  EXPECT_TRUE(is_linearizable({}));
  EXPECT_TRUE(is_linearizable({read(kNil, 0, 1), write(1, 2, 3), read(1, 4, 5)}));
  EXPECT_TRUE(is_linearizable({write(1, 0, 10), read(1, 1, 2), read(1, 3, 4)}));
  EXPECT_TRUE(is_linearizable({write(1, 0, 10), read(kNil, 1, 2), read(1, 3, 4)}));
  EXPECT_TRUE(is_linearizable({write(1, 0, 1), del(2, 3), read(kNil, 4, 5)}));
  EXPECT_TRUE(is_linearizable({write(1, 0, 1), write(2, 2, 9), read(2, 3, 4), read(2, 5, 6)}));
  EXPECT_TRUE(is_linearizable({write(1, 0, 9), write(2, 0, 9), read(2, 10, 11)}));
}

TEST(Linearizability, RejectsStaleReads) {
  EXPECT_FALSE(is_linearizable({write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)}));
  EXPECT_FALSE(is_linearizable({write(1, 0, 1), read(kNil, 2, 3)}));
  EXPECT_FALSE(is_linearizable({write(1, 0, 1), del(2, 3), read(1, 4, 5)}));
  // New, then old again, while the write is still running.
  EXPECT_FALSE(is_linearizable({write(1, 0, 1), write(2, 2, 9), read(2, 3, 4), read(1, 5, 6)}));
  EXPECT_FALSE(is_linearizable({read(7, 0, 1)}));
  EXPECT_FALSE(is_linearizable({read(1, 0, 1), write(1, 2, 3)}));
}

TEST(Linearizability, UnknownOutcomesMayHappenLateOrNever) {
  EXPECT_TRUE(is_linearizable({write(1, 0, 1), write(2, 2, kNever), read(1, 50, 51)}));
  EXPECT_TRUE(
      is_linearizable({write(1, 0, 1), write(2, 2, kNever), read(1, 50, 51), read(2, 60, 61)}));
  EXPECT_FALSE(
      is_linearizable({write(1, 0, 1), write(2, 2, kNever), read(2, 50, 51), read(1, 60, 61)}));
  EXPECT_TRUE(is_linearizable({write(1, 0, 1), del(2, kNever), read(1, 3, 4), read(kNil, 5, 6)}));
  // One delete cannot empty the register twice.
  EXPECT_FALSE(is_linearizable({write(1, 0, 1), del(2, kNever), read(kNil, 3, 4), write(2, 5, 6),
                                read(2, 7, 8), read(kNil, 9, 10)}));
  EXPECT_FALSE(is_linearizable({write(1, 0, 1), read(kNil, 3, 4), del(5, kNever)}));
}

TEST(Linearizability, ExpiryExplainsNilOnlyAfterItsTime) {
  EXPECT_TRUE(is_linearizable({write(1, 0, 1, 10), read(kNil, 12, 13)}));
  EXPECT_TRUE(is_linearizable({write(1, 0, 1, 10), read(1, 2, 3), read(kNil, 9, 10)}));
  EXPECT_FALSE(is_linearizable({write(1, 0, 1, 10), read(kNil, 5, 6)}));
  EXPECT_FALSE(is_linearizable({write(1, 0, 1, 10), read(1, 12, 13)}));
  EXPECT_FALSE(
      is_linearizable({write(1, 0, 1, 10), write(2, 2, 3), read(2, 12, 13), read(kNil, 14, 15)}));
}

TEST(Linearizability, WindowIsSmallAndReadable) {
  Operations operations;
  for (Value v = 1; v <= 1000; ++v) {
    operations.push_back(write(v, v * 100, v * 100 + 10));
    operations.push_back(read(v, v * 100 + 20, v * 100 + 30));
  }
  operations.push_back(del(50'015, 50'016));
  operations.push_back(read(kNil, 50'017, 50'018));
  const auto stale = check_key("hot", operations, kExact);
  ASSERT_TRUE(stale);
  EXPECT_LE(stale->window.size(), 4U);
  EXPECT_NE(describe(*stale).find("key hot: "), std::string::npos);

  Operations no_source;
  for (Value v = 1; v <= 1000; ++v) no_source.push_back(write(v, v * 100, v * 100 + 10));
  no_source.push_back(read(kNil, 50'050, 50'060));
  const auto from_nowhere = check_key("hot", no_source, kExact);
  ASSERT_TRUE(from_nowhere);
  EXPECT_LE(from_nowhere->window.size(), 3U);
}

TEST(Linearizability, FlushDeletesEveryKey) {
  History history;
  history.add("a", write(1, 0, 1));
  history.add("b", write(2, 0, 1));
  history.add_flush(2, 3, 0);
  history.add("a", read(kNil, 4, 5));
  EXPECT_TRUE(history.check(kExact).empty());
  history.add("b", read(2, 4, 5));
  ASSERT_EQ(history.check(kExact).size(), 1U);
  EXPECT_EQ(history.check(kExact).front().key, "b");
}

// Tries every order of effects.
class BruteForce {
 public:
  explicit BruteForce(const Operations& operations) {
    for (const Operation& op : operations) {
      if (op.kind != OpKind::kRead || op.response_ns != kNever) effects_.push_back({op, -1});
    }
    const size_t count = effects_.size();
    for (size_t i = 0; i < count; ++i) add_expiry(i);
  }

  bool accepts() { return explore(0, kNil); }

 private:
  struct Effect {
    Operation op;
    int expiry_of;  // the write whose value this removes, -1 if not an expiry
  };

  void add_expiry(size_t index) {
    const Operation op = effects_[index].op;
    if (op.kind != OpKind::kWrite || op.ttl_ns == 0) return;
    Nanos applied_ns = op.response_ns;
    for (const Effect& effect : effects_) {
      if (effect.op.kind == OpKind::kRead && effect.op.value == op.value) {
        applied_ns = std::min(applied_ns, effect.op.response_ns);
      }
    }
    const Nanos until = applied_ns == kNever ? kNever : applied_ns + op.ttl_ns;
    effects_.push_back({del(op.invoke_ns + op.ttl_ns, until), static_cast<int>(index)});
  }

  bool explore(uint32_t done, Value state) {
    if (!seen_.insert({done, state}).second) return false;
    bool complete = true;
    Nanos earliest_response = kNever;
    for (size_t i = 0; i < effects_.size(); ++i) {
      if ((done >> i & 1) != 0) continue;
      if (effects_[i].op.response_ns != kNever) complete = false;
      earliest_response = std::min(earliest_response, effects_[i].op.response_ns);
    }
    if (complete) return true;
    for (size_t i = 0; i < effects_.size(); ++i) {
      const Operation& op = effects_[i].op;
      if ((done >> i & 1) != 0 || op.invoke_ns > earliest_response) continue;
      const int expiry_of = effects_[i].expiry_of;
      if (expiry_of >= 0 && (done >> expiry_of & 1) == 0) continue;
      if (expiry_of < 0 && op.kind == OpKind::kRead && op.value != state) continue;
      Value next = op.kind == OpKind::kDelete ? kNil : op.value;
      if (expiry_of >= 0 && effects_[expiry_of].op.value != state) next = state;
      if (explore(done | 1U << i, next)) return true;
    }
    return false;
  }

  std::vector<Effect> effects_;
  std::set<std::pair<uint32_t, Value>> seen_;
};

Operations random_short_history(Random& random) {
  const Nanos span = 6 + static_cast<Nanos>(random.below(14));
  const Value values = 1 + static_cast<Value>(random.below(4));
  const auto interval = [&](Operation op, int unknown_in) {
    op.invoke_ns = static_cast<Nanos>(random.below(static_cast<uint64_t>(span)));
    op.response_ns = op.invoke_ns + static_cast<Nanos>(random.below(1 + random.below(8)));
    if (unknown_in > 0 && random.below(static_cast<uint64_t>(unknown_in)) == 0) {
      op.response_ns = kNever;
    }
    return op;
  };
  Operations operations;
  for (Value v = 1; v <= values; ++v) {
    const Nanos ttl = random.below(3) == 0 ? 1 + static_cast<Nanos>(random.below(8)) : 0;
    operations.push_back(interval(write(v, 0, 0, ttl), 6));
  }
  for (uint64_t n = random.below(4); n > 0; --n) operations.push_back(interval(del(0, 0), 4));
  for (uint64_t n = 1 + random.below(5); n > 0; --n) {
    const Value value = static_cast<Value>(random.below(static_cast<uint64_t>(values) + 1));
    operations.push_back(interval(read(value, 0, 0), 10));
  }
  return operations;
}

// Times of a few nanoseconds, to be read as milliseconds.
Violation magnified(Operations operations) {
  for (Operation& op : operations) {
    op.invoke_ns *= kMillisecond;
    if (op.response_ns != kNever) op.response_ns *= kMillisecond;
    op.ttl_ns *= kMillisecond;
  }
  return {"k", "the whole history", operations};
}

TEST(Linearizability, AgreesWithBruteForceOnShortHistories) {
  Random random(20'19);
  int accepted = 0;
  constexpr int kHistories = 60'000;
  for (int i = 0; i < kHistories; ++i) {
    const Operations operations = random_short_history(random);
    const bool expected = BruteForce(operations).accepts();
    accepted += expected;
    const auto violation = check_key("k", operations, kExact);
    ASSERT_EQ(!violation, expected) << "history " << i << "\n" << describe(magnified(operations));
  }
  EXPECT_GT(accepted, kHistories / 20);
  EXPECT_LT(accepted, kHistories - kHistories / 20);
}

// What clients of a real register see: each effect at a random moment of its interval.
struct Simulated {
  Operations operations;
  std::vector<Nanos> effects_ns;
};

Simulated simulate(Random& random, size_t count, size_t clients) {
  struct Planned {
    Operation op;
    Nanos effect_ns;
  };
  std::vector<Planned> planned;
  Value next_value = 1;
  for (size_t client = 0; client < clients; ++client) {
    Nanos now = 0;
    for (size_t i = 0; i < count / clients; ++i) {
      now += 1 + static_cast<Nanos>(random.below(3000));
      const Nanos effect = now + static_cast<Nanos>(random.below(10'000));
      const Nanos response = effect + static_cast<Nanos>(random.below(10'000));
      const uint64_t dice = random.below(100);
      Operation op = read(kNil, now, response);
      if (dice < 20) op = write(next_value++, now, response);
      if (dice < 5) op.ttl_ns = 1 + static_cast<Nanos>(random.below(100'000));
      if (dice >= 20 && dice < 24) op = del(now, response);
      op.session = static_cast<int32_t>(client);
      planned.push_back({op, effect});
      now = response;
    }
  }
  std::sort(planned.begin(), planned.end(),
            [](const Planned& a, const Planned& b) { return a.effect_ns < b.effect_ns; });
  Value state = kNil;
  Nanos expires = kNever;
  Simulated result;
  for (Planned& p : planned) {
    if (p.effect_ns >= expires) state = kNil;
    if (p.op.kind == OpKind::kRead) {
      p.op.value = state;
    } else {
      state = p.op.kind == OpKind::kWrite ? p.op.value : kNil;
      expires = p.op.ttl_ns > 0 ? p.effect_ns + p.op.ttl_ns : kNever;
    }
    if (random.below(200) == 0) p.op.response_ns = kNever;
    result.operations.push_back(p.op);
    result.effects_ns.push_back(p.effect_ns);
  }
  return result;
}

TEST(Linearizability, AcceptsARealRegister) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const Simulated simulated = simulate(random, 500, 1 + random.below(40));
    const auto violation = check_key("k", simulated.operations, kExact);
    ASSERT_FALSE(violation) << "round " << round << "\n" << describe(*violation);
  }
  EXPECT_FALSE(check_key("k", simulate(random, 300'000, 64).operations, kExact));
}

// Makes one read return the value that was there before a write that had been acknowledged when
// the read began.
bool inject_stale_read(Random& random, Operations& operations) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const size_t i = random.below(operations.size());
    Operation& victim = operations[i];
    if (victim.kind != OpKind::kRead || victim.response_ns == kNever) continue;
    const Operation* last = nullptr;  // the latest write acknowledged before the read
    for (const Operation& op : operations) {
      if (op.kind == OpKind::kWrite && op.response_ns < victim.invoke_ns &&
          (last == nullptr || op.invoke_ns > last->invoke_ns)) {
        last = &op;
      }
    }
    for (const Operation& op : operations) {
      if (last != nullptr && op.kind == OpKind::kWrite && op.response_ns < last->invoke_ns) {
        victim.value = op.value;
        return true;
      }
    }
  }
  return false;
}

TEST(Linearizability, RejectsARealRegisterWithOneStaleRead) {
  Random random(8);
  for (int round = 0; round < 200; ++round) {
    Operations operations = simulate(random, 500, 1 + random.below(20)).operations;
    if (!inject_stale_read(random, operations)) continue;
    ASSERT_TRUE(check_key("k", operations, kExact)) << "round " << round;
  }
  Operations large = simulate(random, 200'000, 32).operations;
  ASSERT_TRUE(inject_stale_read(random, large));
  const auto violation = check_key("k", large, kExact);
  ASSERT_TRUE(violation);
  EXPECT_LE(violation->window.size(), 6U) << describe(*violation);
}

}  // namespace
}  // namespace ballast::faults
