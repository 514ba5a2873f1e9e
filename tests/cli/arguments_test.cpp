// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace earmark::cli {
namespace {

using Words = std::vector<char const*>;

[[nodiscard]] Arguments parse(Words words) {
  words.insert(words.begin(), "earmark");
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

[[nodiscard]] Words with(Words more) {
  Words words{"repartition", "in", "--by", "a", "--partitions", "8", "--output", "out", "--memory", "512MiB"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

[[nodiscard]] RunRepartition run_of(Words const& words) {
  auto const parsed = parse(words);
  if (auto const* const wrong = std::get_if<WrongUsage>(&parsed.command)) { ADD_FAILURE() << wrong->message; }
  return std::get<RunRepartition>(parsed.command);
}

[[nodiscard]] std::string refusal_of(Words const& words) {
  auto const parsed = parse(words);
  auto const* const wrong = std::get_if<WrongUsage>(&parsed.command);
  return wrong != nullptr ? wrong->message : "";
}

TEST(Arguments, FillTheOptionsOfTheJob) {
  auto const run = run_of(with({}));
  EXPECT_EQ(run.options.inputs, std::vector<std::string>{"in"});
  EXPECT_EQ(run.options.by, std::vector<std::string>{"a"});
  EXPECT_EQ(run.options.partitions, 8);
  EXPECT_EQ(run.options.output, "out");
  EXPECT_EQ(run.memory.kind, MemorySetting::Kind::Size);
  EXPECT_EQ(run.memory.bytes, 512 << 20);
  EXPECT_EQ(run.options.threads, 0U);
  EXPECT_EQ(run.options.overwrite, Overwrite::No);
  EXPECT_EQ(run.options.admission_check, AdmissionCheck::Yes);
  EXPECT_FALSE(run.options.compression.has_value());
  EXPECT_FALSE(run.options.row_group_bytes.has_value());
  EXPECT_EQ(run.progress, ProgressStyle::Auto);
}

TEST(Arguments, TakeEveryOption) {
  auto const run = run_of(with({"--threads", "3", "--compression", "zstd:5", "--row-group-bytes", "1MiB", "--overwrite",
                                "--progress", "never", "--no-admission-check"}));
  EXPECT_EQ(run.options.threads, 3U);
  EXPECT_EQ(run.options.compression->codec, Compression::Codec::Zstd);
  EXPECT_EQ(run.options.compression->level, 5);
  EXPECT_EQ(run.options.row_group_bytes, 1 << 20);
  EXPECT_EQ(run.options.overwrite, Overwrite::Yes);
  EXPECT_EQ(run.options.admission_check, AdmissionCheck::No);
  EXPECT_EQ(run.progress, ProgressStyle::Never);
  EXPECT_EQ(run_of(with({"--verify"})).options.verify, Verify::Yes);
}

TEST(Arguments, TakeInputsOnEitherSideOfOptionsAndAfterTwoDashes) {
  EXPECT_EQ(run_of(with({"b", "--overwrite", "c", "--", "--odd"})).options.inputs,
            (std::vector<std::string>{"in", "b", "c", "./--odd"}));
}

TEST(Arguments, TakeColumnsWithCommasAndSeveralLists) {
  EXPECT_EQ(run_of(with({"--by", R"("x,y",z)"})).options.by, (std::vector<std::string>{"a", "x,y", "z"}));
}

TEST(Arguments, TakeTheColumnsOfTheOutput) {
  EXPECT_FALSE(run_of(with({})).options.columns.has_value());
  EXPECT_EQ(run_of(with({"--columns", R"(b,"x,y")", "--columns", R"("say ""hi""")"})).options.columns,
            (std::vector<std::string>{"b", "x,y", R"(say "hi")"}));
}

// The environment, put back at the end of a test.
class Environment : public ::testing::Test {
 protected:
  ~Environment() override {
    for (auto const& name : names_) { ::unsetenv(name.c_str()); }
  }
  void set(std::string const& name, std::string const& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }

 private:
  std::vector<std::string> names_;
};

TEST_F(Environment, GivesWhatTheLineLeavesOut) {
  set("EARMARK_BY", R"(k,"x,y")");
  set("EARMARK_COLUMNS", "k");
  set("EARMARK_PARTITIONS", "5");
  set("EARMARK_OUTPUT", "there");
  set("EARMARK_MEMORY", "25%");
  set("EARMARK_THREADS", "3");
  set("EARMARK_COMPRESSION", "zstd:4");
  set("EARMARK_ROW_GROUP_BYTES", "2MiB");
  set("EARMARK_PROGRESS", "never");
  set("EARMARK_OVERWRITE", "1");
  set("EARMARK_VERIFY", "yes");
  set("EARMARK_JSON", "true");
  auto const parsed = parse({"repartition", "in"});
  EXPECT_EQ(parsed.report, ReportStyle::Json);
  auto const run = std::get<RunRepartition>(parsed.command);
  EXPECT_EQ(run.options.by, (std::vector<std::string>{"k", "x,y"}));
  EXPECT_EQ(run.options.columns, std::vector<std::string>{"k"});
  EXPECT_EQ(run.options.partitions, 5);
  EXPECT_EQ(run.options.output, "there");
  EXPECT_EQ(run.memory.percent, 25);
  EXPECT_EQ(run.options.threads, 3U);
  EXPECT_EQ(run.options.compression->level, 4);
  EXPECT_EQ(run.options.row_group_bytes, 2 << 20);
  EXPECT_EQ(run.progress, ProgressStyle::Never);
  EXPECT_EQ(run.options.overwrite, Overwrite::Yes);
  EXPECT_EQ(run.options.verify, Verify::Yes);
}

TEST_F(Environment, GivesWayToTheLine) {
  set("EARMARK_BY", "other");
  set("EARMARK_MEMORY", "nonsense");
  set("EARMARK_PARTITIONS", "-1");
  set("EARMARK_OVERWRITE", "0");
  auto const run = run_of(with({"--overwrite"}));
  EXPECT_EQ(run.options.by, std::vector<std::string>{"a"});
  EXPECT_EQ(run.options.partitions, 8);
  EXPECT_EQ(run.memory.bytes, 512 << 20);
  EXPECT_EQ(run.options.overwrite, Overwrite::Yes);
}

TEST_F(Environment, IsNamedWhenItMakesNoSense) {
  for (auto const& [name, value] : std::vector<std::pair<std::string, std::string>>{{"EARMARK_THREADS", "many"},
                                                                                    {"EARMARK_COMPRESSION", "lzo"},
                                                                                    {"EARMARK_ROW_GROUP_BYTES", "0"},
                                                                                    {"EARMARK_PROGRESS", "often"},
                                                                                    {"EARMARK_COLUMNS", "a,"},
                                                                                    {"EARMARK_VERIFY", "perhaps"},
                                                                                    {"EARMARK_JSON", "maybe"},
                                                                                    {"EARMARK_OVERWRITE", "2"}}) {
    set(name, value);
    auto const refusal = refusal_of(with({}));
    EXPECT_EQ(refusal.rfind(name + " " + value, 0), 0U) << name << ": " << refusal;
    ::unsetenv(name.c_str());
  }
}

TEST_F(Environment, ThatIsEmptySaysNothing) {
  for (auto const* const name : {"EARMARK_THREADS", "EARMARK_COLUMNS", "EARMARK_OVERWRITE", "EARMARK_JSON"}) {
    set(name, "");
  }
  auto const run = run_of(with({}));
  EXPECT_EQ(run.options.threads, 0U);
  EXPECT_FALSE(run.options.columns.has_value());
}

TEST_F(Environment, OfOneCommandDoesNotDisturbAnother) {
  set("EARMARK_PARTITIONS", "none");
  set("EARMARK_COLUMNS", "a,");
  EXPECT_TRUE(std::holds_alternative<RunInfo>(parse({"info"}).command));
  EXPECT_TRUE(std::holds_alternative<PrintText>(parse({"--help"}).command));
}

TEST_F(Environment, IsToldByInfoWithItsSource) {
  set("EARMARK_THREADS", "3");
  set("EARMARK_THRAEDS", "4");
  auto const info = std::get<RunInfo>(parse({"info", "--memory", "1GiB"}).command);
  auto const setting = [&info](std::string const& name) {
    for (auto const& known : info.settings) {
      if (known.name == name) { return known.value + " by " + known.source; }
    }
    return std::string{"missing"};
  };
  EXPECT_EQ(setting("threads"), "3 by EARMARK_THREADS");
  EXPECT_EQ(setting("memory"), "1GiB by --memory");
  EXPECT_EQ(setting("progress"), "auto by default");
  EXPECT_NE(std::find(info.unknown_variables.begin(), info.unknown_variables.end(), "EARMARK_THRAEDS"),
            info.unknown_variables.end());
  EXPECT_NE(refusal_of({"info", "--threads", "0"}), "");
}

TEST(Arguments, WantJsonEvenWhenTheRestMakesNoSense) {
  EXPECT_EQ(parse(with({"--json"})).report, ReportStyle::Json);
  EXPECT_EQ(parse({"repartition", "--json", "--nonsense"}).report, ReportStyle::Json);
  EXPECT_EQ(parse(with({"--", "--json"})).report, ReportStyle::Text);
}

TEST(Arguments, WantJsonAsTheSwitchOnTheLineSays) {
  EXPECT_EQ(parse(with({"--json=true"})).report, ReportStyle::Json);
  EXPECT_EQ(parse(with({"--json=false"})).report, ReportStyle::Text);
  ::setenv("EARMARK_JSON", "1", 1);
  EXPECT_EQ(parse(with({"--json=false"})).report, ReportStyle::Text);
  EXPECT_EQ(parse(with({})).report, ReportStyle::Json);
  ::unsetenv("EARMARK_JSON");
}

TEST(Arguments, TakeInputsInBracketsAsTheyAre) {
  auto const run = run_of({"repartition", "[ab]", "b", "--verify", "[a,b]", "--by", "[k]", "--partitions", "8",
                           "--output", "[o]", "--", "[c]"});
  EXPECT_EQ(run.options.inputs, (std::vector<std::string>{"./[ab]", "b", "./[a,b]", "./[c]"}));
  EXPECT_EQ(run.options.by, std::vector<std::string>{"[k]"});
  EXPECT_EQ(run.options.output, "[o]");
}

TEST(Arguments, RefuseWhatIsMissing) {
  EXPECT_NE(refusal_of({"repartition", "--by", "a", "--partitions", "8", "--output", "o", "--memory", "1g"}), "");
  EXPECT_NE(refusal_of({"repartition", "in", "--partitions", "8", "--output", "o", "--memory", "1g"}), "");
  EXPECT_NE(refusal_of({"repartition", "in", "--by", "a", "--output", "o", "--memory", "1g"}), "");
  EXPECT_NE(refusal_of({"repartition", "in", "--by", "a", "--partitions", "8", "--memory", "1g"}), "");
}

TEST(Arguments, TakeAllThatIsLeftWhenNoMemoryIsNamed) {
  EXPECT_EQ(run_of({"repartition", "in", "--by", "a", "--partitions", "8", "--output", "o"}).memory.kind,
            MemorySetting::Kind::Auto);
}

TEST(Arguments, RefuseWhatIsUnknownOrOutOfRange) {
  for (auto const& more : std::vector<Words>{{"--nonsense"},
                                             {"--memory", "2g"},
                                             {"--threads", "0"},
                                             {"--threads", "-1"},
                                             {"--threads", "1025"},
                                             {"--threads", ""},
                                             {"--compression", "lzo"},
                                             {"--compression", ""},
                                             {"--row-group-bytes", "0"},
                                             {"--row-group-bytes", ""},
                                             {"--progress", "some"},
                                             {"--by", "a,"}}) {
    EXPECT_NE(refusal_of(with(more)), "") << more.front();
  }
  EXPECT_NE(refusal_of({"no-such-command"}), "");
}

TEST(Arguments, PrintUsageWhenThereIsNoCommand) {
  auto const parsed = parse({});
  EXPECT_NE(std::get<WrongUsage>(parsed.command).usage.find("Usage: earmark"), std::string::npos);
}

TEST(Arguments, ExplainThemselves) {
  EXPECT_NE(std::get<PrintText>(parse({"--help"}).command).text.find("repartition"), std::string::npos);
  auto const text = std::get<PrintText>(parse({"repartition", "--help"}).command).text;
  for (auto const* const word :
       {"--by", "--partitions", "--output", "--columns", "--verify", "EARMARK_", "--memory", "--threads",
        "--compression", "--row-group-bytes", "--overwrite", "--progress", "--json", "Examples:", "Exit codes"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(text.find("no-admission-check"), std::string::npos);
  EXPECT_EQ(std::get<PrintText>(parse({"--version"}).command).text.rfind("earmark ", 0), 0U);
}

}  // namespace
}  // namespace earmark::cli
