// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory a job needs, from the footers alone: the least limit that will do, and how a given limit is shared
// out. Thread safety: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "job_memory.hpp"
#include "leaf_column.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

class MemoryNeeds {
 public:
  static constexpr std::int64_t variation_bytes = 2 << 20;  // of a process's size from run to run

  // `window_rows`: rows of the largest window.
  MemoryNeeds(ParquetInput const& input, std::vector<LeafColumn> const& leaves, std::int64_t partitions,
              std::size_t workers, int id_width, std::int64_t window_rows);

  // Returns: the least `--memory` that will do, in whole MiB.
  [[nodiscard]] std::int64_t least_limit(JobMemory const& memory) const;
  // Returns: what will be allocated outside of the budget: metadata of output files.
  [[nodiscard]] std::int64_t outside_bytes() const noexcept { return outside_; }
  // Returns: how much staging the job should have now, when it has `held` already.
  [[nodiscard]] std::int64_t staging_bytes(JobMemory const& memory, std::int64_t held = 0) const;
  // Returns: how much of what was freed may be kept for reuse.
  [[nodiscard]] std::int64_t kept_bytes(JobMemory const& memory) const;
  [[nodiscard]] std::int64_t read_buffer_bytes() const noexcept { return read_buffer_; }
  // Returns: a limit that will do after the budget refused something that the footers did not tell of.
  [[nodiscard]] std::int64_t after_refusal(JobMemory const& memory) const;

 private:
  std::int64_t ids_{0};  // partition ids of a window
  std::int64_t outside_{0};
  std::int64_t working_{0};  // of all workers
  std::int64_t least_staging_{0};
  std::int64_t read_buffer_{0};
};

}  // namespace earmark::detail
