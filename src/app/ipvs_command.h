// SPDX-License-Identifier: Apache-2.0
// The grammar of ipvsadm(8) as edits of the list of VIPs: what scripts for IPVS say to Ballast.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/lb.h"

namespace ballast::app {

struct IpvsCommand {
  enum class Kind {
    kAddService,
    kEditService,
    kDeleteService,
    kAddServer,
    kEditServer,
    kDeleteServer,
    kClear,
    kRestore,
    kSave,
    kList,
    kHelp,
  };

  Kind kind = Kind::kHelp;
  bool has_service = false;
  model::Transport protocol = model::Transport::kTcp;
  model::Endpoint service;
  model::Endpoint server;  // port 0: not given
  std::optional<model::Scheduler> scheduler = {};
  std::optional<model::Forwarding> forwarding = {};
  std::optional<double> weight = {};
  bool shows_stats = false;        // --stats
  bool shows_rates = false;        // --rate
  bool shows_connections = false;  // -c
};

// kInvalid for what ipvsadm would not take, and for what it takes and Ballast has not.
Result<IpvsCommand> parse_ipvs(const std::vector<std::string>& arguments);

// Whether the command is about this VIP.
bool is_of(const IpvsCommand& command, const model::Vip& vip);

// One of the commands that change something, but for kRestore. kInvalid or kState says why the list
// is left as it is.
Result<> apply_ipvs(const IpvsCommand& command, std::vector<model::Vip>& vips);

// Lines as --save writes them, one by one; the error names the line.
Result<> restore_ipvs(const std::string& text, std::vector<model::Vip>& vips);

// What restore_ipvs() reads. What ipvsadm has no words for is left out.
std::string save_ipvs(const std::vector<model::Vip>& vips);

// awfd as it is, the others by IPVS's names.
std::string_view ipvs_word_of(model::Scheduler scheduler);

}  // namespace ballast::app
