// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/window_planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace earmark::detail {
namespace {

constexpr std::int64_t goal = 1000;

std::vector<RowGroupRef> groups_of(std::vector<std::int64_t> const& rows) {
  std::vector<RowGroupRef> groups;
  for (std::int64_t const r : rows) { groups.push_back({0, static_cast<int>(groups.size()), r}); }
  return groups;
}

std::int64_t rows_of(std::span<RowGroupRef const> groups) {
  return std::accumulate(groups.begin(), groups.end(), std::int64_t{0},
                         [](std::int64_t sum, RowGroupRef const& g) { return sum + g.rows; });
}

// How rows spread over the files: `share(p)` of the window's rows go to file p.
using Share = std::function<double(std::int64_t)>;

// Returns: rows of each window. Checks that each row group is in exactly one, in order, and that the promised bound
// holds.
std::vector<std::int64_t> windows_of(std::vector<std::int64_t> const& row_groups, std::int64_t partitions,
                                     Share const& share) {
  auto const groups = groups_of(row_groups);
  WindowPlanner planner(groups, rows_of(groups), partitions, goal);
  std::int64_t const bound = planner.most_window_rows();
  std::vector<std::int64_t> windows;
  int next = 0;
  while (!planner.done()) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(partitions));
    std::int64_t rows = 0;
    for (auto taken = planner.begin_window(); !taken.empty(); taken = planner.extend_window(counts)) {
      for (RowGroupRef const& group : taken) { EXPECT_EQ(group.row_group, next++); }
      rows += rows_of(taken);
      for (std::int64_t p = 0; p < partitions; ++p) {
        counts[static_cast<std::size_t>(p)] = static_cast<std::int64_t>(static_cast<double>(rows) * share(p));
      }
    }
    EXPECT_EQ(planner.window_rows(), rows);
    EXPECT_LE(rows, bound);
    windows.push_back(rows);
  }
  EXPECT_EQ(next, static_cast<int>(row_groups.size()));
  return windows;
}

Share evenly(std::int64_t partitions) {
  return [partitions](std::int64_t) { return 1.0 / static_cast<double>(partitions); };
}

TEST(WindowPlanner, WindowsAreOfNearlyEqualSizeAndGiveEveryFileAFullRowGroup) {
  for (std::int64_t const partitions : {1, 2, 7, 64}) {
    for (std::size_t const count : {1U, 10U, 99U, 1000U}) {
      auto const windows = windows_of(std::vector<std::int64_t>(count, 500), partitions, evenly(partitions));
      auto const [least, most] = std::minmax_element(windows.begin(), windows.end());
      if (windows.size() > 1) { EXPECT_GE(*least, partitions * goal); }
      EXPECT_LE(*most - *least, 2 * 500) << partitions << " files, " << count << " row groups";
    }
  }
}

TEST(WindowPlanner, TooLittleForTwoWindowsIsOne) {
  EXPECT_EQ(windows_of({1000, 1000, 199}, 1, evenly(1)), std::vector<std::int64_t>{2199});
  EXPECT_EQ(windows_of({1100, 1100}, 1, evenly(1)).size(), 2U);
}

TEST(WindowPlanner, NoRowGroupIsNoWindow) { EXPECT_TRUE(windows_of({}, 3, evenly(3)).empty()); }

TEST(WindowPlanner, RowGroupsWithoutRowsBelongToSomeWindow) {
  EXPECT_EQ(windows_of({0, 0}, 3, evenly(3)), std::vector<std::int64_t>{0});
  EXPECT_EQ(windows_of({0, 5000, 0, 0, 5000, 0}, 1, evenly(1)), (std::vector<std::int64_t>{5000, 5000}));
}

TEST(WindowPlanner, AHugeRowGroupIsAWindowOfItsOwn) {
  auto const windows = windows_of({1'000'000, 500, 500, 500}, 2, evenly(2));
  EXPECT_EQ(windows.front(), 1'000'000);
  EXPECT_EQ(std::accumulate(windows.begin(), windows.end(), std::int64_t{0}), 1'001'500);
}

TEST(WindowPlanner, ASkewedFileMakesTheWindowLonger) {
  // File 0 gets a fifth of an even share and still a full row group.
  std::int64_t const partitions = 4;
  auto const share = [](std::int64_t p) { return p == 0 ? 0.1 : 0.3; };
  auto const windows = windows_of(std::vector<std::int64_t>(1000, 100), partitions, share);
  ASSERT_GT(windows.size(), 2U);
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) {
    EXPECT_GE(static_cast<double>(windows[i]) * share(0), goal - 1);
  }
}

TEST(WindowPlanner, AWindowIsNotExtendedBeyondFourTimesFullRowGroups) {
  std::int64_t const partitions = 4;
  auto const windows = windows_of(std::vector<std::int64_t>(1000, 100), partitions,
                                  [](std::int64_t p) { return p == 0 ? 0.001 : 0.333; });
  for (std::int64_t const rows : windows) {
    EXPECT_LE(rows, 4 * partitions * goal + partitions * goal * 11 / 100 + 100);
  }
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) { EXPECT_GE(windows[i], 4 * partitions * goal); }
}

TEST(WindowPlanner, AFileWithoutRowsDoesNotMakeTheWindowLonger) {
  auto const windows =
      windows_of(std::vector<std::int64_t>(1000, 100), 4, [](std::int64_t p) { return p == 0 ? 1.0 : 0.0; });
  for (std::int64_t const rows : windows) { EXPECT_LT(rows, 2 * 4 * goal * 11 / 10); }
}

TEST(WindowPlanner, TakesNumbersThatOverflowForVeryMany) {
  auto const groups = groups_of({100, 100});
  WindowPlanner planner(groups, 200, INT64_MAX / 2, 122'880);
  EXPECT_EQ(rows_of(planner.begin_window()), 200);
  EXPECT_TRUE(planner.done());
  EXPECT_EQ(planner.most_window_rows(), 0);
}

}  // namespace
}  // namespace earmark::detail
