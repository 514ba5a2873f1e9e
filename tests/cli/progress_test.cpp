// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <gtest/gtest.h>

#include <string>

namespace earmark::cli {
namespace {

[[nodiscard]] RepartitionProgress half_way() {
  RepartitionProgress progress;
  progress.fraction = 0.5;
  progress.rows = 15'000'000;
  progress.total_rows = 30'000'000;
  progress.bytes_read = 500'000'000;
  progress.resident_bytes = 131 << 20;
  return progress;
}

TEST(ProgressLine, ShowsBarRateMemoryRowsAndTimeLeft) {
  EXPECT_EQ(progress_line(half_way(), 4, 240 << 20, {.width = 120}),
            "[###############...............]  50 %  ETA 4 s  125 MB/s  131 MiB of 240 MiB  15.0 M of 30.0 M rows");
}

TEST(ProgressLine, FitsAnyWidth) {
  for (std::size_t width = 1; width < 150; ++width) {
    auto const line = progress_line(half_way(), 4, 240 << 20, {.width = width});
    EXPECT_LE(line.size(), width) << line;
  }
  EXPECT_EQ(progress_line(half_way(), 4, 240 << 20, {.width = 8}), " 50 %");
}

TEST(ProgressLine, HasPlainTextUnlessAskedOtherwise) {
  for (char const character : progress_line(half_way(), 4, 240 << 20, {})) {
    EXPECT_TRUE(character >= ' ' && character <= '~');
  }
}

TEST(ProgressLine, DrawsEighthsInUnicode) {
  auto progress = half_way();
  progress.fraction = 1.0 / 60;
  auto const line = progress_line(progress, 4, 240 << 20, {.width = 120, .charset = Charset::Unicode});
  EXPECT_EQ(line.rfind("[▌ ", 0), 0U) << line;
}

TEST(ProgressLine, TakesColoursWithoutTakingColumns) {
  auto progress = half_way();
  progress.resident_bytes = 239 << 20;
  auto const plain = progress_line(progress, 4, 240 << 20, {.width = 100});
  auto const colourful = progress_line(progress, 4, 240 << 20, {.width = 100, .colour = Colour::Yes});
  EXPECT_EQ(colourful.size(), plain.size() + 2 * std::string{"\x1b[32m\x1b[0m"}.size());
}

TEST(ProgressLine, EndsFullAndSurvivesOddNumbers) {
  auto progress = half_way();
  progress.fraction = 1.5;
  EXPECT_NE(progress_line(progress, 0, 0, {.width = 120}).find("100 %"), std::string::npos);
  progress = {};
  EXPECT_NE(progress_line(progress, 0, 0, {.width = 120}).find("ETA -"), std::string::npos);
}

TEST(Duration, IsShort) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(59.2), "1 min 00 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
}

}  // namespace
}  // namespace earmark::cli
