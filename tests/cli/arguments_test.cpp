// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"

#include <gtest/gtest.h>

#include <string>
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
  EXPECT_EQ(run.options.memory_bytes, 512 << 20);
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
}

TEST(Arguments, TakeInputsOnEitherSideOfOptionsAndAfterTwoDashes) {
  EXPECT_EQ(run_of(with({"b", "--overwrite", "c", "--", "--odd"})).options.inputs,
            (std::vector<std::string>{"in", "b", "c", "./--odd"}));
}

TEST(Arguments, TakeColumnsWithCommasAndSeveralLists) {
  EXPECT_EQ(run_of(with({"--by", R"("x,y",z)"})).options.by, (std::vector<std::string>{"a", "x,y", "z"}));
}

TEST(Arguments, WantJsonEvenWhenTheRestMakesNoSense) {
  EXPECT_EQ(parse(with({"--json"})).report, ReportStyle::Json);
  EXPECT_EQ(parse({"repartition", "--json", "--nonsense"}).report, ReportStyle::Json);
  EXPECT_EQ(parse(with({"--", "--json"})).report, ReportStyle::Text);
}

TEST(Arguments, RefuseWhatIsMissing) {
  EXPECT_NE(refusal_of({"repartition", "--by", "a", "--partitions", "8", "--output", "o", "--memory", "1g"}), "");
  EXPECT_NE(refusal_of({"repartition", "in", "--partitions", "8", "--output", "o", "--memory", "1g"}), "");
  EXPECT_NE(refusal_of({"repartition", "in", "--by", "a", "--output", "o", "--memory", "1g"}), "");
  EXPECT_NE(refusal_of({"repartition", "in", "--by", "a", "--partitions", "8", "--memory", "1g"}), "");
  EXPECT_NE(refusal_of({"repartition", "in", "--by", "a", "--partitions", "8", "--output", "o"}), "");
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
       {"--by", "--partitions", "--output", "--memory", "--threads", "--compression", "--row-group-bytes",
        "--overwrite", "--progress", "--json", "Examples:", "Exit codes"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(text.find("no-admission-check"), std::string::npos);
  EXPECT_EQ(std::get<PrintText>(parse({"--version"}).command).text.rfind("earmark ", 0), 0U);
}

}  // namespace
}  // namespace earmark::cli
