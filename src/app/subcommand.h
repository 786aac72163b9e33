// SPDX-License-Identifier: Apache-2.0
// A subcommand of the program. To add one: a file of its own with its run function, declared here,
// and a row in main.cc's table; help, dispatch and did-you-mean follow.
#pragma once

#include <string>
#include <vector>

namespace ballast::app {

using Arguments = std::vector<std::string>;  // what follows the subcommand's own words

struct Subcommand {
  const char* name;                        // the words after "ballast", e.g. "cache up"
  const char* help;                        // one line
  int (*run)(const Arguments& arguments);  // gives the exit status: kExitDone, …
};

int run_cache_leaf(const Arguments& arguments);
int run_cache_router(const Arguments& arguments);
int run_cache_spine(const Arguments& arguments);
int run_cache_up(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_cache_status(const Arguments& arguments);
int run_config_check(const Arguments& arguments);
int run_config_show(const Arguments& arguments);
int run_lb_agent(const Arguments& arguments);
int run_lb_apply(const Arguments& arguments);
int run_lb_capture(const Arguments& arguments);
int run_lb_check(const Arguments& arguments);
int run_lb_connections(const Arguments& arguments);
int run_lb_decap(const Arguments& arguments);
int run_lb_drain(const Arguments& arguments);
int run_lb_ipvsadm(const Arguments& arguments);
int run_lb_load(const Arguments& arguments);
int run_lb_maintain(const Arguments& arguments);
int run_lb_run(const Arguments& arguments);
int run_lb_status(const Arguments& arguments);
int run_lb_trace(const Arguments& arguments);
int run_lb_undrain(const Arguments& arguments);
int run_sim_cache(const Arguments& arguments);
int run_sim_lb(const Arguments& arguments);
int run_version(const Arguments& arguments);

}  // namespace ballast::app
