// SPDX-License-Identifier: Apache-2.0
// What the `ballast sim` commands have in common: --figure NAME and its runs, table, JSON and page.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/subcommand.h"
#include "sim/figure.h"

namespace ballast::app {

struct FigureName {
  const char* name;
  const char* help;
};

struct FigureCommand {
  std::string name = {};     // "ballast sim cache"
  std::string summary = {};  // one sentence
  std::vector<FigureName> figures = {};
  std::vector<Flag> flags = {};                    // besides those of every figure
  sim::Runs* runs = nullptr;                       // set by --runs and --seed
  std::function<std::string()> find_conflict;      // what single flags cannot see; empty = nothing
  std::function<sim::Figure(size_t figure)> make;  // by its index
};

// Parses, makes the figure with progress on stderr, prints it; gives the exit status.
int run_figure_command(FigureCommand command, const Arguments& arguments);

template <typename Options>
std::vector<FigureName> names_of(std::span<const sim::FigureKind<Options>> kinds) {
  std::vector<FigureName> names;
  for (const auto& kind : kinds) names.push_back({kind.name, kind.help});
  return names;
}

}  // namespace ballast::app
