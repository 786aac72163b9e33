// SPDX-License-Identifier: Apache-2.0
// Leases, the drop of everything, and what time brings: repeats, lease ends, fills put off.
#include <algorithm>

#include "cache/home_impl.h"
#include "cache/sabotage.h"

namespace ballast::cache {

NodeState& Home::Impl::node_for(Incarnation node, Nanos now) {
  auto& state = nodes_[node];
  if (!state) {
    state = std::make_unique<NodeState>();
    state->generation = ++next_generation_;
  }
  state->heard = now;
  state->connected = true;
  return *state;
}

const NodeState* Home::Impl::find_node(Incarnation node) const {
  auto it = nodes_.find(node);
  return it == nodes_.end() ? nullptr : it->second.get();
}

void Home::Impl::on_message(Incarnation node, ToHome message, Nanos now) {
  now_ = now;
  NodeState& state = node_for(node, now);
  if (auto* admit = std::get_if<Admit>(&message)) {
    on_admit(node, std::move(*admit), now);
  } else if (auto* ack = std::get_if<Ack>(&message)) {
    on_ack(node, *ack, now);
  } else if (auto* release = std::get_if<Release>(&message)) {
    on_release(node, *release, now);
  } else if (auto* renew = std::get_if<Renew>(&message)) {
    state.last_seq = std::max(state.last_seq, renew->seq);
    state.wanted_seq = std::max(state.wanted_seq, renew->seq);
    if (sabotage.lease_without_ping) {
      state.pinged_seq = state.wanted_seq;
      grant(node, state, now);
    } else {
      begin_ping(now);
    }
  } else if (auto* drop = std::get_if<DropAllAck>(&message); drop->epoch == config_.epoch) {
    state.drop_acked = std::max(state.drop_acked, drop->version);
    update_open(now);
  }
  drain();
}

void Home::Impl::on_node_gone(Incarnation node) {
  auto it = nodes_.find(node);
  if (it != nodes_.end()) it->second->connected = false;
}

// A node that leaves an invalidation unanswered gets no renewal, or a write could wait for ever.
bool Home::Impl::blocked(const NodeState& state, Nanos now) const {
  if (state.drop_acked < state.drop_asked && now - state.drop_first > config_.patience) return true;
  for (const auto& [key, unanswered] : state.unanswered) {
    if (now - unanswered.first > config_.patience) return true;
  }
  return false;
}

// One round trip at a time answers all renewals that came before it began.
void Home::Impl::begin_ping(Nanos now) {
  if (!fenced_ || now < history_until_ || ping_id_ != 0) return;
  bool any = false;
  for (auto& [node, state] : nodes_) {
    state->pinged_seq = state->wanted_seq;
    state->wanted_seq = 0;
    any |= state->pinged_seq != 0;
  }
  if (!any) return;
  ping_id_ = ++next_ping_;
  effects_.push_back({Effect::Kind::kPing, ping_id_});
}

void Home::Impl::on_pong(uint64_t ping_id, Nanos now) {
  now_ = now;
  if (ping_id != ping_id_ || ping_id == 0) return;
  ping_id_ = 0;
  for (auto& [node, state] : nodes_) {
    if (state->pinged_seq != 0) grant(node, *state, now);
  }
  begin_ping(now);
  drain();
}

void Home::Impl::grant(Incarnation node, NodeState& state, Nanos now) {
  const uint64_t seq = state.pinged_seq;
  state.pinged_seq = 0;
  if (blocked(state, now)) return;
  if (now >= state.lease_until) {
    // The node drops all it holds before it takes a lease after a lapse: its holders are void.
    state.generation = ++next_generation_;
    state.unanswered.clear();
    state.drop_acked = state.drop_asked;
    settle_all(now);
  }
  state.lease_until = now + config_.lease + config_.drift_margin;
  state.live = true;
  send(node, Lease{seq});
}

void Home::Impl::on_fenced(bool unknown_history, Nanos now) {
  now_ = now;
  fenced_ = true;
  if (unknown_history && !sabotage.skip_takeover_wait) {
    history_until_ = now + config_.lease + config_.drift_margin;
  }
  update_open(now);
  begin_ping(now);
  drain();
}

void Home::Impl::on_lost(Nanos now) {
  now_ = now;
  fenced_ = false;
  open_ = false;
  ping_id_ = 0;
  for (auto& [node, state] : nodes_) {
    state->wanted_seq = std::max(state->wanted_seq, state->pinged_seq);
    state->pinged_seq = 0;
  }
  drop_all(now);
  update_open(now);
  drain();
}

void Home::Impl::drop_all(Nanos now) {
  ++stats_.drops;
  // While a drop is unanswered nothing is filled: those who answered hold nothing, the others are
  // asked already. Asking again would make writes wait for one silent node after another.
  if (drops_pending_) return;
  ++version_;
  for (auto& [node, state] : nodes_) {
    if (now >= state->lease_until) continue;
    // Who has been silent for a while does not get new patience.
    if (state->drop_acked >= state->drop_asked) state->drop_first = now;
    for (const auto& [key, unanswered] : state->unanswered) {
      state->drop_first = std::min(state->drop_first, unanswered.first);
    }
    state->drop_asked = version_;
    state->drop_last = now;
    drops_pending_ = true;
    send(node, DropAll{version_});
  }
  clear_directory();
}

void Home::Impl::clear_directory() {
  for (Entry* entry : all_) {
    entry->holders.clear();
    entry->version = version_;
    void_read(entry);
    forget_if_unused(entry);
  }
  for (auto& [node, state] : nodes_) state->unanswered.clear();
}

void Home::Impl::update_open(Nanos now) {
  if (drops_pending_) {
    drops_pending_ = std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
      const NodeState& state = *node.second;
      return state.drop_acked < state.drop_asked && now < state.lease_until;
    });
  }
  const bool was_open = open_;
  open_ = fenced_ && now >= history_until_ && !drops_pending_;
  if (!open_ || was_open) return;
  settle_all(now);
  begin_ping(now);
  retry_pending(now);
}

void Home::Impl::repeat(Incarnation node, NodeState& state, Nanos now) {
  if (!state.connected) return;
  for (auto& [key, unanswered] : state.unanswered) {
    if (now - unanswered.last < config_.repeat) continue;
    unanswered.last = now;
    send(node, Invalidate{key, unanswered.version});
  }
  if (state.drop_acked < state.drop_asked && now - state.drop_last >= config_.repeat) {
    state.drop_last = now;
    send(node, DropAll{state.drop_asked});
  }
}

void Home::Impl::retry_pending(Nanos now) {
  std::vector<Entry*> due;
  due.swap(pending_);
  for (Entry* entry : due) {
    entry->pending = false;
    const Nanos since = entry->pending_since;
    if (now - since > 2 * config_.lease) {
      refuse_unfilled(entry);  // a command that blocks, or no end of writes
      continue;
    }
    want_fill(entry, now);
    if (entry->pending) entry->pending_since = since;
  }
}

void Home::Impl::tick(Nanos now) {
  now_ = now;
  bool lapsed = false;
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    NodeState& state = *it->second;
    if (state.live && now >= state.lease_until) {
      state.live = false;
      lapsed = true;
      if (!state.unanswered.empty() || state.drop_acked < state.drop_asked) ++stats_.lease_waits;
      state.unanswered.clear();
      state.drop_acked = state.drop_asked;
    }
    repeat(it->first, state, now);
    const auto current = it++;
    if (!state.live && now - state.heard > 16 * config_.lease) nodes_.erase(current);
  }
  if (!open_) update_open(now);
  if (lapsed) settle_all(now);
  begin_ping(now);
  if (!pending_.empty()) retry_pending(now);
  sweep();
  drain();
}

// Holders whose lease has ended leave the directory a few entries at a time.
void Home::Impl::sweep() {
  for (size_t i = 0; i < 64 && !all_.empty(); ++i) {
    if (sweep_at_ >= all_.size()) {
      sweep_at_ = 0;
      if (i > 0) return;
    }
    Entry* entry = all_[sweep_at_++];
    purge_void(entry);
    forget_if_unused(entry);
  }
}

}  // namespace ballast::cache
