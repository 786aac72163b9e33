// SPDX-License-Identifier: Apache-2.0
#include "sim/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "balance/zipf.h"
#include "telemetry/build_info.h"
#include "telemetry/table.h"

namespace ballast::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostLost = 0.01;

std::string whole(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') out += ',';
    out += digits[i];
  }
  return out;
}

std::string percent(double share) {
  return fmt::format("{:.{}f} %", share * 100, share < 0.1 ? 2 : 1);
}

std::string plural(size_t count, const char* thing) {
  return fmt::format("{} {}{}", whole(static_cast<double>(count)), thing, count == 1 ? "" : "s");
}

std::string bytes(double value) {
  if (value < 1024) return fmt::format("{:.0f} B", value);
  if (value < 1024.0 * 1024) return fmt::format("{:.0f} KiB", value / 1024);
  if (value < 1024.0 * 1024 * 1024) return fmt::format("{:.1f} MiB", value / 1024 / 1024);
  return fmt::format("{:.1f} GiB", value / 1024 / 1024 / 1024);
}

const char* verdict_name(Plan::Verdict verdict) {
  switch (verdict) {
    case Plan::Verdict::kNotNeeded:
      return "no cache needed";
    case Plan::Verdict::kPlanned:
      return "planned";
    case Plan::Verdict::kMoreCopies:
      return "not possible with two copies";
    case Plan::Verdict::kImpossible:
      return "not possible";
  }
  return "";
}

std::string mechanism_name(const MechanismRate& row) {
  return std::string(scheme_name(row.scheme)) + (row.more_copies ? ", more copies" : "");
}

// Share of all requests to the key of this rank, from 0.
double share_of(const PlanReport& report, size_t rank) {
  if (report.workload) {
    return static_cast<double>(report.workload->keys[rank].count) /
           static_cast<double>(report.workload->requests);
  }
  return balance::zipf_mass(report.objects, report.alpha, rank, rank + 1);
}

size_t keys_shown(const PlanReport& report) {
  const auto known = report.workload ? report.workload->keys.size() : report.objects;
  return std::min<size_t>(report.shown, known);
}

// Copies with which none of a key's gets more than a quarter of a node; 2 is the least.
size_t copies_wanted(const PlanReport& report, size_t rank) {
  const auto& copies = report.plan.copies_wanted;
  return rank < copies.size() ? copies[rank] : 2;
}

bool has_tier(const Plan& plan) { return plan.tier.scheme == Scheme::kDistCache; }

std::string key_name(const PlanReport& report, size_t rank) {
  if (!report.workload) return fmt::format("rank {}", rank + 1);
  const auto& names = report.workload->names;
  return rank < names.size() && !names[rank].empty() ? names[rank] : "(name not kept)";
}

std::string skew_text(const PlanReport& report) {
  const ZipfFit& fit = report.fit;
  if (!fit.enough) return "too few requests or keys to fit a law";
  std::string out = fmt::format("Zipf {:.3f} ±{:.3f} (standard error), ", fit.alpha,
                                std::max(0.001, fit.standard_error));
  out += fit.fits ? fmt::format("fits: {:.4f} away at most", fit.distance)
                  : fmt::format("does not fit: {:.3f} away, above {:g}", fit.distance, kFits);
  return out + " (Kolmogorov-Smirnov)";
}

std::string workload_text(const PlanReport& report) {
  if (!report.workload) {
    return fmt::format("Workload: {}, {} objects\n", report.source,
                       whole(static_cast<double>(report.objects)));
  }
  const trace::Workload& workload = *report.workload;
  const auto requests = static_cast<double>(workload.requests);
  std::string out = fmt::format("Workload: {} ({})\n", report.source, workload.form);
  out += fmt::format("  requests  {}", whole(requests));
  if (workload.times_known) {
    out += fmt::format(" in {:.3g} s: {} a second, {} in the busiest", workload.seconds,
                       whole(requests / workload.seconds), whole(workload.busiest_second));
  }
  out += fmt::format("\n  keys      {}", whole(workload.distinct));
  if (workload.exact) {
    out += " distinct, each counted\n";
  } else {
    out += fmt::format(" ±{} distinct; the {} most frequent by Space-Saving, no other above {}\n",
                       whole(workload.distinct_error), workload.keys.size(),
                       whole(static_cast<double>(workload.most_error)));
  }
  if (workload.kinds_known) {
    out += fmt::format("  mix       {} reads that copies can answer, {} other reads, {} writes\n",
                       percent(static_cast<double>(workload.kept_reads) / requests),
                       percent(static_cast<double>(workload.other_reads) / requests),
                       percent(static_cast<double>(workload.writes) / requests));
  }
  out += "  skew      " + skew_text(report) + "\n";
  if (report.fit.enough && report.fit.fits)
    out += fmt::format("  objects   {} by that law, seen or not\n",
                       whole(static_cast<double>(report.objects)));
  return out;
}

std::string hottest_text(const PlanReport& report) {
  const bool kinds = report.workload && report.workload->kinds_known && report.workload->exact;
  std::vector<telemetry::Column> columns{{"hottest keys"}, {"share", true}};
  if (report.workload) columns.push_back({"requests", true});
  if (kinds) columns.push_back({"writes", true});
  columns.push_back({"at the rate", true});
  if (has_tier(report.plan)) columns.push_back({"copies wanted", true});
  telemetry::Table table(std::move(columns));
  for (size_t rank = 0; rank < keys_shown(report); ++rank) {
    const double share = share_of(report, rank);
    std::vector<std::string> row{key_name(report, rank), percent(share)};
    if (report.workload) {
      const trace::KeyCount& key = report.workload->keys[rank];
      row.push_back(whole(static_cast<double>(key.count)));
      if (kinds)
        row.push_back(percent(static_cast<double>(key.writes) / static_cast<double>(key.count)));
    }
    row.push_back(whole(share * report.target.rate) + "/s");
    if (has_tier(report.plan)) row.push_back(fmt::format("{}", copies_wanted(report, rank)));
    table.add(std::move(row));
  }
  return table.text();
}

std::string verdict_text(const PlanReport& report) {
  const Target& target = report.target;
  const Plan& plan = report.plan;
  std::string out =
      fmt::format("Wanted: {} requests/s with {:g} % headroom, on {} of {}/s, nodes of {}/s\n",
                  whole(target.rate), target.headroom * 100, plural(target.servers, "server"),
                  whole(target.server_rate), whole(target.node_rate));
  switch (plan.verdict) {
    case Plan::Verdict::kNotNeeded:
      out += "No cache is needed: " + plan.reason + ".\n";
      break;
    case Plan::Verdict::kMoreCopies:
      out += "Not possible with two copies of a key: " + plan.reason +
             ".\nWith more copies of the hottest, which Ballast does not make yet, it would "
             "be:\n";
      break;
    case Plan::Verdict::kImpossible:
      out += "Not possible: " + plan.reason + ".\n";
      if (has_tier(plan)) out += "The tier tried last:\n";
      break;
    case Plan::Verdict::kPlanned:
      break;
  }
  if (!has_tier(plan)) return out;
  const Scenario& tier = plan.tier;
  out += fmt::format("Plan: {} (racks) and {}, at least {} each, about {} of copies a node\n",
                     tier.racks == 1 ? "1 leaf" : fmt::format("{} leaves", tier.racks),
                     plural(tier.spines, "spine"), plural(tier.objects_per_node, "object"),
                     bytes(report.node_memory()));
  out += fmt::format(
      "  {} have copies: {} of the requests are for them\n"
      "  at {}/s the busiest server has {} of its work, the busiest nodes {}, split best\n"
      "  request by request, with queues of 128 and loads as old as replies: {} lost\n"
      "  the paper's m·l·log l + m·log m is {} objects in all nodes, this is {}\n",
      plural(plan.cached_objects, "object"), percent(plan.cached_share), whole(target.rate),
      percent(plan.busiest_server), percent(plan.busiest_nodes), percent(plan.lost),
      whole(plan.formula_objects),
      whole(static_cast<double>(tier.objects_per_node * tier.nodes())));
  if (plan.lost > kMostLost) {
    out +=
        "  more than 1 % lost: take more headroom. Reads that meet a write under way all go to "
        "the\n"
        "  key's server, and queues are finite; the bounds below leave both out\n";
  }
  return out;
}

std::string theorem_text(const PlanReport& report) {
  const Plan& plan = report.plan;
  if (!has_tier(plan)) return "";
  std::string out =
      fmt::format("Theorem: max p·R ≤ T/2 {} at {}/s, by a factor of {:.2g}\n",
                  plan.theorem_margin >= 1 ? "holds" : "does not hold", whole(report.target.rate),
                  plan.theorem_margin >= 1 ? plan.theorem_margin : 1 / plan.theorem_margin);
  const size_t many = plan.copies_wanted.size();
  if (many == 0) return out + "  two copies of every key are enough for it, with the headroom\n";
  return out + fmt::format(
                   "  with the headroom, more than two copies are wanted of {}: {} of the hottest "
                   "one, so that none gets over T/4\n",
                   plural(many, "key"), plan.copies_wanted.front());
}

std::string mechanisms_text(const PlanReport& report) {
  telemetry::Table table(
      {{"mechanism"}, {"requests/s", true}, {"least", true}, {"carries it", true}, {"bound by"}});
  for (const MechanismRate& row : report.plan.mechanisms) {
    table.add({mechanism_name(row), whole(row.rate.mean), whole(row.least),
               row.least >= report.target.wanted() ? "yes"
               : row.least >= report.target.rate   ? "without headroom"
                                                   : "no",
               row.bound_by});
  }
  return table.text();
}

Json hottest_json(const PlanReport& report) {
  Json list = Json::array();
  for (size_t rank = 0; rank < keys_shown(report); ++rank) {
    Json row{{"rank", rank + 1}};
    if (report.workload) {
      const trace::KeyCount& key = report.workload->keys[rank];
      row["key"] = key_name(report, rank);
      row["requests"] = key.count;
      row["count_error"] = key.error;
      if (report.workload->kinds_known && report.workload->exact) row["writes"] = key.writes;
    }
    row["share"] = share_of(report, rank);
    row["copies_wanted"] = copies_wanted(report, rank);
    list.push_back(std::move(row));
  }
  return list;
}

Json workload_json(const PlanReport& report) {
  Json out{{"source", report.source}, {"objects", report.objects}};
  if (!report.workload) {
    out["zipf"] = report.alpha;
    return out;
  }
  const trace::Workload& workload = *report.workload;
  out["form"] = workload.form;
  out["requests"] = workload.requests;
  out["distinct_keys"] = workload.distinct;
  out["distinct_keys_error"] = workload.distinct_error;
  out["counted_exactly"] = workload.exact;
  out["largest_count_left_out"] = workload.most_error;
  if (workload.times_known) {
    out["seconds"] = workload.seconds;
    out["busiest_second"] = workload.busiest_second;
  }
  if (workload.kinds_known) {
    out["kept_reads"] = workload.kept_reads;
    out["other_reads"] = workload.other_reads;
    out["writes"] = workload.writes;
  }
  if (report.fit.enough) {
    out["zipf"] = report.fit.alpha;
    out["zipf_standard_error"] = report.fit.standard_error;
    out["ks_distance"] = report.fit.distance;
    out["zipf_fits"] = report.fit.fits;
  }
  out["keys_with_measured_share"] = report.measured;
  out["notes"] = workload.notes;
  return out;
}

Json target_json(const Target& target) {
  return {{"rate", target.rate},
          {"headroom", target.headroom},
          {"server_rate", target.server_rate},
          {"servers", target.servers},
          {"node_rate", target.node_rate},
          {"writes", target.writes},
          {"other_reads", target.direct},
          {"placements", target.runs},
          {"seed", target.seed}};
}

Json plan_part_json(const PlanReport& report) {
  const Plan& plan = report.plan;
  Json out{{"verdict", verdict_name(plan.verdict)}};
  if (!plan.reason.empty()) out["reason"] = plan.reason;
  if (has_tier(plan)) {
    out["leaves"] = plan.tier.racks;
    out["spines"] = plan.tier.spines;
    out["objects_per_node"] = plan.tier.objects_per_node;
    out["node_memory_bytes"] = report.node_memory();
    out["objects_with_copies"] = plan.cached_objects;
    out["share_of_requests_for_them"] = plan.cached_share;
    out["formula_objects"] = plan.formula_objects;
    out["busiest_server"] = plan.busiest_server;
    out["busiest_nodes"] = plan.busiest_nodes;
    out["lost_in_queueing_model"] = plan.lost;
    out["theorem_margin"] = plan.theorem_margin;
    out["copies_wanted_beyond_two"] = plan.copies_wanted;
  }
  Json rows = Json::array();
  for (const MechanismRate& row : plan.mechanisms) {
    rows.push_back({{"mechanism", mechanism_name(row)},
                    {"mean", row.rate.mean},
                    {"confidence_95_half_width", row.rate.half_width},
                    {"least", row.least},
                    {"bound_by", row.bound_by}});
  }
  out["mechanisms"] = std::move(rows);
  return out;
}

}  // namespace

double PlanReport::node_memory() const {
  return static_cast<double>(plan.tier.objects_per_node) *
         static_cast<double>(value_size + kCopyOverhead);
}

std::string plan_text(const PlanReport& report) {
  std::string out = workload_text(report) + "\n" + verdict_text(report) + theorem_text(report) +
                    "\n" + mechanisms_text(report) + "\n" + hottest_text(report);
  if (report.workload && !report.workload->notes.empty()) {
    out += "\nLeft out:\n";
    for (const std::string& note : report.workload->notes) out += "- " + note + "\n";
  }
  out += "\nAssumed:\n";
  for (const std::string& line : report.assumed) out += "- " + line + "\n";
  return out;
}

std::string plan_json(const PlanReport& report) {
  Json out{{"version", telemetry::build_info().version},
           {"workload", workload_json(report)},
           {"target", target_json(report.target)},
           {"plan", plan_part_json(report)},
           {"hottest", hottest_json(report)},
           {"assumed", report.assumed}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ballast::sim
