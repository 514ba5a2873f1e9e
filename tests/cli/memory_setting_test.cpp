// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/memory_setting.hpp"

#include <gtest/gtest.h>

#include <string>

#include "earmark/ops/errors.hpp"

namespace earmark::cli {
namespace {

constexpr std::int64_t GiB = 1 << 30;

[[nodiscard]] MachineMemory machine() {
  MachineMemory memory;
  memory.machine_bytes = 16 * GiB;
  memory.machine_available_bytes = 10 * GiB;
  return memory;
}

[[nodiscard]] MachineMemory machine_with_cgroup() {
  auto memory = machine();
  memory.cgroups.push_back({"/groups/mine/memory.max", 4 * GiB, 3 * GiB});
  return memory;
}

TEST(MemorySettingOption, IsASizeAPercentageOrAutomatic) {
  EXPECT_EQ(parse_memory("--memory", "512MiB").bytes, 512 << 20);
  EXPECT_EQ(parse_memory("--memory", "50%").percent, 50);
  EXPECT_EQ(parse_memory("--memory", "12.5%").percent, 12.5);
  EXPECT_EQ(parse_memory("--memory", "100%").percent, 100);
  EXPECT_EQ(parse_memory("--memory", "auto").kind, MemorySetting::Kind::Auto);
}

TEST(MemorySettingOption, RefusesAllElseByName) {
  for (auto const* const text : {"", "0", "-1", "0%", "-5%", "101%", "%", "5 %", "nan%", "inf%", "1e1%", "+5%", "Auto",
                                 "automatic", "half", "99999999999TiB", "5%5"}) {
    try {
      (void)parse_memory("EARMARK_MEMORY", text);
      ADD_FAILURE() << text;
    }
    catch (UsageError const& error) {
      EXPECT_EQ(std::string{error.what()}.rfind("EARMARK_MEMORY " + std::string{text} + ":", 0), 0U) << error.what();
    }
  }
}

TEST(MemoryLimit, OfASizeIsTheSize) {
  EXPECT_EQ(memory_limit(parse_memory("--memory", "3g"), machine_with_cgroup()), 3 * GiB);
  EXPECT_EQ(memory_limit(parse_memory("--memory", "3g"), MachineMemory{}), 3 * GiB);
}

TEST(MemoryLimit, OfAPercentageIsAShareOfTheSmallerOfMachineAndCgroup) {
  EXPECT_EQ(memory_limit(parse_memory("--memory", "25%"), machine()), 4 * GiB);
  EXPECT_EQ(memory_limit(parse_memory("--memory", "25%"), machine_with_cgroup()), GiB);
  EXPECT_EQ(memory_origin(parse_memory("--memory", "25%"), machine()), "25 % of the machine's memory");
  EXPECT_EQ(memory_origin(parse_memory("--memory", "12.5%"), machine_with_cgroup()),
            "12.5 % of the limit in /groups/mine/memory.max");
}

TEST(MemoryLimit, IsFourFifthsOfWhatIsLeftUnlessSaidOtherwise) {
  EXPECT_EQ(memory_limit({}, machine()), 8 * GiB);
  EXPECT_EQ(memory_limit({}, machine_with_cgroup()), GiB * 4 / 5);
  EXPECT_EQ(memory_origin({}, machine()), "80 % of what the machine left");
  EXPECT_EQ(memory_origin({}, machine_with_cgroup()), "80 % of what the cgroup left");
}

TEST(MemoryLimit, IsNeverNothing) {
  EXPECT_EQ(memory_limit({}, MachineMemory{}), 1);
  EXPECT_EQ(memory_limit(parse_memory("--memory", "0.0001%"), MachineMemory{}), 1);
}

}  // namespace
}  // namespace earmark::cli
