// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <fmt/format.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "telemetry/build_info.h"
#include "telemetry/table.h"

namespace ballast::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kClassNames[] = {"hottest 10 keys", "hottest 1 % besides", "other keys"};
constexpr const char* kClassFields[] = {"hottest_10", "hottest_percent", "rest"};
constexpr const char* kFindingWords[] = {"good reads", "stale reads", "lost values",
                                         "foreign replies", "out of order"};
constexpr const char* kFindingFields[] = {"good_reads", "stale_reads", "lost_values",
                                          "foreign_replies", "out_of_order"};

std::string grouped(uint64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string spread_text(const Settings& settings) {
  switch (settings.spread) {
    case Spread::kZipf:
      return fmt::format("Zipf {:g}", settings.alpha);
    case Spread::kUniform:
      return "uniform";
    case Spread::kHotspot:
      return fmt::format("{:g} of the requests on {:g} of the keys", settings.hot_reads,
                         settings.hot_keys);
    case Spread::kReplay:
      return "from " + settings.replay_file;
  }
  return "";
}

std::string targets_text(const Settings& settings) {
  std::string out;
  for (const model::Endpoint& target : settings.targets)
    out += (out.empty() ? "" : ",") + model::to_string(target);
  return out;
}

std::string head_text(const Settings& settings) {
  const std::string size = settings.value_min == settings.value_max
                               ? fmt::format("{}", settings.value_min)
                               : fmt::format("{} to {}", settings.value_min, settings.value_max);
  const std::string keys =
      settings.spread == Spread::kReplay ? "keys" : grouped(settings.keys) + " keys";
  const std::string pace = settings.rate > 0
                               ? fmt::format("open loop, {:g} requests due a second", settings.rate)
                               : std::string("closed loop");
  return fmt::format(
      "{}, {}, {}; {:g} % writes of {} bytes\n{} connections, pipeline {}, RESP{}; {}; seed {}\n",
      targets_text(settings), keys, spread_text(settings), settings.writes * 100, size,
      settings.connections, settings.pipeline, settings.resp3 ? 3 : 2, pace, settings.seed);
}

std::string ms(int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e6); }

void add_row(telemetry::Table& table, const char* name, const Histogram& histogram) {
  if (histogram.count() == 0) return;
  table.add({name, grouped(histogram.count()), ms(histogram.quantile(0.5)),
             ms(histogram.quantile(0.9)), ms(histogram.quantile(0.99)),
             ms(histogram.quantile(0.999)), ms(histogram.max())});
}

std::string verify_text(const Results& results) {
  std::string out;
  for (size_t i = 1; i < kFindings; ++i) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", grouped(results.findings[i]),
                       kFindingWords[i]);
  }
  uint64_t reads = results.violations() + results.findings[0];
  out = fmt::format("verify      {} in {} reads, those of the warm-up among them\n", out,
                    grouped(reads));
  if (results.unsure_keys > 0) {
    out +=
        fmt::format("            {} keys not checked after a write was lost with its connection\n",
                    grouped(results.unsure_keys));
  }
  return out;
}

Json latency_json(const Histogram& histogram) {
  const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  return {{"requests", histogram.count()},          {"mean_us", histogram.mean() / 1e3},
          {"p50_us", us(histogram.quantile(0.5))},  {"p90_us", us(histogram.quantile(0.9))},
          {"p99_us", us(histogram.quantile(0.99))}, {"p999_us", us(histogram.quantile(0.999))},
          {"max_us", us(histogram.max())}};
}

Json settings_json(const Settings& settings) {
  constexpr const char* kSpreads[] = {"zipf", "uniform", "hotspot", "replay"};
  Json targets = Json::array();
  for (const model::Endpoint& target : settings.targets)
    targets.push_back(model::to_string(target));
  Json out{{"targets", std::move(targets)},
           {"keys", settings.keys},
           {"spread", kSpreads[static_cast<size_t>(settings.spread)]}};
  if (settings.spread == Spread::kZipf) out["alpha"] = settings.alpha;
  if (settings.spread == Spread::kHotspot) out["hotspot"] = {settings.hot_reads, settings.hot_keys};
  out.update({{"writes", settings.writes},
              {"value_min", settings.value_min},
              {"value_max", settings.value_max},
              {"connections", settings.connections},
              {"pipeline", settings.pipeline},
              {"seconds", settings.seconds},
              {"warmup_seconds", settings.warmup_seconds},
              {"rate", settings.rate},
              {"resp", settings.resp3 ? 3 : 2},
              {"seed", settings.seed}});
  return out;
}

}  // namespace

uint64_t Results::violations() const {
  uint64_t sum = 0;
  for (size_t i = 1; i < kFindings; ++i) sum += findings[i];
  return sum;
}

std::string report_text(const Settings& settings, const Results& results) {
  std::string out = head_text(settings);
  if (settings.load) {
    out += fmt::format("loaded      {} keys in {:.1f} s\n", grouped(results.loaded),
                       results.load_seconds);
  }
  if (results.seconds > 0) {
    out += fmt::format("throughput  {} requests/s ({} in {:.1f} s)\n",
                       grouped(static_cast<uint64_t>(
                           std::llround(static_cast<double>(results.good()) / results.seconds))),
                       grouped(results.good()), results.seconds);
  }
  if (results.unsent > 0) {
    out += fmt::format("not sent    {} requests that were due: the target did not keep up\n",
                       grouped(results.unsent));
  }
  if (results.misses > 0) out += fmt::format("null        {} reads\n", grouped(results.misses));
  out += fmt::format("errors      {}\n", grouped(results.errors));
  telemetry::Table errors({{"          "}, {"count", true}, {"error"}});
  for (const auto& [text, count] : results.error_texts) errors.add({"", grouped(count), text});
  if (!errors.empty()) out += errors.text();
  if (results.verified) out += verify_text(results);
  telemetry::Table table({{""},
                          {"requests", true},
                          {"p50 ms", true},
                          {"p90 ms", true},
                          {"p99 ms", true},
                          {"p99.9 ms", true},
                          {"max ms", true}});
  add_row(table, "all", results.all);
  add_row(table, "reads", results.reads);
  add_row(table, "writes", results.writes);
  for (size_t i = 0; i < kKeyClasses; ++i) add_row(table, kClassNames[i], results.classes[i]);
  if (!table.empty()) out += "\n" + table.text();
  return out;
}

std::string report_json(const Settings& settings, const Results& results) {
  Json out{{"version", telemetry::build_info().version}, {"settings", settings_json(settings)}};
  if (settings.load) out["load"] = {{"keys", results.loaded}, {"seconds", results.load_seconds}};
  const double rate =
      results.seconds > 0 ? static_cast<double>(results.good()) / results.seconds : 0;
  out.update({{"seconds", results.seconds},
              {"requests", results.requests},
              {"errors", results.errors},
              {"throughput", rate},
              {"nulls", results.misses},
              {"unsent", results.unsent},
              {"writes_redrawn", results.redrawn}});
  out["error_texts"] = results.error_texts;
  Json latency{{"all", latency_json(results.all)},
               {"reads", latency_json(results.reads)},
               {"writes", latency_json(results.writes)}};
  for (size_t i = 0; i < kKeyClasses; ++i)
    latency[kClassFields[i]] = latency_json(results.classes[i]);
  out["latency"] = std::move(latency);
  out["per_second"] = results.per_second;
  if (results.verified) {
    Json verify;
    for (size_t i = 0; i < kFindings; ++i) verify[kFindingFields[i]] = results.findings[i];
    verify["unsure_keys"] = results.unsure_keys;
    out["verify"] = std::move(verify);
  }
  // Error texts are a server's bytes; what is not UTF-8 is replaced.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ballast::bench
