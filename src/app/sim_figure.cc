// SPDX-License-Identifier: Apache-2.0
#include "app/sim_figure.h"

#include <cstdio>
#include <optional>

#include "app/flag_values.h"
#include "base/clock.h"
#include "sim/figure_report.h"
#include "telemetry/progress.h"

namespace ballast::app {
namespace {

constexpr const char* kOutputGroup = "Output";

struct Asked {
  std::optional<size_t> figure;
  bool json = false;
  std::string plot;
};

Result<> set_figure(std::optional<size_t>& figure, const std::vector<FigureName>& figures,
                    const std::string& text) {
  std::string known;
  for (size_t i = 0; i < figures.size(); ++i) {
    if (text == figures[i].name) {
      figure = i;
      return {};
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", figures[i].name);
  }
  return fail(ErrorCode::kInvalid, fmt::format("no figure \"{}\"; there are {}", text, known));
}

std::vector<Flag> all_flags(FigureCommand& command, Asked& asked) {
  std::vector<Flag> flags{
      {"--figure", "NAME", "which one, see below; required", "", "", false,
       [&](const std::string& text) { return set_figure(asked.figure, command.figures, text); }}};
  for (Flag& flag : command.flags) flags.push_back(std::move(flag));
  flags.push_back({"--runs", "COUNT", "independent runs of each point", "3", kOutputGroup, false,
                   count_into(command.runs->count, 1000)});
  flags.push_back({"--seed", "NUMBER", "of the first run; the others follow", "1", kOutputGroup,
                   false, seed_into(command.runs->seed)});
  flags.push_back({"--json", "", "print JSON", "", kOutputGroup, false, switch_into(asked.json)});
  flags.push_back({"--plot", "FILE", "also write a page with the plot, e.g. x.html", "",
                   kOutputGroup, false, text_into(asked.plot, "a file's name")});
  return flags;
}

std::string footer(const std::vector<FigureName>& figures) {
  std::string out = "Figures:\n";
  for (const FigureName& figure : figures)
    out += fmt::format("  {:<13}  {}\n", figure.name, figure.help);
  return out + "\nExit status: 0 done; 1 the page could not be written; 2 wrong usage.";
}

// The figure may take minutes: that its page cannot be written is said before.
Result<> check_writable(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return fail_errno("open " + path, errno);
  std::fclose(file);
  return {};
}

Result<> write_file(const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return fail_errno("open " + path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return fail_errno("write " + path, errno);
  return {};
}

}  // namespace

int run_figure_command(FigureCommand command, const Arguments& arguments) {
  Asked asked;
  const CommandLine line{.name = command.name,
                         .summary = command.summary,
                         .flags = all_flags(command, asked),
                         .footer = footer(command.figures)};
  if (const auto status = parse_command_line(line, arguments)) return *status;
  const std::string conflict = asked.figure ? command.find_conflict() : "--figure is required";
  if (!conflict.empty())
    return usage_error(command.name, fmt::format("{} (see {} --help)", conflict, command.name));
  const auto failed = [&](const Error& error) {
    std::fprintf(stderr, "%s: --plot: %s\n", command.name.c_str(), error.message.c_str());
    return kExitFailed;
  };
  if (const Result<> good = asked.plot.empty() ? Result<>() : check_writable(asked.plot); !good)
    return failed(good.error());
  telemetry::Progress progress;
  command.runs->progress = [&](size_t done, size_t of) {
    progress.report(
        now_ns(), fmt::format("{}: {} of {} runs", command.figures[*asked.figure].name, done, of));
  };
  const sim::Figure figure = command.make(*asked.figure);
  progress.finish();
  std::fputs((asked.json ? sim::figure_json(figure) : sim::figure_text(figure)).c_str(), stdout);
  if (asked.plot.empty()) return kExitDone;
  if (const Result<> written = write_file(asked.plot, sim::figure_html(figure)); !written)
    return failed(written.error());
  return kExitDone;
}

}  // namespace ballast::app
