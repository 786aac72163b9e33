// SPDX-License-Identifier: Apache-2.0
#include "trace/capture.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>

#include "balance/hash.h"
#include "proto/frame.h"
#include "proto/request_stream.h"
#include "proto/tcp_stream.h"

namespace ballast::trace {
namespace {

constexpr uint64_t kProgressPackets = 4096;
constexpr int64_t kMostSeconds = 9'000'000'000;  // as nanoseconds within 63 bits
constexpr size_t kMostConnections = 65'536;
constexpr size_t kMostHeld = size_t{256} * 1024 * 1024;  // bytes of unfinished commands

std::optional<proto::LinkType> link_type(int type) {
  switch (type) {
    case DLT_EN10MB:
      return proto::LinkType::kEthernet;
    case DLT_NULL:
    case DLT_LOOP:
      return proto::LinkType::kNull;
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6:
      return proto::LinkType::kRaw;
    case DLT_LINUX_SLL:
      return proto::LinkType::kLinuxCooked;
    case DLT_LINUX_SLL2:
      return proto::LinkType::kLinuxCooked2;
    default:
      return std::nullopt;
  }
}

struct ConnectionKey {
  std::array<uint8_t, 16> source;
  std::array<uint8_t, 16> destination;
  uint16_t source_port;
  uint16_t destination_port;
  bool operator==(const ConnectionKey&) const = default;
};
static_assert(sizeof(ConnectionKey) == 36, "hashed as bytes");

struct HashConnection {
  size_t operator()(const ConnectionKey& key) const {
    return balance::key_hash({reinterpret_cast<const char*>(&key), sizeof(key)});
  }
};

// What one client sends on one connection.
class Client : public proto::TcpStream::Sink {
 public:
  explicit Client(RequestCounter& counter) : counter_(counter) {}

  void segment(const proto::TcpSegment& segment, Nanos time) {
    time_ = time;
    tcp_.segment(segment, *this);
  }
  void finish() { tcp_.finish(*this); }
  Nanos last_seen() const { return time_; }
  const proto::RequestStream& requests() const { return requests_; }

  void start() override { requests_.start(); }
  void gap() override { requests_.gap(); }
  void bytes(std::string_view data) override {
    requests_.bytes(data, [this](auto args) { counter_.command(args, time_); });
  }

 private:
  RequestCounter& counter_;
  proto::TcpStream tcp_;
  proto::RequestStream requests_;
  Nanos time_ = 0;
};

class Clients {
 public:
  Clients(const TraceOptions& options, RequestCounter& counter)
      : options_(options), counter_(counter) {}

  void frame(proto::LinkType link, std::string_view frame, Nanos time);
  void finish(Workload& workload);

 private:
  bool to_server(uint16_t port) const {
    return std::find(options_.ports.begin(), options_.ports.end(), port) != options_.ports.end();
  }
  void end(Client& client) {
    client.finish();
    losses_ += client.requests().losses();
    held_ -= client.requests().held();
  }
  void end_idle();

  const TraceOptions& options_;
  RequestCounter& counter_;
  std::unordered_map<ConnectionKey, Client, HashConnection> clients_;
  size_t held_ = 0;
  uint64_t fragments_ = 0;
  uint64_t broken_ = 0;
  uint64_t losses_ = 0;
};

void Clients::frame(proto::LinkType link, std::string_view frame, Nanos time) {
  proto::TcpSegment segment;
  switch (proto::parse_frame(link, frame, segment)) {
    case proto::FrameKind::kTcp:
      break;
    case proto::FrameKind::kFragment:
      ++fragments_;
      return;
    case proto::FrameKind::kBroken:
      ++broken_;
      return;
    case proto::FrameKind::kOther:
      return;
  }
  if (!to_server(segment.destination_port)) return;
  const ConnectionKey key{segment.source, segment.destination, segment.source_port,
                          segment.destination_port};
  auto found = clients_.find(key);
  if (found == clients_.end()) {
    if (clients_.size() >= kMostConnections) end_idle();
    found = clients_.try_emplace(key, counter_).first;
  }
  Client& client = found->second;
  held_ -= client.requests().held();
  client.segment(segment, time);
  held_ += client.requests().held();
  if (held_ <= kMostHeld) return;
  held_ -= client.requests().held();
  client.gap();
}

// The half that was silent the longest makes room.
void Clients::end_idle() {
  std::vector<Nanos> seen;
  seen.reserve(clients_.size());
  for (const auto& [key, client] : clients_) seen.push_back(client.last_seen());
  const auto middle = seen.begin() + static_cast<ptrdiff_t>(seen.size() / 2);
  std::nth_element(seen.begin(), middle, seen.end());
  size_t room = seen.size() / 2;
  for (auto at = clients_.begin(); at != clients_.end() && room > 0;) {
    if (at->second.last_seen() > *middle) {
      ++at;
      continue;
    }
    end(at->second);
    at = clients_.erase(at);
    --room;
  }
}

void Clients::finish(Workload& workload) {
  for (auto& [key, client] : clients_) end(client);
  if (losses_ > 0)
    workload.notes.push_back(fmt::format(
        "{} times a connection's beginning or a part of it was not captured, or was not a "
        "command; reading went on at the next command",
        losses_));
  if (fragments_ > 0)
    workload.notes.push_back(fmt::format("{} fragments of IP packets were left out", fragments_));
  if (broken_ > 0)
    workload.notes.push_back(
        fmt::format("{} packets too short or with wrong lengths were left out", broken_));
}

std::string ports_text(const std::vector<uint16_t>& ports) {
  std::string out;
  for (const uint16_t port : ports) out += fmt::format("{}{}", out.empty() ? "" : ", ", port);
  return out;
}

}  // namespace

bool is_capture(std::string_view beginning) {
  constexpr std::string_view kBeginnings[] = {
      "\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1",  // microseconds
      "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1",  // nanoseconds
      "\xa1\xb2\xcd\x34", "\x34\xcd\xb2\xa1",  // an old variant
      "\x0a\x0d\x0d\x0a"};                     // pcapng
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view each) { return beginning.starts_with(each); });
}

Result<> read_capture(InputFile& file, const TraceOptions& options, RequestCounter& counter,
                      Workload& workload) {
  workload.form = "capture";
  char error[PCAP_ERRBUF_SIZE] = "";
  FILE* const stream = file.stream();
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> pcap(
      pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, error),
      &pcap_close);
  if (!pcap) {
    std::fclose(stream);
    return fail(ErrorCode::kInvalid, fmt::format("{}: not a capture: {}", file.name(), error));
  }
  const auto link = link_type(pcap_datalink(pcap.get()));
  if (!link) {
    const char* const name = pcap_datalink_val_to_name(pcap_datalink(pcap.get()));
    return fail(ErrorCode::kInvalid, fmt::format("{}: link type {} is not known here", file.name(),
                                                 name != nullptr ? name : "without a name"));
  }
  Clients clients(options, counter);
  uint64_t packets = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int got = 0;
  while ((got = pcap_next_ex(pcap.get(), &header, &data)) == 1) {
    // With this precision tv_usec holds nanoseconds.
    const bool sane = header->ts.tv_sec >= 0 && header->ts.tv_sec < kMostSeconds;
    const Nanos time = sane ? Nanos{header->ts.tv_sec} * kSecond + header->ts.tv_usec : 0;
    clients.frame(*link, {reinterpret_cast<const char*>(data), header->caplen}, time);
    if (++packets % kProgressPackets == 0 && options.progress)
      options.progress(file.done(), file.size());
  }
  clients.finish(workload);
  std::string early;
  if (got == PCAP_ERROR) {
    early = fmt::format("the capture could be read up to packet {}: {}", packets,
                        pcap_geterr(pcap.get()));
    workload.notes.push_back(early);
  }
  if (counter.requests() == 0)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("{}: no command with a key to port {} (--port) in {} packets{}{}", file.name(),
                    ports_text(options.ports), packets, early.empty() ? "" : "; ", early));
  return {};
}

}  // namespace ballast::trace
