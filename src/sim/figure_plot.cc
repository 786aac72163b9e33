// SPDX-License-Identifier: Apache-2.0
// The HTML form of a figure: lines over evenly spaced x, as SVG, and the same numbers as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/figure_report.h"

namespace ballast::sim {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 520;
constexpr double kLeft = 80;
constexpr double kRight = 290;  // the legend's room
constexpr double kTop = 20;
constexpr double kBottom = 60;
constexpr double kLogFrom = 30;  // a logarithmic axis above this ratio of the largest to the least
constexpr const char* kColours[] = {"#4477aa", "#ee6677", "#228833", "#aa8800",
                                    "#228899", "#aa3377", "#666666", "#cc5500"};
constexpr const char* kDashes[] = {"none", "7 3", "2 3"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

bool drawn(const Estimate& cell) { return std::isfinite(cell.mean); }

// From value to height; logarithmic where the values need it and allow it.
class Axis {
 public:
  explicit Axis(const Figure& figure) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const Series& series : figure.series) {
      for (const Estimate& cell : series.cells) {
        if (!series.plotted || !drawn(cell)) continue;
        least = std::min(least, cell.mean);
        most = std::max(most, cell.mean + cell.half_width);
      }
    }
    if (most <= 0) most = 1;
    log_ = least > 0 && most / least > kLogFrom;
    if (log_) {
      const double power = std::pow(10, std::floor(std::log10(least)));
      low_ = least >= 5 * power ? 5 * power : least >= 2 * power ? 2 * power : power;
      high_ = round_step(most);
      for (double tick = low_; tick <= high_ * 1.001; tick = round_step(tick * 1.5))
        ticks_.push_back(tick);
      return;
    }
    const double step = round_step(most / 5);
    high_ = std::ceil(most / step) * step;
    for (double tick = 0; tick <= high_ * 1.001; tick += step) ticks_.push_back(tick);
  }

  const std::vector<double>& ticks() const { return ticks_; }
  double y(double value) const {
    const double bounded = std::clamp(value, low_, high_);
    const double part = log_ ? std::log(bounded / low_) / std::log(high_ / low_)
                             : (bounded - low_) / (high_ - low_);
    return kHeight - kBottom - part * (kHeight - kBottom - kTop);
  }

 private:
  // 1, 2 or 5 times a power of ten, at least `step`.
  static double round_step(double step) {
    const double power = std::pow(10, std::floor(std::log10(step)));
    for (const double times : {1.0, 2.0, 5.0}) {
      if (power * times >= step) return power * times;
    }
    return power * 10;
  }

  bool log_ = false;
  double low_ = 0;
  double high_ = 1;
  std::vector<double> ticks_;
};

double x_of(const Figure& figure, size_t x) {
  const double room = kWidth - kLeft - kRight;
  const auto count = static_cast<double>(figure.x.size());
  return kLeft + room * (static_cast<double>(x) + 0.5) / count;
}

std::string text(double x, double y, const char* anchor, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(words));
}

std::string axes(const Figure& figure, const Axis& axis) {
  std::string out;
  for (const double tick : axis.ticks()) {
    const double y = axis.y(tick);
    out += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n",
                       kLeft, kWidth - kRight, y, y);
    out += text(kLeft - 8, y + 4, "end", cell_text({tick, 0}));
  }
  // Long labels take turns on two lines.
  constexpr double kLetter = 7;
  size_t longest = 0;
  for (const std::string& label : figure.x) longest = std::max(longest, label.size());
  const double room = (kWidth - kLeft - kRight) / static_cast<double>(figure.x.size());
  const double lower = kLetter * static_cast<double>(longest) > room ? 13 : 0;
  for (size_t x = 0; x < figure.x.size(); ++x) {
    const double y = kHeight - kBottom + 18 + (x % 2 == 1 ? lower : 0);
    out += text(x_of(figure, x), y, "middle", figure.x[x]);
  }
  out += text((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle", figure.x_title);
  out += fmt::format(
      "<text transform=\"translate(18,{}) rotate(-90)\" text-anchor=\"middle\">{}"
      "</text>\n",
      kHeight / 2, escaped(figure.y_title));
  return out;
}

// One line with its marks and intervals, and its place in the legend.
std::string line(const Figure& figure, const Axis& axis, const Series& series, size_t number) {
  const char* colour = kColours[number % std::size(kColours)];
  const char* dash = kDashes[number % std::size(kDashes)];
  std::string points;
  std::string marks;
  for (size_t x = 0; x < series.cells.size(); ++x) {
    const Estimate& cell = series.cells[x];
    if (!drawn(cell)) continue;
    const double at = x_of(figure, x);
    points += fmt::format("{:.1f},{:.1f} ", at, axis.y(cell.mean));
    marks += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {}"
        "</title></circle>\n",
        at, axis.y(cell.mean), colour, escaped(series.name), cell_text(cell));
    if (cell.half_width <= 0) continue;
    marks += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" "
        "stroke=\"{3}\"/>\n",
        at, axis.y(cell.mean - cell.half_width), axis.y(cell.mean + cell.half_width), colour);
  }
  const std::string stroke = fmt::format(
      "fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"", colour, dash);
  const double legend = kTop + 14 + 22 * static_cast<double>(number);
  return fmt::format("<polyline points=\"{}\" {}/>\n", points, stroke) + marks +
         fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" {}/>\n", kWidth - kRight + 14,
                     kWidth - kRight + 44, legend, legend, stroke) +
         text(kWidth - kRight + 52, legend + 4, "start", series.name);
}

std::string table(const Figure& figure) {
  std::string out = "<table>\n<tr><th>" + escaped(figure.x_title) + "</th>";
  for (const Series& series : figure.series) out += "<th>" + escaped(series.name) + "</th>";
  out += "</tr>\n";
  for (size_t x = 0; x < figure.x.size(); ++x) {
    out += "<tr><td>" + escaped(figure.x[x]) + "</td>";
    for (const Series& series : figure.series) out += "<td>" + cell_text(series.cells[x]) + "</td>";
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string setting_text(const decltype(Setting::second)& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:g}", *number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  return fmt::format("{}", std::get<uint64_t>(value));
}

}  // namespace

std::string figure_svg(const Figure& figure) {
  const Axis axis(figure);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<title>{}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, kHeight, escaped(figure.title));
  out += axes(figure, axis);
  size_t number = 0;
  for (const Series& series : figure.series) {
    if (series.plotted) out += line(figure, axis, series, number++);
  }
  return out + "</svg>\n";
}

std::string figure_html(const Figure& figure) {
  std::string settings;
  for (const auto& [name, value] : figure.settings)
    settings += (settings.empty() ? "" : ", ") + name + " " + setting_text(value);
  std::string seeds;
  for (const uint64_t seed : figure.seeds) seeds += fmt::format(" {}", seed);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
      escaped(figure.title) +
      "</title>\n<style>body{font:16px sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;"
      "background:#fff;color:#111}svg{width:100%}table{border-collapse:collapse;font-size:13px}"
      "td,th{padding:3px 6px;border-bottom:1px solid #ccc;text-align:right;vertical-align:bottom}"
      "td{white-space:nowrap}"
      "td:first-child,th:first-child{text-align:left}</style></head>\n<body>\n<h1>" +
      escaped(figure.title) + "</h1>\n" + figure_svg(figure) + "<div style=\"overflow-x:auto\">\n" +
      table(figure) + "</div>\n<p>" + escaped(figure.y_title) +
      "; ± 95 % confidence over runs with the seeds" + seeds + ".</p>\n<ul>\n";
  for (const std::string& note : figure.notes) out += "<li>" + escaped(note) + "</li>\n";
  return out + "</ul>\n<p>Made by ballast " BALLAST_VERSION " with " + escaped(settings) +
         ".</p>\n</body></html>\n";
}

}  // namespace ballast::sim
