// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory a job needs: the least limit that will do, and how a given limit is shared out.
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/ops/repartition.hpp"
#include "job_memory.hpp"
#include "leaf_column.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

// What a job's needs depend on.
struct JobShape {
  std::size_t workers{1};
  std::int64_t partitions{1};
  int id_width{1};
  std::int64_t window_rows{0};  // of the largest window
  std::int64_t page_bytes{0};   // of the largest page, or of the largest record where that is larger
  std::int64_t codec_bytes{0};  // working memory of one compressor
};

// Returns: a bound on the largest page, from the footers alone.
[[nodiscard]] std::int64_t page_bound(ParquetInput const& input, std::vector<LeafColumn> const& leaves);

// Which chunks are worth a look at their page headers: those that could hold an unusually large page, or all, because
// one turned out to hold what its footer denies.
enum class LookAt { LargeChunks, AllChunks };

// Returns: bytes of the largest page, from page headers, or of the largest record, estimated for nested columns.
// Throws: InputError for page headers that make no sense.
[[nodiscard]] std::int64_t largest_page_or_record(FileSystem& file_system, ParquetInput const& input,
                                                  std::vector<LeafColumn> const& leaves, LookAt look_at);

// Returns: working memory that the hungriest of these compressors takes outside of the budget.
[[nodiscard]] std::int64_t compressor_bytes(std::vector<Compression> const& compression);

class MemoryNeeds {
 public:
  static constexpr std::int64_t variation_bytes = 2 << 20;  // of a process's size from run to run

  MemoryNeeds(ParquetInput const& input, std::vector<LeafColumn> const& leaves, JobShape const& shape);

  // Returns: the least `--memory` that will do, in whole MiB.
  [[nodiscard]] std::int64_t least_limit(JobMemory const& memory) const;
  // Returns: what will be allocated outside of the budget: metadata of output files, compressors.
  [[nodiscard]] std::int64_t outside_bytes() const noexcept { return outside_; }
  // Returns: how much staging the job should have now, when it has `held` already.
  [[nodiscard]] std::int64_t staging_bytes(JobMemory const& memory, std::int64_t held = 0) const;
  // Returns: how much of what was freed may be kept for reuse.
  [[nodiscard]] std::int64_t kept_bytes(JobMemory const& memory) const;
  [[nodiscard]] std::int64_t read_buffer_bytes() const noexcept { return read_buffer_; }
  [[nodiscard]] JobShape const& shape() const noexcept { return shape_; }

 private:
  JobShape shape_;
  std::int64_t ids_{0};  // partition ids of a window
  std::int64_t outside_{0};
  std::int64_t working_{0};  // of all workers
  std::int64_t least_staging_{0};
  std::int64_t read_buffer_{0};
};

}  // namespace earmark::detail
