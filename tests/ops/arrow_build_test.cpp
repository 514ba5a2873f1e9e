// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/ops/arrow_build.hpp"

#include <arrow/config.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace earmark {
namespace {

TEST(ArrowBuild, TellsItsVersion) { EXPECT_EQ(arrow_version(), arrow::GetBuildInfo().version_string); }

TEST(ArrowBuild, HasTheCodecsThatFilesUse) {
  auto const codecs = available_codecs();
  for (auto const codec : {Compression::Codec::Snappy, Compression::Codec::Zstd, Compression::Codec::Gzip}) {
    EXPECT_NE(std::find(codecs.begin(), codecs.end(), codec), codecs.end());
  }
}

}  // namespace
}  // namespace earmark
