// SPDX-License-Identifier: Apache-2.0
#include "sim/figure_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "telemetry/build_info.h"
#include "telemetry/table.h"

namespace ballast::sim {
namespace {

using Json = nlohmann::ordered_json;

std::string number(double value) {
  if (std::abs(value) < 100) return fmt::format("{:.{}g}", value, std::abs(value) < 1 ? 2 : 3);
  const std::string digits = fmt::format("{:.0f}", value);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string seeds_text(const Figure& figure) {
  std::string out;
  for (const uint64_t seed : figure.seeds)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", seed);
  return out;
}

}  // namespace

std::string cell_text(const Estimate& cell) {
  if (!std::isfinite(cell.mean)) return "-";
  if (cell.half_width <= std::abs(cell.mean) * 1e-6) return number(cell.mean);
  return fmt::format("{} ±{}", number(cell.mean), number(cell.half_width));
}

std::string figure_text(const Figure& figure) {
  std::vector<telemetry::Column> columns{{figure.x_title, false}};
  for (const Series& series : figure.series) columns.push_back({series.name, true});
  telemetry::Table table(std::move(columns));
  for (size_t x = 0; x < figure.x.size(); ++x) {
    std::vector<std::string> row{figure.x[x]};
    for (const Series& series : figure.series) row.push_back(cell_text(series.cells[x]));
    table.add(std::move(row));
  }
  std::string out =
      fmt::format("{}\n{}; ± 95 % confidence over {} runs, seeds {}\n\n{}\n", figure.title,
                  figure.y_title, figure.seeds.size(), seeds_text(figure), table.text());
  for (const std::string& note : figure.notes) out += "- " + note + "\n";
  return out;
}

std::string figure_json(const Figure& figure) {
  Json settings;
  for (const auto& [name, value] : figure.settings)
    std::visit([&](const auto& each) { settings[name] = each; }, value);
  Json out{{"version", telemetry::build_info().version},
           {"figure", figure.name},
           {"title", figure.title},
           {"x_title", figure.x_title},
           {"y_title", figure.y_title},
           {"settings", std::move(settings)},
           {"seeds", figure.seeds},
           {"x", figure.x}};
  Json list = Json::array();
  for (const Series& series : figure.series) {
    Json values = Json::array();
    Json widths = Json::array();
    for (const Estimate& cell : series.cells) {
      values.push_back(json_number(cell.mean));
      widths.push_back(json_number(cell.half_width));
    }
    list.push_back({{"name", series.name},
                    {"mean", std::move(values)},
                    {"confidence_95_half_width", std::move(widths)}});
  }
  out["series"] = std::move(list);
  out["notes"] = figure.notes;
  return out.dump(2) + "\n";
}

}  // namespace ballast::sim
