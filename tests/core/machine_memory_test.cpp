// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/machine_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "earmark/core/bytes.hpp"
#include "earmark/core/file_system.hpp"
#include "temporary_folder.hpp"

namespace earmark {
namespace {

constexpr auto unlimited_v1 = "9223372036854771712\n";

std::int64_t gib(std::int64_t count) { return count << 30; }
std::string gib_text(std::int64_t count) { return std::to_string(gib(count)) + "\n"; }

// A machine of 16 GiB, 10 of them available, whose files the test writes.
class MachineMemoryTest : public ::testing::Test {
 protected:
  MachineMemoryTest() {
    put("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:   10485760 kB\n");
  }

  void put(std::string const& path, std::string const& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path() + path).parent_path());
    write_text(folder_.path() + path, text);
  }
  void mount_v2(std::string const& root = "/", std::string const& place = "/sys/fs/cgroup") {
    put("/proc/self/mountinfo", "22 1 0:5 / /proc rw - proc proc rw\n25 23 0:22 " + root + " " + place +
                                    " rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void mount_v1(std::string const& root = "/") {
    put("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "35 31 0:32 " +
            root +
            " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  }
  void put_cgroup(std::string const& text) { put("/proc/self/cgroup", text); }
  MachineMemory read() { return read_machine_memory(folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(MachineMemoryTest, WithoutCgroupsIsTheMachines) {
  auto const memory = read();
  EXPECT_EQ(memory.limit_bytes(), gib(16));
  EXPECT_EQ(memory.available_bytes(), gib(10));
  EXPECT_EQ(memory.cgroup_folder, "");
  EXPECT_EQ(memory.tightest_cgroup(), nullptr);
}

TEST_F(MachineMemoryTest, OfOldKernelsIsWhatIsFree) {
  put("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1048576 kB\n");
  EXPECT_EQ(read().available_bytes(), gib(1));
}

TEST_F(MachineMemoryTest, ThatIsNotToldIsAnErrorWithThePath) {
  put("/proc/meminfo", "nothing of use\n");
  EXPECT_THROW((void)read(), FileSystemError);
  std::filesystem::remove_all(folder_ / "proc");
  try {
    (void)read();
    FAIL();
  }
  catch (FileSystemError const& error) {
    EXPECT_EQ(error.path(), folder_ / "proc/meminfo");
    EXPECT_EQ(error.error_number(), ENOENT);
  }
}

TEST_F(MachineMemoryTest, OfVersion2IsReadFromTheProcesssOwnGroup) {
  mount_v2();
  put_cgroup("0::/jobs/mine\n");
  put("/sys/fs/cgroup/jobs/mine/memory.max", gib_text(4));
  put("/sys/fs/cgroup/jobs/mine/memory.current", gib_text(3));
  put("/sys/fs/cgroup/jobs/mine/memory.stat", "anon 5\ninactive_file 1073741824\nactive_file 536870912\n");
  auto const memory = read();
  EXPECT_EQ(memory.cgroup_folder, "/sys/fs/cgroup/jobs/mine");
  EXPECT_EQ(memory.limit_bytes(), gib(4));
  EXPECT_EQ(memory.available_bytes(), gib(2) + gib(1) / 2);  // the cache of files gives way
  ASSERT_NE(memory.tightest_cgroup(), nullptr);
  EXPECT_EQ(memory.tightest_cgroup()->limit_path, "/sys/fs/cgroup/jobs/mine/memory.max");
}

TEST_F(MachineMemoryTest, OfVersion2CountsTheLimitsOfAllAncestors) {
  mount_v2();
  put_cgroup("0::/a/b/c\n");
  put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
  put("/sys/fs/cgroup/a/b/memory.max", gib_text(8));
  put("/sys/fs/cgroup/a/b/memory.current", gib_text(7));
  put("/sys/fs/cgroup/a/memory.max", gib_text(6));
  put("/sys/fs/cgroup/a/memory.current", gib_text(2));
  auto const memory = read();
  EXPECT_EQ(memory.limit_bytes(), gib(6));
  EXPECT_EQ(memory.available_bytes(), gib(1)) << "another ancestor is the fuller one";
  EXPECT_EQ(memory.cgroups.size(), 2U);
}

TEST_F(MachineMemoryTest, OfVersion2CountsWhereTheKernelThrottles) {
  mount_v2();
  put_cgroup("0::/mine\n");
  put("/sys/fs/cgroup/mine/memory.max", gib_text(8));
  put("/sys/fs/cgroup/mine/memory.high", gib_text(5));
  EXPECT_EQ(read().limit_bytes(), gib(5));
  EXPECT_EQ(read().tightest_cgroup()->limit_path, "/sys/fs/cgroup/mine/memory.high");
}

TEST_F(MachineMemoryTest, OfVersion2InAContainerIsAtTheMountPoint) {
  put("/sys/fs/cgroup/memory.max", gib_text(2));
  mount_v2();
  put_cgroup("0::/\n");  // with a name space of its own
  EXPECT_EQ(read().limit_bytes(), gib(2));
  put_cgroup("0::/../other\n");  // moved out of it
  EXPECT_EQ(read().limit_bytes(), gib(2));
  mount_v2("/docker/7f");
  put_cgroup("0::/docker/7f\n");  // without one
  EXPECT_EQ(read().limit_bytes(), gib(2));
  put_cgroup("0::/docker/7fff\n");  // not inside, although it begins alike
  EXPECT_EQ(read().limit_bytes(), gib(2));
}

TEST_F(MachineMemoryTest, OfVersion2MayBeMountedAtAPlaceWithSpaces) {
  mount_v2("/", "/my\\040groups");
  put_cgroup("0::/mine\n");
  put("/my groups/mine/memory.max", gib_text(3));
  EXPECT_EQ(read().limit_bytes(), gib(3));
}

TEST_F(MachineMemoryTest, OfVersion1IsFoundBesideAVersion2WithoutMemory) {
  mount_v1();
  put_cgroup("9:name=systemd:/\n5:cpu,memory:/box\n0::/elsewhere\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited_v1);
  put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", gib_text(4));
  put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", gib_text(2));
  put("/sys/fs/cgroup/memory/box/memory.stat", "cache 9\ninactive_file 5\ntotal_inactive_file 1073741824\n");
  auto const memory = read();
  EXPECT_EQ(memory.cgroup_folder, "/sys/fs/cgroup/memory/box");
  EXPECT_EQ(memory.limit_bytes(), gib(4));
  EXPECT_EQ(memory.available_bytes(), gib(3));
  EXPECT_EQ(memory.cgroups.size(), 1U);
}

TEST_F(MachineMemoryTest, OfVersion1TellsTheLimitOfAncestorsThatCannotBeSeen) {
  mount_v1("/docker/7f");
  put_cgroup("5:memory:/docker/7f\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited_v1);
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", gib_text(1));
  put("/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 3221225472\n");
  EXPECT_EQ(read().limit_bytes(), gib(3));
  EXPECT_EQ(read().available_bytes(), gib(2));
}

TEST_F(MachineMemoryTest, LimitsAboveTheMachineChangeNothing) {
  mount_v2();
  put_cgroup("0::/mine\n");
  put("/sys/fs/cgroup/mine/memory.max", gib_text(64));
  EXPECT_EQ(read().limit_bytes(), gib(16));
  EXPECT_EQ(read().tightest_cgroup(), nullptr);
}

TEST_F(MachineMemoryTest, AGroupAboveItsLimitLeavesNothing) {
  mount_v2();
  put_cgroup("0::/mine\n");
  put("/sys/fs/cgroup/mine/memory.max", gib_text(1));
  put("/sys/fs/cgroup/mine/memory.current", gib_text(2));
  EXPECT_EQ(read().available_bytes(), 0);
}

TEST_F(MachineMemoryTest, OddTextAboutCgroupsIsNoLimit) {
  for (auto const* const text : {"", "max", "-1", "12 MiB of", "99999999999999999999", "\n\n"}) {
    mount_v2();
    put_cgroup("0::/mine\n");
    put("/sys/fs/cgroup/mine/memory.max", text);
    EXPECT_LE(read().cgroups.size(), std::string(text).starts_with("12") ? 1U : 0U) << text;
  }
  for (auto const* const text : {"", "\n", "0:\n", "0::", "::::", "0"}) {
    put_cgroup(text);
    EXPECT_EQ(read().limit_bytes(), gib(16)) << text;
  }
  for (auto const* const text : {"", "-", " - ", "1 2 3 - cgroup2", "1 2 3 / /x rw - cgroup x rw\n - - -\n"}) {
    put("/proc/self/mountinfo", text);
    EXPECT_EQ(read().limit_bytes(), gib(16)) << text;
  }
}

TEST(ThisMachinesMemory, IsThereAndMakesSense) {
  auto const memory = read_machine_memory();
  EXPECT_GT(memory.limit_bytes(), std::int64_t{64_MiB});
  EXPECT_GT(memory.available_bytes(), 0);
  EXPECT_LE(memory.available_bytes(), memory.machine_bytes);
}

}  // namespace
}  // namespace earmark
