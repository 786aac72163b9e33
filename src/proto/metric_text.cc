// SPDX-License-Identifier: Apache-2.0
#include "proto/metric_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace ballast::proto {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

bool is_blank(char byte) { return byte == ' ' || byte == '\t'; }

bool is_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
}

bool skip(std::string_view& text, char byte) {
  if (text.empty() || text.front() != byte) return false;
  text.remove_prefix(1);
  return true;
}

// Letters, digits and '_', for metrics ':' too; not a digit first. Empty: none is there.
std::string_view take_name(std::string_view& text, bool is_metric) {
  size_t size = 0;
  while (size < text.size()) {
    const char byte = text[size];
    const bool is_digit = byte >= '0' && byte <= '9';
    if (!is_letter(byte) && !(is_metric && byte == ':') && !(is_digit && size > 0)) break;
    ++size;
  }
  const std::string_view name = text.substr(0, size);
  text.remove_prefix(size);
  return name;
}

std::optional<std::string> take_quoted(std::string_view& text) {
  if (!skip(text, '"')) return std::nullopt;
  std::string value;
  while (!text.empty()) {
    const char byte = text.front();
    text.remove_prefix(1);
    if (byte == '"') return value;
    if (byte != '\\') {
      value += byte;
      continue;
    }
    if (text.empty()) break;
    const char escaped = text.front();
    text.remove_prefix(1);
    // Any other backslash stands for itself, as in Prometheus's own parser.
    if (escaped == 'n') {
      value += '\n';
    } else {
      if (escaped != '\\' && escaped != '"') value += '\\';
      value += escaped;
    }
  }
  return std::nullopt;
}

// {label="value",…} or nothing. False: broken.
bool take_labels(std::string_view& text, Labels& labels) {
  skip_blanks(text);
  if (!skip(text, '{')) return true;
  for (;;) {
    skip_blanks(text);
    if (skip(text, '}')) return true;
    const std::string_view name = take_name(text, false);
    if (name.empty()) return false;
    skip_blanks(text);
    if (!skip(text, '=')) return false;
    skip_blanks(text);
    auto value = take_quoted(text);
    if (!value) return false;
    labels.emplace_back(name, std::move(*value));
    skip_blanks(text);
    if (!skip(text, ',') && !text.starts_with('}')) return false;
  }
}

std::string_view take_word(std::string_view& text) {
  const auto end = std::ranges::find_if(text, is_blank);
  const std::string_view word = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(word.size());
  skip_blanks(text);
  return word;
}

// As Go's ParseFloat reads them; "nan" and "inf" in any case.
std::optional<double> number_of(std::string_view word) {
  const bool is_signed = word.starts_with('+');
  if (is_signed) word.remove_prefix(1);
  if (is_signed && word.starts_with('-')) return std::nullopt;
  double value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (stop != word.data() + word.size() || word.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  if (error != std::errc()) return std::nullopt;
  return value;
}

bool is_timestamp(std::string_view word) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && stop == word.data() + word.size();
}

bool has_all(const Labels& labels, const Labels& wanted) {
  return std::ranges::all_of(
      wanted, [&](const auto& label) { return std::ranges::find(labels, label) != labels.end(); });
}

Unexpected broken(const MetricSelector& selector) {
  return fail(ErrorCode::kInvalid, "a line of " + selector.name + " that cannot be read");
}

}  // namespace

Result<MetricSelector> parse_metric_selector(std::string_view text) {
  MetricSelector selector;
  std::string_view rest = text;
  skip_blanks(rest);
  selector.name = take_name(rest, true);
  const bool is_good = !selector.name.empty() && take_labels(rest, selector.labels);
  skip_blanks(rest);
  if (!is_good || !rest.empty()) {
    return fail(ErrorCode::kInvalid,
                "\"" + std::string(text) + "\" is no metric: NAME or NAME{LABEL=\"VALUE\"}");
  }
  return selector;
}

Result<double> find_metric(std::string_view exposition, const MetricSelector& selector) {
  std::optional<double> found;
  while (!exposition.empty()) {
    const size_t size = std::min(exposition.find('\n'), exposition.size());
    std::string_view line = exposition.substr(0, size);
    exposition.remove_prefix(std::min(size + 1, exposition.size()));
    skip_blanks(line);
    if (!line.starts_with(selector.name)) continue;
    if (take_name(line, true) != selector.name) continue;
    Labels labels;
    const bool is_followed = !line.empty() && (line.front() == '{' || is_blank(line.front()));
    if (!is_followed || !take_labels(line, labels)) return broken(selector);
    skip_blanks(line);
    while (!line.empty() && (is_blank(line.back()) || line.back() == '\r')) line.remove_suffix(1);
    const auto value = number_of(take_word(line));
    if (!value || !(line.empty() || is_timestamp(line))) return broken(selector);
    if (!has_all(labels, selector.labels)) continue;
    if (found) {
      return fail(ErrorCode::kInvalid,
                  "more than one sample of " + selector.name + "; labels must tell which");
    }
    found = value;
  }
  if (!found) return fail(ErrorCode::kInvalid, "no sample of " + selector.name);
  return *found;
}

}  // namespace ballast::proto
