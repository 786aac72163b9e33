// SPDX-License-Identifier: Apache-2.0
// A figure's three forms: a table for people, JSON for programs, one self-contained HTML page.
#pragma once

#include <string>

#include "sim/figure.h"

namespace ballast::sim {

std::string figure_text(const Figure& figure);
// A mean without bound is null.
std::string figure_json(const Figure& figure);
// Inline SVG and the table, readable without JavaScript and without the network.
std::string figure_html(const Figure& figure);
std::string figure_svg(const Figure& figure);

// "1,234", "12.3", "0.123", "-" without bound; with its confidence interval if there is one.
std::string cell_text(const Estimate& cell);

}  // namespace ballast::sim
