// SPDX-License-Identifier: Apache-2.0
#include "telemetry/table.h"

#include <algorithm>

#include "base/check.h"

namespace ballast::telemetry {
namespace {

size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a continuation byte
  }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  BALLAST_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) {
    std::replace_if(
        cell.begin(), cell.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t widest = width(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, width(row[i]));
    widths.push_back(widest);
  }
  std::string out;
  const auto cell = [&](size_t i, const std::string& text) {
    const std::string gap(widths[i] - width(text), ' ');
    if (i > 0) out += "  ";
    out += columns_[i].right ? gap + text : text + gap;
  };
  const auto end_line = [&] {
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  for (size_t i = 0; i < columns_.size(); ++i) cell(i, columns_[i].title);
  end_line();
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) cell(i, row[i]);
    end_line();
  }
  return out;
}

}  // namespace ballast::telemetry
