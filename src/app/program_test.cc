// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: words, exit status, which stream.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "app/option_table.h"
#include "telemetry/admin.h"
#include "telemetry/status.h"

namespace ballast::app {
namespace {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

Outcome run(const std::string& arguments) {
  const std::string err_path =
      testing::TempDir() + "/ballast-program-test-err-" + std::to_string(getpid());
  Outcome result;
  FILE* pipe = popen((BALLAST_PROGRAM " " + arguments + " 2>" + err_path).c_str(), "r");
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe)) result.out.append(buffer, got);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::ifstream err(err_path);
  result.err.assign(std::istreambuf_iterator<char>(err), {});
  std::remove(err_path.c_str());
  return result;
}

// Tests run beside each other, each in a process of its own.
std::string own_file(const std::string& name) {
  return testing::TempDir() + "/ballast-program-test-" + std::to_string(getpid()) + "-" + name;
}

TEST(Program, WrongUsageIsStatusTwoAndOneLineOnStderr) {
  for (const char* arguments : {"cahce up",
                                "cache frob",
                                "nonsense",
                                "config check --sampel 3",
                                "config check --sample x",
                                "config check",
                                "config show -c /nowhere/tier.toml",
                                "version --frob",
                                "version stray",
                                "help nonsense",
                                "config check --rack :1 --role king",
                                "cache status --admin off",
                                "sim cache",
                                "sim cache --figure frob",
                                "sim cache --figure theory --server-rate 0",
                                "sim cache --figure theory --server-rate -5",
                                "sim cache --figure theory --zipf nan",
                                "sim cache --figure theory --racks 4096",
                                "plan",
                                "plan --from frob",
                                "plan --from zipf",
                                "plan --from zipf --rate 0",
                                "plan --from zipf --rate -5",
                                "plan --from zipf --rate 1e5 --server-rate 0",
                                "plan --from zipf --rate 1e5 --node-rate 0",
                                "plan --from zipf --rate 1e5 --shards 0",
                                "plan --from zipf --rate 1e5 --objects 0",
                                "plan --from zipf --rate 1e5 --objects 1.5",
                                "plan --from zipf --rate 1e5 stray",
                                "plan --from trace --rate 1",
                                "plan --from trace /dev/null --rate 1",
                                "plan --from trace /nowhere/x --rate 1",
                                "plan --from zipf --rate 1 --writes 2",
                                "plan --from keys /nowhere/x --max-keys 0",
                                "sim cache --figure theory --seconds 0"}) {
    const Outcome result = run(arguments);
    EXPECT_EQ(result.status, 2) << arguments << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_TRUE(result.err.starts_with("ballast")) << result.err;
  }
  EXPECT_EQ(run("").status, 2);
  EXPECT_NE(run("confg show").err.find("did you mean ballast config show?"), std::string::npos);
  EXPECT_NE(run("caches").err.find("did you mean ballast cache?"), std::string::npos);
  EXPECT_NE(run("cache leaf").err.find("[[rack]]"), std::string::npos);
}

TEST(Program, AnAddressThatIsNotToBeHadIsNamedThoughNoShardAnswers) {
  const Outcome outcome = run("cache up --rack 127.0.0.1:1 --listen 203.0.113.1:7777");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("203.0.113.1:7777"), std::string::npos) << outcome.err;
}

TEST(Program, FilesThatHoldNoCertificateAreWrongConfiguration) {
  const std::string junk = own_file("junk.pem");
  std::ofstream(junk) << "no certificate\n";
  const Outcome outcome = run("cache up --rack 127.0.0.1:1 --listen 127.0.0.1:0 --tls-cert " +
                              junk + " --tls-key " + junk);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("TLS certificate " + junk), std::string::npos) << outcome.err;
  unlink(junk.c_str());
}

TEST(Program, HelpIsOnStdoutAndStatusZero) {
  for (const char* arguments : {"help", "--help", "-h", "help config check", "help cache",
                                "cache --help", "config show --help", "version -h"}) {
    const Outcome result = run(arguments);
    EXPECT_EQ(result.status, 0) << arguments;
    EXPECT_NE(result.out.find("Usage: ballast"), std::string::npos) << arguments;
    EXPECT_EQ(result.err, "") << arguments;
  }
  EXPECT_TRUE(run("version").out.starts_with("ballast 0."));
}

void expect_page(const std::string& name, const std::string& arguments) {
  std::ifstream page(BALLAST_REFERENCE "/" + name);
  const std::string committed{std::istreambuf_iterator<char>(page), {}};
  EXPECT_EQ(committed, run(arguments).out)
      << "run: ballast " << arguments << " > docs/reference/" << name;
}

TEST(Program, TheCommittedReferencePagesAreWhatTheProgramPrints) {
  expect_page("cache.md", "help --markdown");
  expect_page("cache-metrics.md", "help --metrics");
  expect_page("lb.md", "help --lb");
  expect_page("lb-metrics.md", "help --lb-metrics");
}

TEST(Program, TheDashboardAsksForMetricsThatThereAre) {
  std::ifstream file(BALLAST_REFERENCE "/../../packaging/grafana-lb.json");
  const std::string dashboard{std::istreambuf_iterator<char>(file), {}};
  const std::string page = run("help --lb-metrics").out;
  const std::regex name("ballast_\\w+");
  size_t asked = 0;
  for (std::sregex_iterator at(dashboard.begin(), dashboard.end(), name), end; at != end; ++at) {
    std::string metric = at->str();
    if (metric.ends_with("_bucket")) metric.resize(metric.size() - std::string("_bucket").size());
    EXPECT_NE(page.find("| `" + metric + "` |"), std::string::npos) << metric;
    ++asked;
  }
  EXPECT_GT(asked, 15U);
}

TEST(Program, ConfigCheckSaysWhatIsGood) {
  const Outcome result = run("config check --rack :1,:2 --rack :3 --spines 4");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "good for role all: 2 racks, 3 shards, 4 spines\n");
}

TEST(Program, SimPrintsAFigureAndWritesItsPage) {
  const std::string page = own_file("sim.html");
  const std::string figure =
      "sim cache --figure failure --racks 2 --spines 2 --servers 2 --objects 1000 --runs 2 ";
  const Outcome text = run(figure + "--plot " + page);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("seeds 1, 2"), std::string::npos) << text.out;
  std::ifstream file(page);
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(html.find("<svg"), std::string::npos);
  std::remove(page.c_str());
  const Outcome json = run(figure + "--json");
  EXPECT_TRUE(json.out.starts_with("{")) << json.out;
  EXPECT_EQ(json.out, run(figure + "--json").out);
  const Outcome nowhere = run(figure + "--plot /nowhere/x.html");
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_EQ(nowhere.out, "") << "said before the figure is made";
  EXPECT_NE(run("sim cache --figure frob").err.find("skew, cache-size, scale"), std::string::npos);
}

class PlanTrace : public testing::Test {
 protected:
  PlanTrace() : path_(own_file("trace")) {
    std::ofstream file(path_);
    for (int rank = 1; rank <= 300; ++rank) file << "key" << rank << " " << 30'000 / rank << "\n";
  }
  ~PlanTrace() override { std::remove(path_.c_str()); }
  std::string path_;
};

TEST_F(PlanTrace, PlanSaysWhatATraceNeeds) {
  const std::string options = "plan --from trace " + path_ + " --rate 1e6 ";
  const Outcome text = run(options);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("Zipf 1.00"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("key1 "), std::string::npos) << text.out;
  EXPECT_TRUE(run(options + "--json").out.starts_with("{"));
  EXPECT_NE(run(options + "--server-rate 1e7").out.find("No cache is needed"), std::string::npos);
  const Outcome piped = run("plan --from keys - --rate 1e6 < " + path_);
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(run(options + "--writes 1").status, 1);
}

TEST_F(PlanTrace, PlanNamesWhatIsWrongWithATrace) {
  const Outcome many = run("plan --from trace " + path_ + " --rate 1 --objects 1e9");
  EXPECT_EQ(many.status, 2);
  EXPECT_NE(many.err.find("--objects 1000000000: the trace's "), std::string::npos) << many.err;
  EXPECT_EQ(run("plan --from trace " + path_ + " --rate 1 --objects 5").status, 2);
  EXPECT_NE(run("plan --from trace " + path_).err.find("--rate is required"), std::string::npos);
  std::ofstream(path_, std::ios::app) << "oops\n";
  const Outcome bad = run("plan --from trace " + path_ + " --rate 1");
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("trace:301: not KEY COUNT"), std::string::npos) << bad.err;
}

TEST(Program, SimLbNamesTheOptionThatIsWrong) {
  for (const std::string wrong :
       {"--load 0", "--load -1", "--flow-rate -1", "--flow-rate 0", "--capacity 0", "--m 1025",
        "--m -1", "--interval 0s", "--sizes /nowhere/x", "--sizes /dev/null", "--size-law even",
        "--flow-size 0", "--flow-size 1", "--other-load 1", "--spread 0.5", "--metric speed",
        "--instances 0", "--missed 1.5", "--interval 1ms --balancers 1000 --instances 4096"}) {
    const Outcome result = run("sim lb --figure load " + wrong);
    EXPECT_EQ(result.status, 2) << wrong << result.err;
    EXPECT_EQ(result.out, "") << wrong;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(wrong.substr(0, wrong.find(' '))), std::string::npos) << result.err;
  }
  EXPECT_EQ(run("sim lb").status, 2);
}

TEST(Program, SimLbPrintsAFigureOfMeasuredSizes) {
  const std::string sizes = own_file("sizes");
  std::ofstream(sizes) << "100000\n200000\n600000\n";
  const std::string figure = "sim lb --figure load --instances 4 --seconds 2 --runs 2 ";
  const Outcome text = run(figure + "--metric completion --sizes " + sizes);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("seeds 1, 2"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("mean completion time"), std::string::npos) << text.out;
  const Outcome json = run(figure + "--json --flow-size 2MB --sizes " + sizes);
  EXPECT_NE(json.out.find("\"flow_size_law\": \"measured\""), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("\"flow_size_bytes\": 2000000.0"), std::string::npos) << json.out;
  EXPECT_EQ(json.out, run(figure + "--json --flow-size 2MB --sizes " + sizes).out);
  EXPECT_NE(run(figure + "--size-law fixed --sizes " + sizes).err.find("--sizes with --size-law"),
            std::string::npos);
  std::ofstream(sizes) << "100000\n-3\n";
  const Outcome bad = run(figure + "--sizes " + sizes);
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("--sizes"), std::string::npos) << bad.err;
  EXPECT_NE(bad.err.find("line 2"), std::string::npos) << bad.err;
  EXPECT_NE(run("sim lb --figure load --m 1025").err.find("--m"), std::string::npos);
  EXPECT_NE(run("sim lb --figure frob").err.find("load, m, interval"), std::string::npos);
  std::remove(sizes.c_str());
}

TEST(Program, StatusPrintsTablesAndJson) {
  telemetry::Status status;
  status.tier = "shop";
  status.role = "all";
  status.shards = {{"127.0.0.1:7000", "rack-0", true, 120, 12.5, ""},
                   {"127.0.0.1:7001", "rack-0", false, 3, 0, "connection refused"}};
  status.nodes = {{"spine-0", "spine", 5, 2048, 40, 1000, 900, 100, true}};
  status.hottest = {{"user:\x1b[2J", "spine-0", 77}};
  auto server = telemetry::AdminServer::start(
      {"127.0.0.1", 0}, {[] { return std::string(); }, [&] { return telemetry::to_json(status); },
                         [] { return telemetry::Readiness{true, {}}; }});
  ASSERT_TRUE(server) << server.error().message;
  const std::string admin = " --admin " + model::to_string((*server)->address());
  const Outcome text = run("cache status" + admin);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("down: connection refused"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("90.0 %"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("user:\\x1b[2J"), std::string::npos) << text.out;
  EXPECT_EQ(run("cache status --json" + admin).out, telemetry::to_json(status));
  (*server)->stop();
  const Outcome gone = run("cache status" + admin);
  EXPECT_EQ(gone.status, 1);
  EXPECT_NE(gone.err.find("refused"), std::string::npos) << gone.err;
}

}  // namespace
}  // namespace ballast::app
