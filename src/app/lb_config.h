// SPDX-License-Identifier: Apache-2.0
// Where the load balancer's configuration comes from: options over environment over lb.toml over
// defaults; VIPs from TOML or JSON, which spell them alike.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "base/result.h"
#include "model/lb.h"

namespace ballast::app {

// What a command line gave, kept so that a reload can apply it again over a changed file.
struct LbGiven {
  std::string file;
  std::map<std::string, std::string> options;  // key -> value
};

// They write into `given`, which must outlive them.
std::vector<Flag> lb_flags(LbGiven& given);

// Merged and checked, the secret read. The error names file, line and key, or the variable, or the
// option.
Result<model::LbConfig> load_lb_config(const LbGiven& given);

// The list of VIPs in a file's text: JSON if it begins with {, else TOML; completed and checked.
// `name` is the file's, for errors.
Result<std::vector<model::Vip>> read_vips(const std::string& name, const std::string& text,
                                          bool may_be_empty = false);

// {"vip":[…]}, what differs from the defaults.
std::string vips_json(const std::vector<model::Vip>& vips);

// docs/reference/lb.md.
std::string lb_reference_page();

}  // namespace ballast::app
