// SPDX-License-Identifier: Apache-2.0
// The side of `ballast lb run`'s HTTP interface that commands are on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_line.h"
#include "base/result.h"
#include "model/lb.h"

namespace ballast::app {

// The VIPs that a balancer has; the generation counts their changes.
struct LbState {
  std::vector<model::Vip> vips;
  uint64_t generation = 0;
};

class LbClient {
 public:
  LbClient();  // asks at BALLAST_LB_API, else at the default of [lb]'s api

  Flag flag();  // --api; this object must outlive it

  // The JSON of a 200 answer. Else its "error": kInvalid for 400, kState for 409, kUnavailable for
  // what gave no answer.
  Result<std::string> get(const std::string& target) const;

  Result<LbState> state() const;

  // What changes, in words, with these VIPs in the place of all others.
  Result<std::vector<std::string>> replace(const std::vector<model::Vip>& vips,
                                           bool is_dry_run) const;

  // Reads the VIPs, lets `edit` change them and puts them back; begins anew if somebody else
  // changed them in between. An error of `edit` leaves all as it is.
  using Edit = std::function<Result<>(std::vector<model::Vip>&)>;
  Result<std::vector<std::string>> change(const Edit& edit) const;

 private:
  Result<std::string> call(const std::string& method, const std::string& target,
                           const std::string& body) const;
  Result<std::vector<std::string>> put(const std::vector<model::Vip>& vips,
                                       const std::string& query) const;

  std::string api_;
};

// As a part of a URL's query.
std::string percent_encoded(std::string_view text);

// Prints "name: message" on stderr and gives the exit status: wrong usage for kInvalid.
int lb_failed(const std::string& name, const Error& error);

}  // namespace ballast::app
