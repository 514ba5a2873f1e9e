// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// One column of one window, from input chunks to output pages: rounds of decoding into staging and of writing what is
// staged, until all row groups are through. Thread safety: one thread, which works on the executor with others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "column_staging.hpp"
#include "dictionary.hpp"
#include "earmark/core/executor.hpp"
#include "job_memory.hpp"
#include "memory_needs.hpp"
#include "page_encoder.hpp"
#include "partition_files.hpp"

namespace earmark::detail {

// What a column pass works with, the same for all columns of a job.
struct PassContext {
  ParquetInput const& input;
  PartitionFiles& files;
  JobMemory& memory;
  Executor& executor;
  std::size_t workers{1};
  std::size_t partitions{1};
  int id_width{1};
  std::int64_t read_buffer_bytes{0};
  Readers readers{Readers::All};
  DictionaryUsage dictionaries{DictionaryUsage::Allowed};
  // Called after each piece of work, by the worker that did it: looks for a stop and reports progress.
  // `rows`: rows of the column that went through decoding or writing, half each.
  std::function<void(std::size_t worker, double rows)> after_work;
};

class ColumnPass {
 public:
  // `staging`: memory for staged values. `rows[p]`: rows of the window in partition p.
  ColumnPass(PassContext const& context, LeafColumn const& leaf, ::parquet::ColumnDescriptor const& output,
             std::span<WindowGroup const> window, std::span<std::int64_t const> rows, std::span<std::byte> staging);
  // Writes the column. Throws: InputError, FileSystemError, std::bad_alloc, InternalError, what `after_work` throws.
  void run();

 private:
  void make_plan();
  void make_slots();
  [[nodiscard]] std::int64_t estimated_slot_bytes(std::size_t group) const;
  void assign_groups();
  void decode_round();
  void write_round(std::span<StagingSlot* const> ready);
  void write_partition(std::size_t worker, std::size_t partition, std::span<StagingSlot* const> ready);
  void flush_page(std::size_t worker, std::size_t partition, std::vector<Run>& runs);
  void check_counts();

  PassContext const& context_;
  LeafColumn const& leaf_;
  ::parquet::ColumnDescriptor const& output_;
  std::span<WindowGroup const> window_;
  std::span<std::int64_t const> rows_;
  std::span<std::byte> staging_;
  std::optional<Dictionary> dictionary_;
  StagingPlan plan_;
  std::vector<StagingSlot> slots_;
  std::vector<StagingSlot*> free_;
  std::vector<StagingSlot*> active_;  // in the order of their row groups
  std::size_t next_group_{0};
  std::vector<std::unique_ptr<StagingWorker>> staging_workers_;
  std::vector<std::unique_ptr<PageEncoder>> encoders_;
  std::vector<std::vector<Run>> runs_;  // of each worker
  std::vector<ChunkTotals> totals_;
  std::int64_t entries_{0};
  std::int64_t values_{0};
};

}  // namespace earmark::detail
