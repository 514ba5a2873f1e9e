// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory a job needs: the least limit that will do, and how a given limit is shared out.
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/ops/repartition.hpp"
#include "job_memory.hpp"
#include "leaf_column.hpp"
#include "parquet_input.hpp"

namespace earmark::detail {

// How many row groups of a column are read at once.
enum class Readers { All, One };

// What the largest pages, values and records ask for, beyond what any job has.
struct LargeNeeds {
  std::int64_t page_bytes{0};  // of the largest page
  // Of each leaf column of the input, and behind them of all keys together, as their chunks are read at the same time:
  // when all workers read, and when only one does, while all write.
  std::vector<std::int64_t> all_reading;
  std::vector<std::int64_t> one_reading;

  // Returns: what is needed when each column is read by so many.
  [[nodiscard]] std::int64_t extra_bytes(Readers readers) const noexcept;
};

// What a job's needs depend on.
struct JobShape {
  std::size_t workers{1};
  std::int64_t partitions{1};
  int id_width{1};
  std::int64_t window_rows{0};  // of the largest window
  LargeNeeds large;
  Readers readers{Readers::All};     // One: of the columns that ask for more than that leaves
  std::int64_t codec_bytes{0};       // working memory of one compressor
  std::int64_t file_codec_bytes{0};  // what the compressor of each output file's dictionaries keeps
};

// How closely chunks are looked at: their footers alone; the page headers of those that may hold an unusually large
// page, or of all, because one turned out to hold what its footer denies; or the values, too, of those that may hold an
// unusually large one.
enum class LookAt { Footers, LargePages, AllPages };
enum class LookAtValues { No, Yes };

// Returns: what the largest pages and values ask for when `workers` work. What is not looked at is taken to be the
// worst it can be. Throws: InputError for what makes no sense; what `check_stop` throws, which is called often.
[[nodiscard]] LargeNeeds large_needs(FileSystem& file_system, ParquetInput const& input,
                                     std::vector<LeafColumn> const& leaves, std::vector<int> const& key_columns,
                                     std::size_t workers, ::arrow::MemoryPool* pool, LookAt look_at,
                                     LookAtValues look_at_values, std::function<void()> const& check_stop);

// Returns: working memory that the hungriest of these compressors takes outside of the budget.
[[nodiscard]] std::int64_t compressor_bytes(std::vector<Compression> const& compression);
// Whether a column may have a dictionary in each output file: Arrow keeps the state of the gzip compressor of each
// file's dictionary until the file's column ends.
enum class DictionaryUsage { Allowed, TooDear };
[[nodiscard]] DictionaryUsage dictionary_usage(Compression const& compression, std::int64_t partitions);
// Returns: what that state takes in each file, at most. `compression`: of each of `leaves`.
[[nodiscard]] std::int64_t file_compressor_bytes(ParquetInput const& input, std::vector<LeafColumn> const& leaves,
                                                 std::vector<Compression> const& compression, std::int64_t partitions);

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
  // Returns: how many row groups of an input's leaf column may be read at once.
  [[nodiscard]] Readers readers_of(int column) const noexcept;
  // Returns: how many row groups may have all of their keys read at once.
  [[nodiscard]] Readers readers_of(std::vector<int> const& key_columns) const noexcept;
  // Returns: how many of `workers` may read at once, whichever columns each of them reads.
  [[nodiscard]] std::size_t readers_of_any(std::size_t workers) const noexcept;

 private:
  JobShape shape_;
  std::int64_t ids_{0};  // partition ids of a window
  std::int64_t outside_{0};
  std::int64_t working_{0};  // of all workers
  std::int64_t least_staging_{0};
  std::int64_t read_buffer_{0};
};

}  // namespace earmark::detail
