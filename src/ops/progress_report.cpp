// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "progress_report.hpp"

#include <algorithm>
#include <chrono>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

constexpr std::chrono::milliseconds between_reports{50};

}  // namespace

ProgressReport::ProgressReport(RepartitionOptions const& options, Clock const& clock, JobMemory& memory,
                               ParquetInput const& input, std::size_t columns)
    : options_(options),
      clock_(clock),
      memory_(memory),
      input_(input),
      total_work_(static_cast<double>(input.total_rows()) * (static_cast<double>(columns) + routing_weight)),
      last_report_(clock.now()) {}

void ProgressReport::add_work(std::size_t worker, double rows) {
  work_.fetch_add(rows, std::memory_order_relaxed);
  memory_.watch();
  check_stop();
  if (worker != 0 || !options_.progress) { return; }
  auto const now = clock_.now();
  if (now - last_report_ < between_reports) { return; }
  last_report_ = now;
  report(total_work_ == 0 ? 1 : std::min(1.0, work_.load(std::memory_order_relaxed) / total_work_));
}

void ProgressReport::end_column(std::span<RowGroupRef const> groups, int column) {
  for (RowGroupRef const& group : groups) { bytes_read_ += input_.chunk(group, column)->total_compressed_size(); }
}

void ProgressReport::check_stop() const {
  if (options_.stop.stop_requested()) { throw JobInterrupted("interrupted: the output is as it was before"); }
}

void ProgressReport::finish() {
  if (options_.progress) { report(1); }
}

void ProgressReport::report(double fraction) {
  RepartitionProgress progress;
  progress.fraction = fraction;
  progress.total_rows = input_.total_rows();
  progress.rows = static_cast<std::int64_t>(fraction * static_cast<double>(progress.total_rows));
  progress.bytes_read = bytes_read_;
  progress.bytes_written = bytes_written_.load(std::memory_order_relaxed);
  progress.resident_bytes = memory_.resident_bytes();
  progress.committed_bytes = memory_.committed_bytes();
  options_.progress(progress);
}

}  // namespace earmark::detail
