// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_needs.hpp"

#include <algorithm>

#include "page_sizes.hpp"

namespace earmark::detail {
namespace {

constexpr std::int64_t KiB = 1 << 10;
constexpr std::int64_t MiB = 1 << 20;

constexpr std::int64_t most_staging = 64 * MiB;  // more makes no longer runs and no better pages
constexpr std::int64_t most_kept = 16 * MiB;     // two workers' blocks for one chunk, twice
constexpr std::int64_t least_staging_a_worker = 4 * MiB;
constexpr std::int64_t least_staging = 6 * MiB;
constexpr std::int64_t metadata_a_chunk = 1536;      // footer and page index of one output column chunk, measured
constexpr std::int64_t state_a_partition = 4 * KiB;  // page writer and statistics while a column is open, measured
constexpr std::int64_t closing_a_column = 1536;      // schema of the footer that a worker finishes, measured
constexpr std::int64_t closing_a_chunk = 384;        // its serialized form, while it grows
constexpr std::int64_t state_a_group = 512;          // of the window: dictionary's indices, staging's books
constexpr std::int64_t margin = 4 * MiB;             // code pages and small allocations, measured
constexpr std::int64_t encoding_a_worker = 2 * MiB;  // page body, encoder and compressor for pages of 1 MiB
constexpr std::int64_t batch_a_worker = 1 * MiB;
constexpr std::int64_t usual_page = 1 * MiB;
constexpr std::int64_t gzip_state = 400 * KiB;       // of one compressor: zlib asks for about 270 KiB
constexpr std::int64_t most_gzip_dictionaries = 64;  // so many files cost 25 MiB

std::int64_t round_up_to_mib(std::int64_t bytes) { return (bytes + MiB - 1) / MiB * MiB; }

// Returns: bytes of the column that is largest before compression.
std::int64_t largest_column_bytes(ParquetInput const& input, std::vector<LeafColumn> const& leaves) {
  std::int64_t largest = 0;
  for (LeafColumn const& leaf : leaves) {
    std::int64_t bytes = 0;
    for (RowGroupRef const& group : input.row_groups()) {
      bytes += input.chunk(group, leaf.index)->total_uncompressed_size();
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

// Measured with pages of 1.2 MiB; the default levels of Arrow are 1 for zstd and 8 for brotli.
std::int64_t working_bytes(Compression const& compression) {
  switch (compression.codec) {
    case Compression::Codec::Zstd: {
      int const level = compression.level.value_or(1);
      return (level <= 3 ? 2 : level <= 9 ? 12 : level <= 12 ? 22 : 34) * MiB;
    }
    case Compression::Codec::Brotli: {
      int const level = compression.level.value_or(8);
      return (level <= 8 ? 28 : 38) * MiB;
    }
    case Compression::Codec::Gzip: return 1 * MiB;
    default: return 0;
  }
}

}  // namespace

std::int64_t compressor_bytes(std::vector<Compression> const& compression) {
  std::int64_t most = 0;
  for (Compression const& column : compression) { most = std::max(most, working_bytes(column)); }
  return most;
}

DictionaryUsage dictionary_usage(Compression const& compression, std::int64_t partitions) {
  bool const is_dear = compression.codec == Compression::Codec::Gzip && partitions > most_gzip_dictionaries;
  return is_dear ? DictionaryUsage::TooDear : DictionaryUsage::Allowed;
}

std::int64_t file_compressor_bytes(ParquetInput const& input, std::vector<LeafColumn> const& leaves,
                                   std::vector<Compression> const& compression, std::int64_t partitions) {
  auto const& groups = input.row_groups();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (compression[i].codec != Compression::Codec::Gzip) { continue; }
    if (dictionary_usage(compression[i], partitions) == DictionaryUsage::TooDear) { continue; }
    bool const has_dictionary = std::any_of(groups.begin(), groups.end(), [&](RowGroupRef const& group) {
      return group.rows > 0 && input.dictionary_use(group, leaves[i].index) != DictionaryUse::None;
    });
    if (has_dictionary) { return gzip_state; }
  }
  return 0;
}

MemoryNeeds::MemoryNeeds(ParquetInput const& input, std::vector<LeafColumn> const& leaves, JobShape const& shape)
    : shape_(shape) {
  auto const threads = static_cast<std::int64_t>(shape.workers);
  auto const columns = static_cast<std::int64_t>(leaves.size());
  std::int64_t const windows =
      shape.window_rows == 0 ? 1 : (input.total_rows() + shape.window_rows - 1) / shape.window_rows;
  std::int64_t const column_bytes = largest_column_bytes(input, leaves);
  ids_ = shape.window_rows * shape.id_width;
  outside_ = shape.partitions * (columns * windows * metadata_a_chunk + state_a_partition + shape.file_codec_bytes) +
             threads * shape.codec_bytes + threads * columns * (closing_a_column + windows * closing_a_chunk) +
             static_cast<std::int64_t>(input.row_groups().size()) * state_a_group;
  read_buffer_ = 512 * KiB;
  // While a chunk is decoded: the read buffer, one compressed and one decompressed page.
  std::int64_t const page = std::min(shape.large.page_bytes, usual_page);
  std::int64_t const encoding = std::min(encoding_a_worker, 1 * MiB + 4 * column_bytes);
  working_ = threads * (read_buffer_ + 2 * page + batch_a_worker + encoding) + shape.large.extra_bytes(shape.readers);
  least_staging_ = std::min(std::max(least_staging, threads * least_staging_a_worker), 1 * MiB + 4 * column_bytes);
}

std::int64_t LargeNeeds::extra_bytes(Readers readers) const noexcept {
  auto const& needs = readers == Readers::All ? all_reading : one_reading;
  return needs.empty() ? 0 : *std::max_element(needs.begin(), needs.end());
}

Readers MemoryNeeds::readers_of(int column) const noexcept {
  bool const fits =
      shape_.large.all_reading[static_cast<std::size_t>(column)] <= shape_.large.extra_bytes(shape_.readers);
  return fits ? Readers::All : Readers::One;
}

Readers MemoryNeeds::readers_of(std::vector<int> const& key_columns) const noexcept {
  auto const all_keys = static_cast<int>(shape_.large.all_reading.size()) - 1;
  bool const one_by_one = readers_of(all_keys) == Readers::One ||
                          std::any_of(key_columns.begin(), key_columns.end(),
                                      [this](int column) { return readers_of(column) == Readers::One; });
  return one_by_one ? Readers::One : Readers::All;
}

std::size_t MemoryNeeds::readers_of_any(std::size_t workers) const noexcept {
  std::int64_t const of_one = shape_.large.extra_bytes(Readers::One);
  if (of_one == 0) { return workers; }
  auto const fitting = static_cast<std::size_t>(shape_.large.extra_bytes(shape_.readers) / of_one);
  return std::clamp<std::size_t>(fitting, 1, workers);
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

}  // namespace earmark::detail
