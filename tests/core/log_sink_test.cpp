// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/log_sink.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace earmark {
namespace {

template <class Act>
std::string standard_error_of(Act const& act) {
  testing::internal::CaptureStderr();
  act();
  return testing::internal::GetCapturedStderr();
}

TEST(LogSink, TakesItsLevelAndWhatIsAbove) {
  StandardErrorLog const log{LogLevel::Warning};
  EXPECT_FALSE(log.takes(LogLevel::Debug));
  EXPECT_FALSE(log.takes(LogLevel::Info));
  EXPECT_TRUE(log.takes(LogLevel::Warning));
  EXPECT_TRUE(log.takes(LogLevel::Error));
}

TEST(LogSink, TakesNothingWhenItIsOff) {
  StandardErrorLog const log{LogLevel::Off};
  for (auto const level : {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error, LogLevel::Off}) {
    EXPECT_FALSE(log.takes(level)) << to_string(level);
  }
}

TEST(LogSink, NeverCallsItsImplementationForALineThatItDoesNotTake) {
  class Counting final : public LogSink {
   public:
    Counting() : LogSink(LogLevel::Error) {}
    int lines{0};

   private:
    void do_write(LogLevel, std::string_view) noexcept override { ++lines; }
  } log;
  log.write(LogLevel::Warning, "too low");
  EXPECT_EQ(log.lines, 0);
  log.write(LogLevel::Error, "enough");
  EXPECT_EQ(log.lines, 1);
}

TEST(LogSink, IsWrittenToWithoutThrowing) {
  static_assert(noexcept(std::declval<LogSink&>().write(LogLevel::Error, "")));
}

TEST(StandardErrorLog, SaysWhoSpeaksAndHowLoud) {
  EXPECT_EQ(standard_error_of([] {
              StandardErrorLog log;
              log.write(LogLevel::Info, "not said");
              log.write(LogLevel::Warning, "one");
              log.write(LogLevel::Error, "two\n  lines");
              log.write(LogLevel::Error, "");
            }),
            "earmark: warning: one\nearmark: error: two\n  lines\nearmark: error: \n");
}

TEST(StandardErrorLog, KeepsErrno) {
  static_cast<void>(standard_error_of([] {
    errno = ENOSPC;
    StandardErrorLog{}.write(LogLevel::Error, "text");
    EXPECT_EQ(errno, ENOSPC);
  }));
}

TEST(StandardErrorLog, LosesALineRatherThanFail) {
  int const before = ::dup(STDERR_FILENO);
  int const read_only = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(read_only, STDERR_FILENO);
  errno = 0;
  StandardErrorLog{}.write(LogLevel::Error, "text");
  EXPECT_EQ(errno, 0);
  ::dup2(before, STDERR_FILENO);
  ::close(read_only);
  ::close(before);
}

TEST(StandardErrorLog, WritesAllOfAMessageThatAPipeTakesInParts) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::string got;
  std::thread reader{[&] {
    char buffer[1000];
    for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) { got.append(buffer, std::size_t(n)); }
  }};
  std::string const text(1 << 20, 'x');
  int const before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  StandardErrorLog{}.write(LogLevel::Error, text);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  EXPECT_EQ(got, "earmark: error: " + text + "\n");
}

TEST(StandardErrorLog, DoesNotMixLinesOfSeveralThreads) {
  auto const text = standard_error_of([] {
    StandardErrorLog log;
    std::vector<std::thread> threads;
    for (char name : {'a', 'b', 'c', 'd'}) {
      threads.emplace_back([&log, name] {
        for (int i = 0; i < 200; ++i) { log.write(LogLevel::Warning, std::string(60, name)); }
      });
    }
    for (auto& thread : threads) { thread.join(); }
  });
  std::istringstream lines{text};
  std::string const prefix = "earmark: warning: ";
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_EQ(line.size(), prefix.size() + 60) << line;
    ASSERT_EQ(std::count(line.begin() + std::ptrdiff_t(prefix.size()), line.end(), line.back()), 60) << line;
  }
  EXPECT_EQ(count, 800);
}

}  // namespace
}  // namespace earmark
