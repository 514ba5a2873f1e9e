// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Progress and stopping: counts work as the workers do it, tells the caller now and then, and ends the job when it was
// asked to. Thread safety: `add_work` from any worker; the callback runs on worker 0, the calling thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "earmark/core/clock.hpp"
#include "earmark/ops/repartition.hpp"
#include "job_memory.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

class ProgressReport {
 public:
  static constexpr double routing_weight = 0.5;  // pass 0 against one column

  ProgressReport(RepartitionOptions const& options, Clock const& clock, JobMemory& memory, ParquetInput const& input,
                 std::size_t columns);

  // Where the output files count what they write.
  [[nodiscard]] std::atomic<std::int64_t>& bytes_written() noexcept { return bytes_written_; }
  // `rows`: of one column. Throws: JobInterrupted.
  void add_work(std::size_t worker, double rows);
  // Forgets the work done so far: it was a look ahead.
  void restart() noexcept { work_.store(0, std::memory_order_relaxed); }
  // Counts what a column pass has read.
  void end_column(std::span<RowGroupRef const> groups, int column);
  // Throws: JobInterrupted.
  void check_stop() const;
  // Reports the end.
  void finish();

 private:
  void report(double fraction);

  RepartitionOptions const& options_;
  Clock const& clock_;
  JobMemory& memory_;
  ParquetInput const& input_;
  std::atomic<std::int64_t> bytes_written_{0};
  double total_work_;
  std::atomic<double> work_{0};
  std::int64_t bytes_read_{0};
  Clock::time_point last_report_;
};

}  // namespace earmark::detail
