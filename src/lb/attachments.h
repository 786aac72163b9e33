// SPDX-License-Identifier: Apache-2.0
// A program on its interfaces: attached when the process starts, taken over from a former process
// where that one left it there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "loader/attachment.h"
#include "model/lb.h"

namespace ballast::lb {

struct AttachOptions {
  std::vector<std::string> interfaces;
  model::Attach mode = model::Attach::kAuto;
  std::string pins;  // folder where attachments are kept, or empty
  bool keep = false;
};

struct Attached {
  std::string interface;
  uint32_t ifindex = 0;  // 0: the interface is gone
  bool is_native = false;
  bool is_taken_over = false;
  loader::Attachment attachment = {};
};

const char* mode_of(const Attached& attached);  // native, generic or gone

// All interfaces or none. Without `keep` they end with this process. kSystem names an interface
// that is not there or to which nothing can be attached.
Result<std::vector<Attached>> attach_all(int program, const AttachOptions& options);

// What a former process left on interfaces that are not among these any more ends.
void remove_others(const AttachOptions& options);

// An interface that went takes the program with it: when it is back, so is the program. About once
// a second; says what it does.
void follow(int program, const AttachOptions& options, std::vector<Attached>& attached);

}  // namespace ballast::lb
