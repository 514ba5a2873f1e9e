// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/summary.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace earmark::cli {
namespace {

[[nodiscard]] RepartitionResult a_result() {
  RepartitionResult result;
  result.rows = 30'000'000;
  result.files = 64;
  result.bytes_in = 1000;
  result.bytes_out = 900;
  result.seconds = 2;
  result.limit_bytes = 200 << 20;
  result.baseline_bytes = 20 << 20;
  result.peak_resident_bytes = 100 << 20;
  result.peak_committed_bytes = 70 << 20;
  result.waits = 3;
  result.wait_seconds = 0.25;
  return result;
}

TEST(Summary, JsonHasTheDocumentedKeysInOneLine) {
  EXPECT_EQ(summary_json(a_result()),
            "{\"rows\":30000000,\"files\":64,\"bytes_in\":1000,\"bytes_out\":900,\"seconds\":2.0,"
            "\"limit_bytes\":209715200,\"baseline_bytes\":20971520,\"peak_resident_bytes\":104857600,"
            "\"tiers\":{\"host\":{\"peak_bytes\":73400320}},\"spilled_bytes\":0,\"waits\":3,\"wait_seconds\":0.25,"
            "\"verified\":false}\n");
}

TEST(Summary, TextSaysWhatWasDoneAndWhatItTook) {
  auto const text = summary_text(a_result(), "out");
  for (auto const* const part :
       {"Wrote 64 files to out\n", "30,000,000", "(90 % of the input)", "2.00 s", "15.00 million rows/s",
        "100 MiB  (50 % of the limit)", "70 MiB", "3, 0.25 s in all"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Summary, OfNoRowsInNoTimeIsNoDivisionByZero) {
  auto const text = summary_text(RepartitionResult{}, "out");
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
  EXPECT_EQ(text.find("inf"), std::string::npos) << text;
}

TEST(FailureJson, LeavesOutWhatDoesNotApply) {
  Failure failure{.kind = "usage", .message = "no"};
  EXPECT_EQ(failure_json(failure), "{\"error\":{\"kind\":\"usage\",\"message\":\"no\"}}\n");
}

TEST(FailureJson, HasWhatApplies) {
  Failure failure{.kind = "input",
                  .message = "broken \"page\"",
                  .file = "f",
                  .column = "c",
                  .row_group = 0,
                  .limit_bytes = 5,
                  .least_bytes = 7};
  EXPECT_EQ(failure_json(failure),
            "{\"error\":{\"kind\":\"input\",\"message\":\"broken \\\"page\\\"\",\"file\":\"f\",\"column\":\"c\","
            "\"row_group\":0,\"limit_bytes\":5,\"least_bytes\":7}}\n");
}

TEST(FailureJson, SurvivesNamesThatAreNoUtf8) {
  Failure failure{.kind = "input", .message = "no", .file = "\xff.parquet"};
  EXPECT_NE(failure_json(failure).find("\xef\xbf\xbd.parquet"), std::string::npos);
}

TEST(Separators, StandBetweenThousands) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(1000), "1,000");
  EXPECT_EQ(with_separators(-100000), "-100,000");
  EXPECT_EQ(with_separators(INT64_MAX), "9,223,372,036,854,775,807");
}

}  // namespace
}  // namespace earmark::cli
