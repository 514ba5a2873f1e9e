// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/failure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "earmark/core/file_system.hpp"
#include "earmark/ops/errors.hpp"

namespace earmark::cli {
namespace {

template <class Error>
[[nodiscard]] Failure describe(Error const& error, StopCause cause = StopCause::None) {
  return cli::describe(std::make_exception_ptr(error), cause);
}

TEST(Failure, HasAKindAndAnExitCodeForEachCause) {
  auto const expect = [](Failure const& failure, char const* kind, int code) {
    EXPECT_EQ(failure.kind, kind);
    EXPECT_EQ(static_cast<int>(failure.exit_code), code) << kind;
  };
  expect(describe(UsageError("u")), "usage", 2);
  expect(describe(OutputError("o")), "output", 2);
  expect(describe(InputError("i", "f")), "input", 3);
  expect(describe(NotEnoughMemory("m", 1, 2)), "memory", 4);
  expect(describe(std::bad_alloc{}), "memory", 4);
  expect(describe(FileSystemError("open", "p", ENOENT)), "disk", 5);
  expect(describe(JobInterrupted("s"), StopCause::Interrupt), "interrupted", 130);
  expect(describe(JobInterrupted("s"), StopCause::Terminate), "interrupted", 143);
  expect(describe(InternalError("d")), "internal", 1);
  expect(describe(std::logic_error("d")), "internal", 1);
  expect(describe(17), "internal", 1);
}

TEST(Failure, NamesFileColumnAndRowGroupOfBadInput) {
  auto const failure = describe(InputError("broken page", "a.parquet", "key", 4));
  EXPECT_EQ(failure.file, "a.parquet");
  EXPECT_EQ(failure.column, "key");
  EXPECT_EQ(failure.row_group, 4);
  EXPECT_FALSE(describe(InputError("missing", "a.parquet")).row_group.has_value());
}

TEST(Failure, TellsTheLeastMemoryInAFormThatCanBePasted) {
  auto const failure = describe(NotEnoughMemory("too little", 1 << 20, (93 << 20) - 5));
  EXPECT_EQ(failure.least_bytes, (93 << 20) - 5);
  EXPECT_EQ(failure.limit_bytes, 1 << 20);
  EXPECT_NE(failure_text(failure).find("--memory 93MiB"), std::string::npos) << failure_text(failure);
}

TEST(Failure, TellsOfThreadsThatDoNotStartAndCallsThatNoDefect) {
  auto const failure = describe(std::system_error(EAGAIN, std::generic_category()));
  EXPECT_EQ(static_cast<int>(failure.exit_code), 1);
  auto const text = failure_text(failure);
  EXPECT_NE(text.find("threads"), std::string::npos) << text;
  EXPECT_EQ(text.find("defect"), std::string::npos) << text;
  EXPECT_NE(failure_text(describe(std::system_error(EINVAL, std::generic_category()))).find("defect"),
            std::string::npos);
}

TEST(Failure, TextIsOneOrTwoWholeLines) {
  EXPECT_EQ(failure_text(describe(OutputError("not empty"))), "earmark: error: not empty\n");
  auto const text = failure_text(describe(InternalError("rows lost")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("defect"), std::string::npos);
}

TEST(PasteableSize, IsRoundedUp) {
  EXPECT_EQ(pasteable_size(1), "1MiB");
  EXPECT_EQ(pasteable_size(93 << 20), "93MiB");
  EXPECT_EQ(pasteable_size((93 << 20) + 1), "94MiB");
  EXPECT_EQ(pasteable_size(INT64_MAX), "8796093022208MiB");
}

}  // namespace
}  // namespace earmark::cli
