// SPDX-License-Identifier: Apache-2.0
#include "app/lb_client.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "app/command_line.h"
#include "app/lb_config.h"
#include "app/subcommand.h"
#include "telemetry/admin.h"

namespace ballast::app {
namespace {

using telemetry::ApiAnswer;
using telemetry::ApiRequest;

// What `ballast lb run` answers, without a packet path.
class LbCommands : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ballast-lb-client-XXXXXX";
    folder_ = mkdtemp(name);
    socket_ = folder_ + "/lb.sock";
    telemetry::AdminHandlers handlers;
    handlers.api = [this](const ApiRequest& request) { return answer(request); };
    telemetry::AdminLimits limits;
    limits.body_bytes = 1 << 20;
    auto started = telemetry::AdminServer::start({socket_, 0}, std::move(handlers), limits);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
    setenv("BALLAST_LB_API", socket_.c_str(), 1);
    auto vips = read_vips("test", R"({"vip":[{"name":"web","address":"192.0.2.1","port":80,
        "load":"agent","instance":[{"name":"a","address":"10.0.0.1"},
                                   {"name":"b","address":"10.0.0.2"}]}]})");
    ASSERT_TRUE(vips) << vips.error().message;
    vips_ = std::move(*vips);
  }
  void TearDown() override {
    if (server_) server_->stop();
    unsetenv("BALLAST_LB_API");
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(folder_.c_str());
  }

  ApiAnswer answer(const ApiRequest& request) {
    requests_.push_back(request);
    if (request.path == "/v1/status") return {200, status_};
    if (request.path == "/v1/trace") return {200, trace_};
    if (request.method == "GET") {
      std::string config = vips_json(vips_);
      config.insert(1, "\"generation\":" + std::to_string(generation_) + ",");
      if (moves_ > 0) --moves_, ++generation_;
      return {200, config};
    }
    const auto wanted = request.query.find("generation");
    if (wanted != request.query.end() && wanted->second != std::to_string(generation_))
      return {409, R"({"error":"it is of another generation"})"};
    auto vips = read_vips("request", request.body, request.query.contains("may_be_empty"));
    if (!vips) return {400, R"({"error":"the VIPs are wrong"})"};
    if (!request.query.contains("dry_run")) {
      vips_ = *vips;
      ++generation_;
    }
    return {200, R"({"changes":["vip web: something"],"generation":5})"};
  }

  std::string file(const std::string& text) {
    files_.push_back(folder_ + "/vips");
    std::ofstream(files_.back()) << text;
    return files_.back();
  }

  // Its status; what it printed is in out_ and err_.
  int run(int (*command)(const Arguments&), const Arguments& arguments) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = command(arguments);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return status;
  }

  std::string folder_;
  std::string socket_;
  std::vector<std::string> files_;
  std::unique_ptr<telemetry::AdminServer> server_;
  std::vector<model::Vip> vips_;
  uint64_t generation_ = 4;
  int moves_ = 0;  // somebody else's change after so many of the next readings
  std::string status_ = "{}";
  std::string trace_ = "{}";
  std::vector<ApiRequest> requests_;
  std::string out_;
  std::string err_;
};

TEST_F(LbCommands, ApplyReplacesAllOrShowsIt) {
  const std::string path = file(
      "[lb]\ninterfaces = [\"eth0\"]\n[[vip]]\naddress = \"192.0.2.7\"\nport = 80\n"
      "[[vip.instance]]\naddress = \"10.0.0.9\"\n");
  EXPECT_EQ(run(run_lb_apply, {"-f", path, "--dry-run"}), 0) << err_;
  EXPECT_EQ(out_, "vip web: something\n");
  EXPECT_EQ(vips_[0].address, "192.0.2.1");
  EXPECT_EQ(run(run_lb_apply, {"-f", path, "--json"}), 0) << err_;
  EXPECT_EQ(out_, "{\"changes\":[\"vip web: something\"],\"dry_run\":false}\n");
  ASSERT_EQ(vips_.size(), 1U);
  EXPECT_EQ(vips_[0].address, "192.0.2.7");

  requests_.clear();
  EXPECT_EQ(run(run_lb_apply, {"-f", file("[[vip]]\naddress = \"192.0.2.7\"\nprt = 80\n")}), 2);
  EXPECT_NE(err_.find("vips:3: vip[0].prt: "), std::string::npos) << err_;
  EXPECT_NE(err_.find("did you mean port"), std::string::npos) << err_;
  EXPECT_TRUE(requests_.empty()) << "a wrong file is not sent";
  EXPECT_EQ(run(run_lb_apply, {}), 2);
  EXPECT_EQ(run(run_lb_apply, {"-f", "/nowhere/x"}), 2);
}

TEST_F(LbCommands, OperationsChangeOneInstance) {
  EXPECT_EQ(run(run_lb_drain, {"web", "b"}), 0) << err_;
  EXPECT_EQ(vips_[0].instances[0].operation, model::Operation::kUp);
  EXPECT_EQ(vips_[0].instances[1].operation, model::Operation::kDrain);
  EXPECT_EQ(run(run_lb_maintain, {"192.0.2.1:80", "10.0.0.1"}), 0) << err_;
  EXPECT_EQ(vips_[0].instances[0].operation, model::Operation::kMaintenance);
  EXPECT_EQ(run(run_lb_undrain, {"tcp/192.0.2.1:80", "a"}), 0) << err_;
  EXPECT_EQ(vips_[0].instances[0].operation, model::Operation::kUp);
  EXPECT_EQ(vips_[0].load, model::LoadSource::kAgent) << "the rest stays";

  EXPECT_EQ(run(run_lb_drain, {"wbe", "a"}), 1);
  EXPECT_NE(err_.find("did you mean web?"), std::string::npos) << err_;
  EXPECT_EQ(run(run_lb_drain, {"web", "c"}), 1);
  EXPECT_EQ(run(run_lb_drain, {"web"}), 2);
}

TEST_F(LbCommands, AChangeBeginsAnewWhenAnotherCameBefore) {
  moves_ = 2;
  EXPECT_EQ(run(run_lb_drain, {"web", "a"}), 0) << err_;
  EXPECT_EQ(vips_[0].instances[0].operation, model::Operation::kDrain);
  EXPECT_EQ(requests_.size(), 6U);
  moves_ = 1000;
  EXPECT_EQ(run(run_lb_undrain, {"web", "a"}), 1);
  EXPECT_NE(err_.find("another generation"), std::string::npos) << err_;
  EXPECT_EQ(vips_[0].instances[0].operation, model::Operation::kDrain);
}

TEST_F(LbCommands, IpvsadmEditsAndLists) {
  EXPECT_EQ(run(run_lb_ipvsadm, {"-A", "-t", "192.0.2.2:443", "-s", "wrr"}), 0) << err_;
  EXPECT_EQ(run(run_lb_ipvsadm, {"-a", "-t", "192.0.2.2:443", "-r", "10.0.0.1", "-w", "0"}), 0)
      << err_;
  status_ = R"({"vips":[{"name":"web","flows":12,"packets":34,"bytes":56,
                         "instances":[{"name":"b","open":7,"flows":3,"packets":4,"bytes":5}]}]})";
  EXPECT_EQ(run(run_lb_ipvsadm, {"-Ln"}), 0) << err_;
  EXPECT_EQ(out_,
            "Prot LocalAddress:Port Scheduler Flags\n"
            "  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\n"
            "TCP  192.0.2.1:80 awfd\n"
            "  -> 10.0.0.1:80                  Route   1      -          -         \n"
            "  -> 10.0.0.2:80                  Route   1      7          -         \n"
            "TCP  192.0.2.2:443 wrr\n"
            "  -> 10.0.0.1:443                 Route   0      -          -         \n");
  EXPECT_EQ(run(run_lb_ipvsadm, {"-L", "--stats"}), 0) << err_;
  EXPECT_NE(out_.find("TCP  192.0.2.1:80                       12       34        -       56"),
            std::string::npos)
      << out_;
  EXPECT_EQ(run(run_lb_ipvsadm, {"-S"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("-A -t 192.0.2.1:80 -s awfd\n")) << out_;
  EXPECT_EQ(vips_[0].load, model::LoadSource::kAgent);
  EXPECT_EQ(run(run_lb_ipvsadm, {"-A", "-t", "192.0.2.2:443"}), 1);
  EXPECT_EQ(run(run_lb_ipvsadm, {"-A"}), 2);
  EXPECT_EQ(run(run_lb_ipvsadm, {"--help"}), 0);
  EXPECT_TRUE(out_.starts_with("ballast lb ipvsadm: ")) << out_;
}

TEST_F(LbCommands, StatusAndTraceShowWhatTheBalancerSays) {
  status_ = R"({"generation":3,"interfaces":[{"name":"eth0","mode":"native"}],
    "connections":{"entries":5,"capacity":100},"counters":{"known":9,"passed":0},
    "leaving":[{"name":"old","address":"10.0.0.7","entries":2}],
    "vips":[{"name":"web","protocol":"tcp","address":"192.0.2.1","port":80,"forwarding":"l2",
      "scheduler":"awfd","packets_per_s":12345.0,"bytes_per_s":1e6,"flows_per_s":2.0,
      "instances":[{"name":"a\u001b[2J","address":"10.0.0.1","port":0,"operation":"up","weight":12,
        "share":0.75,"reason":"weighed","open":3,"packets_per_s":10.0,"bytes_per_s":20.0,
        "flows_per_s":1.0,"load":{"utilisation":0.5,"missed":4},
        "health":{"state":"down","cause":"connect: Connection refused"}}]}]})";
  EXPECT_EQ(run(run_lb_status, {}), 0) << err_;
  for (const char* part :
       {"interfaces eth0 (native); configuration 3; 5 of 100 connections",
        "web  tcp/192.0.2.1:80, l2, awfd: 12.3 k packets/s, 8.0 M bit/s, 2 flows/s", "75.0 %",
        "50.0 % (4 missed)", "down: connect: Connection refused", "weighed", "known", "old"})
    EXPECT_NE(out_.find(part), std::string::npos) << part << " in " << out_;
  EXPECT_EQ(out_.find("passed"), std::string::npos) << "what never was is left out";
  EXPECT_EQ(out_.find('\x1b'), std::string::npos) << "a name does not steer the terminal";
  EXPECT_EQ(run(run_lb_status, {"--json"}), 0);
  EXPECT_EQ(out_, status_ + "\n");

  trace_ = R"({"instance":"a","address":"10.0.0.1","vip":"web","why":"a new flow: draw 3 of 28"})";
  EXPECT_EQ(run(run_lb_trace, {"tcp", "[2001:db8::7]:4000", "192.0.2.1:80"}), 0) << err_;
  EXPECT_EQ(out_,
            "tcp [2001:db8::7]:4000 -> 192.0.2.1:80: instance a (10.0.0.1) of VIP web\n"
            "a new flow: draw 3 of 28\n");
  EXPECT_EQ(requests_.back().query["source"], "[2001:db8::7]:4000");
  trace_ = R"({"instance":null,"vip":null,"why":"no VIP"})";
  EXPECT_EQ(run(run_lb_trace, {"tcp", "198.51.100.1:1", "192.0.2.9:80"}), 1);
  EXPECT_EQ(run(run_lb_trace, {"tcp"}), 2);
}

TEST_F(LbCommands, WithoutABalancerTheySayWhereTheyAsked) {
  server_->stop();
  server_.reset();
  for (const auto command : {run_lb_status, run_lb_ipvsadm}) {
    EXPECT_EQ(run(command, {}), 1);
    EXPECT_NE(err_.find("no balancer answers at " + socket_), std::string::npos) << err_;
  }
  EXPECT_EQ(run(run_lb_status, {"--api", "nonsense"}), 2);
}

}  // namespace
}  // namespace ballast::app
