// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "earmark/core/file_system.hpp"

namespace earmark {
namespace {

TEST(FixedText, KeepsTextUpToItsCapacityAndCutsTheRest) {
  FixedText<4> text("abcd");
  EXPECT_EQ(text.view(), "abcd");
  text.assign("abcdef");
  EXPECT_EQ(text.view(), "abcd");
  EXPECT_STREQ(text.c_str(), "abcd");
  text.assign("x");
  EXPECT_STREQ(text.c_str(), "x");
  EXPECT_FALSE(text.empty());
  EXPECT_TRUE(FixedText<4>().empty());
}

TEST(FileSystemError, SaysOperationPathAndCause) {
  FileSystemError const error("write 65536 bytes to", "out/part-00001.parquet", ENOSPC, 65536);
  EXPECT_STREQ(error.what(), "cannot write 65536 bytes to 'out/part-00001.parquet': No space left on device");
  EXPECT_EQ(error.path(), "out/part-00001.parquet");
  EXPECT_EQ(error.error_number(), ENOSPC);
  EXPECT_EQ(error.bytes(), 65536);
}

TEST(FileSystemError, IsAnEarmarkErrorWithFields) {
  try {
    throw FileSystemError("open", "x", ENOENT);
  }
  catch (EarmarkError const& error) {
    EXPECT_EQ(error.fields().tier.view(), "disk");
    EXPECT_EQ(error.fields().requested, 0);
  }
}

TEST(FileSystemError, IsCaughtAsStandardException) {
  EXPECT_THROW(throw FileSystemError("open", "x", ENOENT), std::exception);
}

}  // namespace
}  // namespace earmark
