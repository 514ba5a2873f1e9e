// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/info.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/temporary_folder.hpp"

namespace earmark::cli {
namespace {

TEST(InfoText, IsAlignedAndNamesSources) {
  Info const info{{"memory", {{"machine_available", Bytes{3 << 20}, "/proc/meminfo"}, {"cgroup", "none"}}},
                  {"machine", {{"cores", std::int64_t{4}}, {"fast", true}, {"EARMARK_ODD", "x"}}}};
  EXPECT_EQ(info_text(info),
            "memory\n"
            "  machine available       3 MiB  (/proc/meminfo)\n"
            "  cgroup                  none\n"
            "machine\n"
            "  cores                   4\n"
            "  fast                    yes\n"
            "  EARMARK_ODD             x\n");
}

TEST(InfoJson, IsAnObjectPerSectionInOneLine) {
  Info const info{{"memory", {{"machine", Bytes{3}, "there"}, {"cgroup", "none"}}}, {"kernel", {{"ok", false}}}};
  EXPECT_EQ(info_json(info),
            "{\"memory\":{\"machine_bytes\":{\"value\":3,\"source\":\"there\"},\"cgroup\":\"none\"},"
            "\"kernel\":{\"ok\":false}}\n");
}

TEST(Info, LeavesNothingInTheFolderThatItTries) {
  TemporaryFolder const folder;
  auto const info =
      gather_info({.settings = {}, .memory = {}, .folder = folder / "not/there/yet", .unknown_variables = {}});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_NE(info_text(info).find(folder.path()), std::string::npos) << "the nearest folder that exists is looked at";
}

}  // namespace
}  // namespace earmark::cli
