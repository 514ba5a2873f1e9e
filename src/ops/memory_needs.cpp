// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_needs.hpp"

#include <algorithm>

namespace earmark::detail {
namespace {

constexpr std::int64_t KiB = 1 << 10;
constexpr std::int64_t MiB = 1 << 20;

constexpr std::int64_t most_staging = 64 * MiB;  // more makes no longer runs and no better pages
constexpr std::int64_t most_kept = 16 * MiB;     // two workers' blocks for one chunk, twice
constexpr std::int64_t least_staging_a_worker = 6 * MiB;
constexpr std::int64_t metadata_a_chunk = 1536;      // footer and page index of one output column chunk, measured
constexpr std::int64_t state_a_partition = 4 * KiB;  // page writer and statistics while a column is open, measured
constexpr std::int64_t margin = 6 * MiB;             // code pages and small allocations, measured
constexpr std::int64_t encoding_a_worker = 4 * MiB;  // page body, encoder and compressor for pages of 1 MiB
constexpr std::int64_t batch_a_worker = 1 * MiB;
constexpr std::int64_t typical_page = 1 * MiB;

std::int64_t round_up_to_mib(std::int64_t bytes) { return (bytes + MiB - 1) / MiB * MiB; }

}  // namespace

MemoryNeeds::MemoryNeeds(ParquetInput const& input, std::vector<LeafColumn> const& leaves, std::int64_t partitions,
                         std::size_t workers, int id_width, std::int64_t window_rows) {
  auto const threads = static_cast<std::int64_t>(workers);
  auto const columns = static_cast<std::int64_t>(leaves.size());
  std::int64_t const windows = window_rows == 0 ? 1 : (input.total_rows() + window_rows - 1) / window_rows;
  ids_ = window_rows * id_width;
  outside_ = partitions * (columns * windows * metadata_a_chunk + state_a_partition);
  read_buffer_ = 512 * KiB;
  // While a chunk is decoded: the read buffer, one compressed and one decompressed page.
  working_ = threads * (read_buffer_ + 2 * typical_page + batch_a_worker + encoding_a_worker);
  least_staging_ = threads * least_staging_a_worker;
}

std::int64_t MemoryNeeds::least_limit(JobMemory const& memory) const {
  return round_up_to_mib(memory.baseline_bytes() + memory.slack_bytes() + memory.committed_bytes() + margin + ids_ +
                         outside_ + working_ + least_staging_);
}

std::int64_t MemoryNeeds::staging_bytes(JobMemory const& memory, std::int64_t held) const {
  std::int64_t const available = memory.available_bytes() + held - (held == 0 ? ids_ : 0) - working_ - margin;
  return std::clamp(available, least_staging_, most_staging);
}

std::int64_t MemoryNeeds::kept_bytes(JobMemory const& memory) const {
  return std::clamp<std::int64_t>(memory.available_bytes() - ids_ - working_ - margin, 0, most_kept);
}

std::int64_t MemoryNeeds::after_refusal(JobMemory const& memory) const {
  return round_up_to_mib(std::max(least_limit(memory), memory.limit_bytes() + memory.limit_bytes() / 2));
}

}  // namespace earmark::detail
