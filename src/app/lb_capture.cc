// SPDX-License-Identifier: Apache-2.0
// ballast lb capture: packets drawn at random as the packet path saw and left them, with what it
// did, as pcapng.
#include <fmt/format.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/command_line.h"
#include "app/flag_values.h"
#include "app/lb_client.h"
#include "app/subcommand.h"
#include "base/clock.h"
#include "lb/capture_lock.h"
#include "loader/capture.h"
#include "loader/lb_program.h"
#include "proto/pcapng.h"

namespace ballast::app {
namespace {

using nlohmann::json;

constexpr Nanos kNamesInterval = 2 * kSecond;

volatile std::sig_atomic_t is_over = 0;
void end_capture(int /*signal*/) { is_over = 1; }

struct Asked {
  std::string file;
  std::string vip;
  std::string pins = model::LbSettings().pins;
  uint32_t one_in = 100;
  uint32_t length = 65535;
  uint32_t count = 0;  // 0: until it is ended
};

struct InstanceName {
  std::string vip;
  std::string name;
};

// By index, of a running balancer; without one packets are captured all the same.
std::map<uint32_t, InstanceName> names_of_instances(const LbClient& client) {
  std::map<uint32_t, InstanceName> names;
  const auto text = client.get("/v1/status");
  const json status = text ? json::parse(*text, nullptr, false) : json();
  if (!status.is_object() || !status.contains("vips")) return names;
  for (const json& vip : status["vips"]) {
    for (const json& each : vip.value("instances", json::array()))
      names[each.value("index", uint32_t{BL_MOST_INSTANCES})] = {vip.value("name", ""),
                                                                 each.value("name", "")};
  }
  return names;
}

// Nanoseconds from CLOCK_MONOTONIC to those since 1970.
uint64_t wall_offset() {
  timespec monotonic{};
  timespec wall{};
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  clock_gettime(CLOCK_REALTIME, &wall);
  const auto ns = [](const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
  };
  return ns(wall) - ns(monotonic);
}

class Writer {
 public:
  Writer(std::FILE* file, const Asked& asked, std::map<uint32_t, InstanceName> names)
      : file_(file), asked_(asked), names_(std::move(names)), offset_(wall_offset()) {
    put(proto::pcapng_section("ballast lb capture"));
  }

  // A packet is written when it has left; until then its arrival waits.
  void take(const bl_capture_event& event, std::span<const uint8_t> bytes) {
    if (is_done()) return;
    if (event.has_left == 0) {
      // Those whose second event was lost.
      if (waiting_.size() >= kMostWaiting) waiting_.clear();
      waiting_[event.number] = {event, {bytes.begin(), bytes.end()}};
      return;
    }
    const auto arrival = waiting_.find(event.number);
    if (arrival == waiting_.end()) return;
    const Event came = std::move(arrival->second);
    waiting_.erase(arrival);
    if (!asked_.vip.empty() && vip_of(event) != asked_.vip) return;
    write(came.event, came.event.ifindex, came.bytes, "");
    write(event, event.ifindex == 0 ? came.event.ifindex : event.ifindex, bytes, words_of(event));
    ++packets_;
  }

  void set_names(std::map<uint32_t, InstanceName> names) { names_ = std::move(names); }
  bool is_done() const { return has_failed_ || (asked_.count > 0 && packets_ >= asked_.count); }
  bool has_failed() const { return has_failed_; }
  uint64_t packets() const { return packets_; }

 private:
  static constexpr size_t kMostWaiting = 4096;
  struct Event {
    bl_capture_event event{};
    std::vector<uint8_t> bytes = {};
  };

  std::string vip_of(const bl_capture_event& event) const {
    const auto found = names_.find(event.instance);
    return found == names_.end() ? "" : found->second.vip;
  }

  // "known: vip web, instance a", "dropped, hop_limit: the time to live or hop limit is used up".
  std::string words_of(const bl_capture_event& event) const {
    const auto& counters = loader::counter_names();
    std::string words;
    if (event.counter < counters.size()) {
      const loader::CounterName& counter = counters[event.counter];
      words = counter.is_drop ? fmt::format("dropped, {}: {}", counter.name, counter.words)
                              : std::string(counter.name);
    }
    if (event.instance >= BL_MOST_INSTANCES) return words;
    const auto found = names_.find(event.instance);
    words += words.empty() ? "" : ": ";
    return words + (found == names_.end() ? fmt::format("instance {}", event.instance)
                                          : fmt::format("vip {}, instance {}", found->second.vip,
                                                        found->second.name));
  }

  void write(const bl_capture_event& event, uint32_t ifindex, std::span<const uint8_t> bytes,
             std::string comment) {
    proto::PcapngPacket packet;
    packet.interface = interface_of(ifindex);
    packet.time_ns = event.time_ns + offset_;
    packet.length = event.length;
    packet.bytes = bytes;
    packet.is_outbound = event.has_left != 0;
    packet.id = event.number;
    if (event.has_left != 0) packet.verdict = event.action;
    packet.comment = std::move(comment);
    put(proto::pcapng_packet(packet));
    if (std::fflush(file_) != 0) has_failed_ = true;
  }

  uint32_t interface_of(uint32_t ifindex) {
    const auto [at, is_new] = interfaces_.emplace(ifindex, interfaces_.size());
    char name[IF_NAMESIZE] = "";
    if (is_new)
      put(proto::pcapng_interface(if_indextoname(ifindex, name) != nullptr
                                      ? std::string(name)
                                      : fmt::format("interface {}", ifindex),
                                  asked_.length));
    return at->second;
  }

  void put(const std::string& block) {
    if (std::fwrite(block.data(), 1, block.size(), file_) != block.size()) has_failed_ = true;
  }

  std::FILE* file_;
  const Asked& asked_;
  std::map<uint32_t, InstanceName> names_;
  uint64_t offset_;
  std::map<uint64_t, Event> waiting_;  // by the packet's number
  std::map<uint32_t, uint32_t> interfaces_;
  uint64_t packets_ = 0;
  bool has_failed_ = false;
};

// Until it is ended; names are asked again, as VIPs and instances come and go.
Result<> read_tap(loader::Capture& tap, Writer& writer, const LbClient& client) {
  Nanos next_names = now_ns() + kNamesInterval;
  while (is_over == 0 && !writer.is_done()) {
    if (const Result<> polled = tap.poll(200); !polled) return polled;
    if (now_ns() < next_names) continue;
    if (auto names = names_of_instances(client); !names.empty()) writer.set_names(std::move(names));
    next_names = now_ns() + kNamesInterval;
  }
  return {};
}

Result<> capture(const Asked& asked, const LbClient& client) {
  const auto locked = lb::lock_capture(asked.pins);
  if (!locked) return Unexpected(locked.error());
  auto names = names_of_instances(client);
  const bool is_there =
      std::ranges::any_of(names, [&](const auto& each) { return each.second.vip == asked.vip; });
  if (!asked.vip.empty() && !is_there)
    return fail(ErrorCode::kInvalid,
                fmt::format("--vip: there is no VIP \"{}\" with instances", asked.vip));
  std::optional<Writer> writer;
  const auto tap = loader::Capture::open(
      asked.pins, {asked.one_in, asked.length},
      [&writer](const bl_capture_event& event, std::span<const uint8_t> bytes) {
        if (writer) writer->take(event, bytes);
      });
  if (!tap) return Unexpected(tap.error());
  // Not before: a capture that is refused is to leave the file as it is.
  const bool is_stdout = asked.file == "-";
  std::FILE* file = is_stdout ? stdout : std::fopen(asked.file.c_str(), "wb");
  if (file == nullptr) return fail_errno("open " + asked.file, errno);
  writer.emplace(file, asked, std::move(names));
  Result<> done = read_tap(**tap, *writer, client);
  std::fprintf(stderr, "%llu packets captured, %llu events lost\n",
               static_cast<unsigned long long>(writer->packets()),
               static_cast<unsigned long long>((*tap)->lost()));
  const bool is_closed = is_stdout || std::fclose(file) == 0;
  if (done && (writer->has_failed() || !is_closed))
    done = fail(ErrorCode::kSystem, asked.file + ": cannot be written");
  return done;
}

}  // namespace

int run_lb_capture(const Arguments& arguments) {
  LbClient client;
  Asked asked;
  const CommandLine command{
      .name = "ballast lb capture",
      .summary = "packets as the balancer took and left them, and what it did, as pcapng",
      .flags = {{.name = "-w,--write",
                 .value = "FILE",
                 .help = "where to; `-` is stdout",
                 .set = text_into(asked.file, "a file's name")},
                {.name = "-n,--count",
                 .value = "COUNT",
                 .help = "of packets, then it ends",
                 .default_text = "until ended",
                 .set = count_into(asked.count, UINT32_MAX)},
                {.name = "--one-in",
                 .value = "COUNT",
                 .help = "packets: so many pass for each that is drawn at random",
                 .default_text = "100",
                 .set = count_into(asked.one_in, UINT32_MAX)},
                {.name = "--snaplen",
                 .value = "BYTES",
                 .help = "of a packet at most",
                 .default_text = "65535",
                 .set = count_into(asked.length, 65535)},
                {.name = "--vip",
                 .value = "NAME",
                 .help = "only packets that were sent to an instance of this VIP",
                 .set = text_into(asked.vip, "a VIP's name")},
                {.name = "--pins",
                 .value = "FOLDER",
                 .help = "the pins of [lb]",
                 .default_text = model::LbSettings().pins,
                 .set = text_into(asked.pins, "a folder's name")},
                client.flag()},
      .footer =
          "Each packet is there twice, with one packet id: as it came, and as it left, with\n"
          "the verdict (epb_verdict, Linux eBPF XDP) and a comment that names the reason and\n"
          "the instance. Readable with tcpdump -r and Wireshark.\n"
          "\n"
          "Exit status: 0 ended by a signal or --count; 1 no tables there, another capture\n"
          "runs, the balancer began anew with other tables, or the file cannot be written;\n"
          "2 wrong usage."};
  if (const auto status = parse_command_line(command, arguments)) return *status;
  if (asked.file.empty()) return usage_error(command.name, "where to? Give -w FILE");
  if (asked.file == "-" && isatty(STDOUT_FILENO) != 0)
    return usage_error(command.name, "-w -: a capture is not for a terminal");
  std::signal(SIGINT, end_capture);
  std::signal(SIGTERM, end_capture);
  std::signal(SIGPIPE, SIG_IGN);
  const Result<> done = capture(asked, client);
  return done ? kExitDone : lb_failed(command.name, done.error());
}

}  // namespace ballast::app
