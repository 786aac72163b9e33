// SPDX-License-Identifier: Apache-2.0
#include "lb/metrics.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "base/clock.h"
#include "wire/lb.h"

namespace ballast::lb {
namespace {

LbMetrics example() {
  LbMetrics metrics;
  metrics.uptime_seconds = 2.5;
  metrics.map_writes = 1'234'567'890'123;
  metrics.counters.assign(BL_COUNTERS, 0);
  metrics.counters[BL_DROP_too_big] = 3;
  metrics.counters[BL_EVENT_known] = 4;
  metrics.interfaces = {{"eth0", "native"}};
  metrics.vips.resize(1);
  metrics.vips[0].vip = "we\"b\\\n";
  metrics.vips[0].connections = 7;
  metrics.instances.resize(2);
  for (InstanceMetrics& instance : metrics.instances) instance.vip = "web";
  metrics.instances[0].instance = "a";
  metrics.instances[0].utilisation = 0.25;
  metrics.instances[1].instance = "b";
  metrics.lateness.record(80 * kMicrosecond, 3);
  return metrics;
}

TEST(LbMetrics, ValuesComeOutUnderTheirNamesAndLabels) {
  const std::string text = "\n" + exposition(example());
  for (const char* line :
       {"ballast_uptime_seconds 2.5", "ballast_lb_map_writes_total 1234567890123",
        "ballast_lb_drops_total{reason=\"too_big\"} 3",
        "ballast_lb_events_total{event=\"known\"} 4",
        "ballast_lb_interface_info{interface=\"eth0\",mode=\"native\"} 1",
        "ballast_lb_vip_connections{vip=\"we\\\"b\\\\\\n\"} 7",
        "ballast_lb_instance_utilisation_ratio{vip=\"web\",vip_instance=\"a\"} 0.25",
        "ballast_lb_instance_utilisation_ratio{vip=\"web\",vip_instance=\"b\"} 0",
        "ballast_lb_poll_lateness_seconds_bucket{le=\"5e-05\"} 0",
        "ballast_lb_poll_lateness_seconds_count 3"})
    EXPECT_NE(text.find("\n" + std::string(line) + "\n"), std::string::npos) << line << text;
}

// Counters end in _total, nothing else does; the page has every family once.
TEST(LbMetrics, NamesFollowTheRulesAndStandOnThePage) {
  const std::string text = exposition(example());
  const std::string page = lb_metrics_page();
  const std::regex type("# TYPE (\\w+) (\\w+)");
  std::set<std::string> seen;
  for (std::sregex_iterator at(text.begin(), text.end(), type), end; at != end; ++at) {
    const std::string name = (*at)[1];
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    EXPECT_EQ(name.ends_with("_total"), (*at)[2] == "counter") << name;
    EXPECT_NE(page.find("| `" + name + "` | " + (*at)[2].str() + " |"), std::string::npos) << name;
  }
  EXPECT_GT(seen.size(), 30U);
}

}  // namespace
}  // namespace ballast::lb
