// SPDX-License-Identifier: Apache-2.0
// What the compiled programs say of their maps and structs is what src/wire/ says here.
#include "loader/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "loader/lb_program.h"
#include "wire/lb.h"

namespace ballast::loader {
namespace {

using Sizes = std::pair<size_t, size_t>;

TEST(Shapes, OfTheMapsAreThoseOfTheHeader) {
  const std::map<std::string, Sizes> expected{
      {"vips", {sizeof(bl_vip_key), sizeof(bl_vip)}},
      {"dispatch_tables", {4, sizeof(bl_dispatch_table)}},
      {"couplings", {4, sizeof(bl_coupling)}},
      {"ring_pages", {4, sizeof(bl_ring_page)}},
      {"instances", {4, sizeof(bl_instance)}},
      {"nat_sources", {sizeof(bl_vip_key), sizeof(bl_nat_source)}},
      {"owners", {4, sizeof(bl_owner)}},
      {"settings", {4, sizeof(bl_settings)}},
      {"captured", {4, 4}},
      {"seed", {4, 8}},
      {"connections", {sizeof(bl_flow_key), sizeof(bl_connection)}},
      {"newcomers", {4, sizeof(bl_newcomer_set)}},
      {"fragments", {sizeof(bl_fragment_key), sizeof(bl_fragment)}},
      {"counters", {4, 8}},
      {"instance_counters", {4, sizeof(bl_traffic)}},
      {"error_budget", {4, 16}},
      {"balancers", {sizeof(bl_balancer_key), 1}},
      {"decap_counters", {4, 8}},
      {"peers", {sizeof(bl_balancer_key), sizeof(bl_peer)}},
  };
  const auto shapes = map_shapes();
  ASSERT_TRUE(shapes) << shapes.error().message;
  std::map<std::string, Sizes> seen;
  for (const MapShape& shape : *shapes) seen[shape.name] = {shape.key_size, shape.value_size};
  EXPECT_EQ(seen, expected);
  const auto counters = std::find_if(shapes->begin(), shapes->end(),
                                     [](const MapShape& s) { return s.name == "counters"; });
  EXPECT_EQ(counters->max_entries, counter_names().size());
}

TEST(Shapes, OfTheStructsAreThoseOfTheHeader) {
#define FIELD(type, field) {{#type, #field}, offsetof(type, field)}
#define SIZE(type) {{#type, ""}, sizeof(type)}
  const std::map<std::pair<std::string, std::string>, size_t> expected{
      FIELD(bl_flow_key, source),
      FIELD(bl_flow_key, destination),
      FIELD(bl_flow_key, source_port_be),
      FIELD(bl_flow_key, destination_port_be),
      FIELD(bl_flow_key, protocol),
      FIELD(bl_flow_key, family),
      SIZE(bl_flow_key),
      FIELD(bl_vip_key, address),
      FIELD(bl_vip_key, port_be),
      FIELD(bl_vip_key, protocol),
      FIELD(bl_vip_key, family),
      SIZE(bl_vip_key),
      FIELD(bl_vip, index),
      FIELD(bl_vip, table),
      SIZE(bl_vip),
      FIELD(bl_dispatch_table, total),
      FIELD(bl_dispatch_table, class_count),
      FIELD(bl_dispatch_table, classes),
      FIELD(bl_dispatch_table, members),
      SIZE(bl_dispatch_table),
      FIELD(bl_dispatch_class, below),
      FIELD(bl_dispatch_class, first),
      FIELD(bl_dispatch_class, size),
      SIZE(bl_dispatch_class),
      FIELD(bl_coupling, ring_size),
      FIELD(bl_coupling, count),
      FIELD(bl_coupling, pages),
      FIELD(bl_coupling, members),
      SIZE(bl_coupling),
      FIELD(bl_coupled, keep),
      FIELD(bl_coupled, own),
      FIELD(bl_coupled, other),
      FIELD(bl_coupled, instance),
      SIZE(bl_coupled),
      FIELD(bl_ring_slot, first),
      FIELD(bl_ring_slot, second),
      SIZE(bl_ring_page),
      FIELD(bl_instance, address),
      FIELD(bl_instance, outer_source),
      FIELD(bl_instance, ifindex),
      FIELD(bl_instance, mtu),
      FIELD(bl_instance, method),
      FIELD(bl_instance, family),
      FIELD(bl_instance, mac),
      FIELD(bl_instance, source_mac),
      FIELD(bl_instance, state),
      FIELD(bl_instance, port_be),
      SIZE(bl_instance),
      FIELD(bl_connection, last_seen_ns),
      FIELD(bl_connection, instance),
      FIELD(bl_connection, state),
      FIELD(bl_connection, candidate),
      SIZE(bl_connection),
      FIELD(bl_fragment_key, id_be),
      SIZE(bl_fragment_key),
      FIELD(bl_nat_source, address),
      FIELD(bl_nat_source, instance),
      FIELD(bl_nat_source, port_be),
      SIZE(bl_nat_source),
      FIELD(bl_settings, capture_one_in),
      FIELD(bl_settings, capture_length),
      SIZE(bl_settings),
      FIELD(bl_fragment, instance),
      FIELD(bl_fragment, is_answer),
      FIELD(bl_fragment, address),
      SIZE(bl_fragment),
      FIELD(bl_traffic, packets),
      FIELD(bl_traffic, bytes),
      FIELD(bl_traffic, connections),
      SIZE(bl_traffic)};
#undef FIELD
#undef SIZE
  const auto shapes = field_shapes();
  ASSERT_TRUE(shapes) << shapes.error().message;
  std::map<std::pair<std::string, std::string>, size_t> seen;
  for (const FieldShape& shape : *shapes) seen[{shape.type, shape.field}] = shape.offset;
  for (const auto& [field, offset] : expected)
    EXPECT_EQ(seen[field], offset) << field.first << "." << field.second;
}

TEST(CounterNames, AreUniqueAndInOrder) {
  std::set<std::string> names;
  for (const CounterName& counter : counter_names()) names.insert(counter.name);
  ASSERT_EQ(names.size(), size_t{BL_COUNTERS});
  EXPECT_STREQ(counter_names()[BL_DROP_hop_limit].name, "hop_limit");
  EXPECT_STREQ(counter_names()[BL_EVENT_passed].name, "passed");
  EXPECT_TRUE(counter_names()[BL_DROP_no_room].is_drop);
  EXPECT_FALSE(counter_names()[BL_EVENT_known].is_drop);
}

}  // namespace
}  // namespace ballast::loader
