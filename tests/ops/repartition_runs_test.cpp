// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How jobs run: on any executor, several at once, stopped anywhere, watched, with too little memory.
#include <arrow/api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "arrow_types.hpp"
#include "core/temporary_folder.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/resident_memory.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/ops/errors.hpp"
#include "earmark/testing/manual_clock.hpp"
#include "earmark/testing/manual_executor.hpp"
#include "output_checks.hpp"
#include "parquet_files.hpp"
#include "random_arrays.hpp"

namespace earmark {
namespace {

using arrow::field;

// A clock that moves at every look, so that every report is due.
class TickingClock final : public Clock {
 public:
  [[nodiscard]] time_point now() const noexcept override {
    clock_.advance(std::chrono::milliseconds(60));
    return clock_.now();
  }
  void wait_until(ConditionVariable& condition, Mutex& mutex, time_point when) const override EARMARK_REQUIRES(mutex) {
    clock_.wait_until(condition, mutex, when);
  }

 private:
  mutable testing::ManualClock clock_;
};

class RepartitionRuns : public ::testing::Test {
 protected:
  RepartitionRuns() {
    RandomArrays random(41);
    auto const schema =
        schema_with_key({field("s", arrow::utf8()), field("l", arrow::list(field("element", arrow::int32())))});
    write_parquet(*random.table(schema, 3000), folder_ / "in.parquet", {.row_group_rows = 250});
    options_ = plenty_of_memory({folder_ / "in.parquet"}, {"key"}, 5, folder_ / "out");
  }
  void expect_untouched() {
    std::vector<std::string> names;
    for (auto const& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    EXPECT_EQ(names, std::vector<std::string>{"in.parquet"});
  }

  TemporaryFolder folder_;
  RepartitionOptions options_;
  PosixFileSystem disk_;
  TickingClock clock_;
};

TEST_F(RepartitionRuns, EndEvenWhenTheExecutorRunsNothing) {
  testing::ManualClock time;
  testing::ManualExecutor executor(time, 4);
  options_.threads = 4;
  repartition(options_, {executor, clock_, disk_});
  expect_partitioned(options_.inputs, options_.by, 5, options_.output);
}

TEST_F(RepartitionRuns, ThatComeLateFindNothingToDo) {
  testing::ManualClock time;
  testing::ManualExecutor executor(time, 4);
  repartition(options_, {executor, clock_, disk_});
  EXPECT_GT(executor.run_ready(), 0U);
  expect_partitioned(options_.inputs, options_.by, 5, options_.output);
}

TEST_F(RepartitionRuns, ReportProgressThatOnlyGrows) {
  options_.threads = 1;  // the caller reports between its own pieces of work: give it all of them
  ThreadPool pool(3);
  std::vector<RepartitionProgress> reports;
  options_.progress = [&](RepartitionProgress const& progress) { reports.push_back(progress); };
  auto const result = repartition(options_, {pool, clock_, disk_});
  ASSERT_GT(reports.size(), 5U);
  for (std::size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GE(reports[i].fraction, reports[i - 1].fraction);
    EXPECT_GE(reports[i].rows, reports[i - 1].rows);
    EXPECT_GE(reports[i].bytes_read, reports[i - 1].bytes_read);
    EXPECT_GE(reports[i].bytes_written, reports[i - 1].bytes_written);
    EXPECT_LE(reports[i].fraction, 1);
    EXPECT_EQ(reports[i].total_rows, 3000);
  }
  EXPECT_EQ(reports.back().fraction, 1);
  EXPECT_EQ(reports.back().rows, 3000);
  EXPECT_EQ(reports.back().bytes_written, result.bytes_out);
}

TEST_F(RepartitionRuns, StopWhereverTheyAreAskedTo) {
  for (int after = 0;; ++after) {
    std::stop_source stop;
    int reports = 0;
    options_.stop = stop.get_token();
    options_.progress = [&](RepartitionProgress const& progress) {
      if (reports++ == after && progress.fraction < 1) { stop.request_stop(); }
    };
    ThreadPool pool(2);
    if (after == 0) { stop.request_stop(); }
    try {
      repartition(options_, {pool, clock_, disk_});
      EXPECT_FALSE(stop.stop_requested()) << after;
      break;
    }
    catch (JobInterrupted const&) {
    }
    expect_untouched();
    if (HasFailure()) { return; }
  }
  expect_partitioned(options_.inputs, options_.by, 5, options_.output);
}

TEST_F(RepartitionRuns, WithoutRowsStopToo) {
  RandomArrays random(42);
  write_row_groups(*random.table(schema_with_key({}), 0), folder_ / "in.parquet", {});
  std::stop_source stop;
  stop.request_stop();
  options_.stop = stop.get_token();
  ThreadPool pool(1);
  EXPECT_THROW(repartition(options_, {pool, clock_, disk_}), JobInterrupted);
  expect_untouched();
}

TEST_F(RepartitionRuns, LetThroughWhatTheProgressCallbackThrows) {
  options_.progress = [](RepartitionProgress const&) { throw std::domain_error("not today"); };
  ThreadPool pool(3);
  EXPECT_THROW(repartition(options_, {pool, clock_, disk_}), std::domain_error);
  expect_untouched();
}

TEST_F(RepartitionRuns, MayGoOnAtOnce) {
  ThreadPool pool(2);
  auto second = options_;
  second.output = folder_ / "out2";
  second.partitions = 9;
  {
    std::jthread const other([&] { repartition(second, {pool, clock_, disk_}); });
    repartition(options_, {pool, clock_, disk_});
  }
  expect_partitioned(options_.inputs, options_.by, 5, options_.output);
  expect_partitioned(second.inputs, second.by, 9, second.output);
}

TEST_F(RepartitionRuns, ForTheSameTargetPublishOneResult) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  std::atomic<int> refused{0};
  auto const job = [&] {
    try {
      repartition(options_, {pool, clock_, disk_});
      ++done;
    }
    catch (OutputError const&) {
      ++refused;
    }
  };
  {
    std::jthread const other(job);
    job();
  }
  EXPECT_EQ(done, 1);
  EXPECT_EQ(refused, 1);
  expect_partitioned(options_.inputs, options_.by, 5, options_.output);
}

// ----------------------------------------------------------------------------------------------------------- Memory

TEST_F(RepartitionRuns, EitherEndWellOrSayThatMemoryIsTooLittle) {
  // Every allocation is refused at one limit or another.
  ThreadPool pool(2);
  int refused = 0;
  ProcResidentMemory memory;
  for (std::int64_t extra = 0;; extra += extra < (4 << 20) ? 16 << 10 : 512 << 10) {
    options_.memory_bytes = memory.current_bytes() + extra;
    try {
      repartition(options_, {pool, clock_, disk_});
      break;
    }
    catch (NotEnoughMemory const& error) {
      EXPECT_GT(error.least_bytes(), options_.memory_bytes);
      ++refused;
    }
    expect_untouched();
    ASSERT_LT(extra, 1 << 30);
    if (HasFailure()) { return; }
  }
  EXPECT_GT(refused, 10);
  expect_partitioned(options_.inputs, options_.by, 5, options_.output);
}

TEST_F(RepartitionRuns, SayTheLeastLimitThatWillDoAndItDoes) {
  ThreadPool pool(2);
  options_.admission_check = AdmissionCheck::Yes;
  options_.memory_bytes = 1 << 20;
  try {
    repartition(options_, {pool, clock_, disk_});
    FAIL();
  }
  catch (NotEnoughMemory const& error) {
    EXPECT_EQ(error.fields().limit, 1 << 20);
    options_.memory_bytes = error.least_bytes();
  }
  expect_untouched();
  repartition(options_, {pool, clock_, disk_});
  expect_partitioned(options_.inputs, options_.by, 5, options_.output);
}

// A record of which no footer tells: what it costs is found out on the way.
TEST_F(RepartitionRuns, SayThatMemoryIsTooLittleForAHugeRecord) {
  arrow::StringBuilder strings;
  ASSERT_TRUE(strings.Append(std::string(60'000'000, 'y')).ok());
  write_parquet(*arrow::Table::Make(arrow::schema({field("key", arrow::utf8())}), {strings.Finish().ValueOrDie()}),
                folder_ / "in.parquet");
  ThreadPool pool(1);
  options_.threads = 1;
  ProcResidentMemory memory;
  options_.memory_bytes = memory.current_bytes() + (50 << 20);
  try {
    repartition(options_, {pool, clock_, disk_});
    FAIL();
  }
  catch (NotEnoughMemory const& error) {
    EXPECT_GT(error.least_bytes(), options_.memory_bytes);
  }
  expect_untouched();
}

}  // namespace
}  // namespace earmark
