// SPDX-License-Identifier: Apache-2.0
// A table for people: columns as wide as their widest cell, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace ballast::telemetry {

struct Column {
  std::string title;
  bool right = false;  // numbers
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns. Bytes below space and DEL are shown as '?': a cell cannot steer the
  // terminal.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Lines without trailing spaces, each ended by '\n'; widths count UTF-8 code points as one.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ballast::telemetry
