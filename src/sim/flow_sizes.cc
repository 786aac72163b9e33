// SPDX-License-Identifier: Apache-2.0
#include "sim/flow_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/check.h"

namespace ballast::sim {
namespace {

constexpr double kSigma = 1.5;
constexpr double kShape = 1.2;
constexpr double kLargest = 1000;  // of Pareto's law, in units of the least
constexpr std::string_view kLaws[] = {"fixed",  "exponential", "lognormal",
                                      "pareto", "web-search",  "data-mining"};

// In packets. As widely used since pFabric (SIGCOMM 2013), from DCTCP's and VL2's measurements.
constexpr FlowSizes::Point kWebSearch[] = {{1, 0},      {6, 0.15},   {13, 0.2},    {19, 0.3},
                                           {33, 0.4},   {53, 0.53},  {133, 0.6},   {667, 0.7},
                                           {1333, 0.8}, {3333, 0.9}, {6667, 0.97}, {20'000, 1}};
constexpr FlowSizes::Point kDataMining[] = {{1, 0.5},   {2, 0.6},     {3, 0.7},       {7, 0.8},
                                            {267, 0.9}, {2107, 0.95}, {66'667, 0.99}, {666'667, 1}};

// Of the law cut off at kLargest, from 1.
double pareto_mean() {
  return kShape / (kShape - 1) * (1 - std::pow(kLargest, 1 - kShape)) /
         (1 - std::pow(kLargest, -kShape));
}

std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") + 1 - from);
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

// What a file of sizes holds: the columns of its lines, 1 or 2 of them.
struct Lines {
  std::vector<FlowSizes::Point> points;
  size_t columns = 0;
};

Unexpected wrong_line(size_t line, const char* why) {
  return fail(ErrorCode::kInvalid, fmt::format("line {}: {}", line, why));
}

Result<> read_line(Lines& lines, std::string_view text, size_t line) {
  const size_t gap = text.find_first_of(" \t,");
  const size_t columns = gap == std::string_view::npos ? 1 : 2;
  if (lines.columns != 0 && lines.columns != columns)
    return wrong_line(line, "one number a line or two, not both");
  lines.columns = columns;
  const auto size = number(text.substr(0, gap));
  if (!size || *size <= 0) return wrong_line(line, "a flow's size is a number above 0");
  FlowSizes::Point point{*size, 0};
  if (columns == 2) {
    const auto share = number(trimmed(text.substr(gap + 1)));
    if (!share || *share < 0 || *share > 1) return wrong_line(line, "a share is from 0 to 1");
    point.share = *share;
    const bool rises = lines.points.empty() || (point.size >= lines.points.back().size &&
                                                point.share >= lines.points.back().share);
    if (!rises) return wrong_line(line, "sizes and shares must not fall");
  }
  lines.points.push_back(point);
  return {};
}

}  // namespace

std::span<const std::string_view> FlowSizes::laws() { return kLaws; }

FlowSizes FlowSizes::of_curve(std::vector<Point> curve, std::string name) {
  FlowSizes sizes(Kind::kCurve, std::move(name));
  sizes.mean_ = curve.front().size * curve.front().share;
  for (size_t i = 1; i < curve.size(); ++i) {
    sizes.mean_ += (curve[i].share - curve[i - 1].share) * (curve[i].size + curve[i - 1].size) / 2;
  }
  sizes.curve_ = std::move(curve);
  return sizes;
}

Result<FlowSizes> FlowSizes::of_law(std::string_view law, double mean) {
  if (!std::isfinite(mean) || mean <= 0)
    return fail(ErrorCode::kInvalid, fmt::format("a mean size of {}: above 0", mean));
  const std::string name(law);
  if (law == "fixed") return FlowSizes(Kind::kFixed, name).with_mean(mean);
  if (law == "exponential") return FlowSizes(Kind::kExponential, name).with_mean(mean);
  if (law == "lognormal") {
    FlowSizes sizes(Kind::kLognormal, name);
    sizes.mean_ = std::exp(kSigma * kSigma / 2);
    return sizes.with_mean(mean);
  }
  if (law == "pareto") {
    FlowSizes sizes(Kind::kPareto, name);
    sizes.mean_ = pareto_mean();
    return sizes.with_mean(mean);
  }
  if (law == "web-search")
    return of_curve({std::begin(kWebSearch), std::end(kWebSearch)}, name).with_mean(mean);
  if (law == "data-mining")
    return of_curve({std::begin(kDataMining), std::end(kDataMining)}, name).with_mean(mean);
  return fail(ErrorCode::kInvalid,
              fmt::format("no law \"{}\"; there are {}", law, fmt::join(kLaws, ", ")));
}

Result<FlowSizes> FlowSizes::parse(std::string_view text) {
  Lines lines;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty() || content.front() == '#') continue;
    if (const Result<> read = read_line(lines, content, line); !read)
      return Unexpected(read.error());
  }
  if (lines.points.empty()) return fail(ErrorCode::kInvalid, "holds no flow's size");
  if (lines.columns == 2) {
    if (lines.points.back().share != 1)
      return fail(ErrorCode::kInvalid, "the last line's share is not 1");
    return of_curve(std::move(lines.points), "measured");
  }
  FlowSizes sizes(Kind::kList, "measured");
  sizes.mean_ = 0;
  for (const Point& point : lines.points)
    sizes.mean_ += point.size / static_cast<double>(lines.points.size());
  sizes.curve_ = std::move(lines.points);
  return sizes;
}

FlowSizes FlowSizes::with_mean(double mean) const {
  BALLAST_CHECK(mean > 0);
  FlowSizes sizes = *this;
  sizes.scale_ *= mean / mean_;
  sizes.mean_ = mean;
  return sizes;
}

double FlowSizes::largest() const {
  constexpr double kQuantile = 3.0902;  // of the normal law, 0.999
  switch (kind_) {
    case Kind::kFixed:
      return scale_;
    case Kind::kExponential:
      return scale_ * std::log(1000);
    case Kind::kLognormal:
      return scale_ * std::exp(kSigma * kQuantile);
    case Kind::kPareto:
      return scale_ * kLargest;
    default:
      break;
  }
  double most = 0;
  for (const Point& point : curve_) most = std::max(most, point.size);
  return scale_ * most;
}

double FlowSizes::sample(Random& random) const { return scale_ * draw(random); }

double FlowSizes::draw(Random& random) const {
  if (kind_ == Kind::kFixed) return 1;
  if (kind_ == Kind::kList) return curve_[random.below(curve_.size())].size;
  const double u = 1 - random.unit();  // in (0, 1]
  switch (kind_) {
    case Kind::kExponential:
      return std::max(-std::log(u), 1e-12);
    case Kind::kLognormal:
      // Box and Muller.
      return std::exp(kSigma * std::sqrt(-2 * std::log(u)) *
                      std::cos(2 * std::numbers::pi * random.unit()));
    case Kind::kPareto: {
      const double cut = std::pow(kLargest, -kShape);
      return std::pow(cut + u * (1 - cut), -1 / kShape);
    }
    default:
      break;
  }
  const auto above = std::lower_bound(curve_.begin(), curve_.end(), u,
                                      [](const Point& p, double share) { return p.share < share; });
  if (above == curve_.begin()) return above->size;
  const Point& below = *std::prev(above);
  return below.size + (above->size - below.size) * (u - below.share) / (above->share - below.share);
}

}  // namespace ballast::sim
