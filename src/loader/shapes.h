// SPDX-License-Identifier: Apache-2.0
// How the compiled programs lay out their maps and structs, for the test that holds src/wire/
// against them. Reads the programs, loads nothing, needs no rights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ballast::loader {

struct MapShape {
  std::string name;
  uint32_t key_size = 0;
  uint32_t value_size = 0;
  uint32_t max_entries = 0;
};

// Of the load balancer's program and the instance's, the sections of globals left out.
Result<std::vector<MapShape>> map_shapes();

struct FieldShape {
  std::string type;   // of the struct, e.g. bl_instance
  std::string field;  // empty: the struct itself, whose size `offset` then is
  uint32_t offset = 0;
};

// Of every struct bl_… that the compiled program of the load balancer knows.
Result<std::vector<FieldShape>> field_shapes();

}  // namespace ballast::loader
