// SPDX-License-Identifier: Apache-2.0
#include "cache/peer_wire.h"

#include <charconv>
#include <vector>

#include "proto/resp_write.h"

namespace ballast::cache {
namespace {

// Fields collected as text; numbers get their decimal form.
class Fields {
 public:
  Fields& text(std::string_view value) {
    proto::append_bulk(body_, value);
    ++count_;
    return *this;
  }
  Fields& number(uint64_t value) { return text(std::to_string(value)); }
  void append_to(std::string& out, char type) const {
    proto::append_header(out, type, static_cast<int64_t>(count_));
    out += body_;
  }

 private:
  std::string body_;
  size_t count_ = 0;
};

struct AppendToHome {
  Fields& fields;
  void operator()(const Admit& m) const {
    fields.text("admit").text(m.key).text(m.command).number(m.copy_id);
  }
  void operator()(const Ack& m) const {
    fields.text("ack").text(m.key).number(m.version).number(m.epoch);
  }
  void operator()(const Release& m) const { fields.text("release").text(m.key).number(m.copy_id); }
  void operator()(const Renew& m) const { fields.text("renew").number(m.seq); }
  void operator()(const DropAllAck& m) const {
    fields.text("dropped").number(m.version).number(m.epoch);
  }
};

struct AppendToNode {
  Fields& fields;
  void operator()(const Fill& m) const {
    fields.text("fill").text(m.key).text(m.command).text(m.reply).number(m.copy_id);
    // -1, no expiry, travels as the largest number.
    fields.number(m.version).number(static_cast<uint64_t>(m.ttl_ms)).number(m.ttl_seq);
  }
  void operator()(const Refuse& m) const { fields.text("refuse").text(m.key).number(m.copy_id); }
  void operator()(const Invalidate& m) const {
    fields.text("invalidate").text(m.key).number(m.version);
  }
  void operator()(const Lease& m) const { fields.text("lease").number(m.seq); }
  void operator()(const DropAll& m) const { fields.text("drop").number(m.version); }
};

// Reads fields in order; good() turns false with the first that is missing or no number.
class Reader {
 public:
  explicit Reader(std::span<const std::string_view> fields) : fields_(fields) {}
  std::string_view text() {
    if (next_ >= fields_.size()) {
      good_ = false;
      return {};
    }
    return fields_[next_++];
  }
  uint64_t number() {
    uint64_t value = 0;
    if (!parse_number(text(), value)) good_ = false;
    return value;
  }
  bool good() const { return good_ && next_ == fields_.size(); }

 private:
  std::span<const std::string_view> fields_;
  size_t next_ = 0;
  bool good_ = true;
};

}  // namespace

bool parse_number(std::string_view text, uint64_t& number) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

void append_home_message(std::string& out, const HomeMessage& message) {
  Fields fields;
  fields.text(kPeerHome).number(message.node).number(message.shard);
  std::visit(AppendToHome{fields}, message.message);
  fields.append_to(out, '*');
}

std::optional<HomeMessage> parse_home_message(std::span<const std::string_view> args) {
  Reader in(args);
  HomeMessage out;
  out.node = in.number();
  out.shard = static_cast<uint32_t>(in.number());
  const std::string_view kind = in.text();
  // Braced lists are evaluated in order.
  if (kind == "admit") {
    out.message = Admit{std::string(in.text()), std::string(in.text()), in.number()};
  } else if (kind == "ack") {
    out.message = Ack{std::string(in.text()), in.number(), in.number()};
  } else if (kind == "release") {
    out.message = Release{std::string(in.text()), in.number()};
  } else if (kind == "renew") {
    out.message = Renew{in.number()};
  } else if (kind == "dropped") {
    out.message = DropAllAck{in.number(), in.number()};
  } else {
    return std::nullopt;
  }
  return in.good() ? std::optional(std::move(out)) : std::nullopt;
}

void append_node_message(std::string& out, const NodeMessage& message) {
  Fields fields;
  fields.text(kPushNode).number(message.shard).number(message.message.epoch);
  std::visit(AppendToNode{fields}, message.message.body);
  fields.append_to(out, '>');
}

std::optional<NodeMessage> parse_node_message(std::span<const std::string_view> fields) {
  Reader in(fields);
  NodeMessage out;
  out.shard = static_cast<uint32_t>(in.number());
  out.message.epoch = in.number();
  const std::string_view kind = in.text();
  auto& body = out.message.body;
  if (kind == "fill") {
    Fill fill{};
    fill.key = in.text();
    fill.command = in.text();
    fill.reply = in.text();
    fill.copy_id = in.number();
    fill.version = in.number();
    fill.ttl_ms = static_cast<int64_t>(in.number());
    fill.ttl_seq = in.number();
    body = std::move(fill);
  } else if (kind == "refuse") {
    body = Refuse{std::string(in.text()), in.number()};
  } else if (kind == "invalidate") {
    body = Invalidate{std::string(in.text()), in.number()};
  } else if (kind == "lease") {
    body = Lease{in.number()};
  } else if (kind == "drop") {
    body = DropAll{in.number()};
  } else {
    return std::nullopt;
  }
  return in.good() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace ballast::cache
