// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include <parquet/types.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <new>
#include <vector>

#include "memory_needs.hpp"
#include "page_sizes.hpp"
#include "reserved_array.hpp"

namespace earmark::detail {
namespace {

constexpr std::int64_t usual_page = 1 << 20;  // what every worker has room for: one such page, twice, and such a value
constexpr std::int64_t usual_entries = 1 << 15;
constexpr std::int64_t largest_block = 8 << 20;       // of staging, unless one record is larger
constexpr std::int64_t key_buffer_bytes = 512 << 10;  // the read buffer of each key's chunk
// What every worker has room for while keys are read: such pages, one read buffer, and what it will encode with.
constexpr std::int64_t usual_keys = 2 * usual_page + key_buffer_bytes + (1 << 20);
constexpr std::int64_t usual_dictionary_factor = 4;  // how many times its encoded bytes a dictionary encoded record is

// The largest record of a chunk; of a flat column that is a value.
struct RecordSize {
  std::int64_t entries{0};
  std::int64_t bytes{0};
};

struct Records {
  RecordSize largest;               // in each of the two
  std::vector<std::int64_t> large;  // bytes of the largest ones, as many as there are workers
};

struct ChunkNeeds {
  std::int64_t page_bytes{0};
  std::int64_t decoding{0};           // while a page is read, all of it
  std::int64_t reading{0};            // the same beyond what every worker has room for, and of what is read
  std::int64_t resting{0};            // while what is staged is written
  std::vector<std::int64_t> writing;  // from staging to the output page, of each large record
};

// Returns: the worst that the largest record may be.
RecordSize record_bound(::parquet::ColumnChunkMetaData const& chunk, LeafColumn const& leaf, PageSizes const& pages) {
  if (leaf.max_repetition == 0) { return {1, pages.largest_value}; }
  std::int64_t const entries = std::max<std::int64_t>(chunk.num_values(), 0);
  if (leaf.input_type != ::parquet::Type::BYTE_ARRAY) {
    auto const width = static_cast<std::int64_t>(LeafColumn::staged_width(leaf.form, leaf.type_length));
    return {entries, std::min(entries, INT64_MAX / 256 / std::max<std::int64_t>(width, 1)) * width};
  }
  return {entries, chunk.total_uncompressed_size() * (chunk.has_dictionary_page() ? usual_dictionary_factor : 1)};
}

bool is_usual(RecordSize const& record) { return record.bytes <= usual_page && record.entries <= usual_entries; }

// Reads a chunk's levels and the lengths of its values.
class RecordMeter {
 public:
  RecordMeter(LeafColumn const& leaf, std::size_t workers, ::arrow::MemoryPool* pool)
      : leaf_(leaf),
        workers_(workers),
        definition_(pool, leaf.max_definition > 0 ? batch_entries : 0),
        repetition_(pool, leaf.max_repetition > 0 ? batch_entries : 0),
        values_(pool, batch_entries * leaf.read_width()) {}

  Records measure(ParquetInput const& input, RowGroupRef const& group, std::function<void()> const& check_stop) {
    auto const reader = input.open_chunk(group, leaf_.index, ReadAs::Values, read_buffer_bytes);
    for (;;) {
      check_stop();
      auto const count = reader->read(batch_entries, leaf_.max_definition > 0 ? definition_.data() : nullptr,
                                      leaf_.max_repetition > 0 ? repetition_.data() : nullptr, values_.data());
      if (count.entries == 0) { break; }
      add(count);
    }
    end_record();
    return records_;
  }

 private:
  static constexpr std::size_t batch_entries = 1 << 12;
  static constexpr std::int64_t read_buffer_bytes = 256 << 10;

  void add(ChunkReader::Count const& count) {
    bool const is_bytes = leaf_.input_type == ::parquet::Type::BYTE_ARRAY;
    auto const* const lengths = reinterpret_cast<::parquet::ByteArray const*>(values_.data());
    auto const width = static_cast<std::int64_t>(LeafColumn::staged_width(leaf_.form, leaf_.type_length));
    std::size_t value = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count.entries); ++i) {
      if (leaf_.max_repetition == 0 || repetition_[i] == 0) { end_record(); }
      ++record_.entries;
      if (leaf_.max_definition > 0 && definition_[i] < leaf_.max_definition) { continue; }
      record_.bytes += is_bytes ? static_cast<std::int64_t>(lengths[value].len) + 4 : width;
      ++value;
    }
  }
  void end_record() {
    records_.largest.entries = std::max(records_.largest.entries, record_.entries);
    records_.largest.bytes = std::max(records_.largest.bytes, record_.bytes);
    std::int64_t const bytes = record_.bytes + record_.entries / 2;
    record_ = {};
    if (bytes <= usual_page) { return; }
    records_.large.push_back(bytes);
    std::push_heap(records_.large.begin(), records_.large.end(), std::greater<>());
    if (records_.large.size() <= workers_) { return; }
    std::pop_heap(records_.large.begin(), records_.large.end(), std::greater<>());
    records_.large.pop_back();
  }

  LeafColumn const& leaf_;
  std::size_t workers_;
  ReservedArray<std::int16_t> definition_;
  ReservedArray<std::int16_t> repetition_;
  ReservedArray<std::byte> values_;
  RecordSize record_;
  Records records_;
};

// Returns: bytes of the page and its compressed form, beyond what every worker has.
std::int64_t writing_of(std::int64_t record_bytes) { return (record_bytes - usual_page) / 6 * 13; }

// A record larger than usual is read into arrays that double by making larger ones beside them (a value of a flat
// column needs none), staged on its own, put into a page, and compressed into a buffer that is a sixth larger.
void add_records(ChunkNeeds& needs, LeafColumn const& leaf, Records const& records) {
  constexpr std::int64_t bytes_an_entry_staged = 8;  // levels and ids
  constexpr std::int64_t most_entries = std::int64_t{1} << 40;
  std::int64_t const entries = leaf.max_repetition > 0 ? std::min(records.largest.entries, most_entries) : 0;
  std::int64_t const bytes = records.largest.bytes + entries / 2;
  if (entries > usual_entries) {
    auto const read_width = static_cast<std::int64_t>(leaf.read_width());
    auto const capacity = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(entries + 1)));
    needs.reading += capacity * (read_width + 4) + capacity / 2 * read_width;
    needs.resting += capacity * (read_width + 4) + entries * bytes_an_entry_staged;
  }
  if (bytes > usual_page) {
    std::int64_t const kept = leaf.max_repetition > 0 ? bytes : 0;  // whose pages have gone
    needs.reading += kept;
    needs.resting += kept + bytes;
  }
  for (std::int64_t const large : records.large) { needs.writing.push_back(writing_of(large)); }
}

// The `count` largest may be in memory at the same time.
std::int64_t sum_of_largest(std::vector<std::int64_t>& needs, std::size_t count) {
  std::size_t const used = std::min(count, needs.size());
  std::partial_sort(needs.begin(), needs.begin() + static_cast<std::ptrdiff_t>(used), needs.end(), std::greater<>());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < used; ++i) { sum += needs[i]; }
  return sum;
}

class LargeChunks {
 public:
  LargeChunks(FileSystem& file_system, ParquetInput const& input, std::size_t workers, ::arrow::MemoryPool* pool,
              LookAt look_at, LookAtValues look_at_values, std::function<void()> const& check_stop)
      : file_system_(file_system),
        input_(input),
        workers_(workers),
        pool_(pool),
        look_at_(look_at),
        look_at_values_(look_at_values),
        check_stop_(check_stop) {}

  [[nodiscard]] ChunkNeeds needs_of(RowGroupRef const& group, LeafColumn const& leaf) const {
    PageSizes pages = page_sizes_by_footer(input_, group, leaf.index);
    if (look_at_ == LookAt::AllPages || (look_at_ == LookAt::LargePages && pages.largest_page > usual_page)) {
      check_stop_();
      pages = page_sizes_by_headers(file_system_, input_, group, leaf.index, check_stop_);
    }
    auto const chunk = input_.chunk(group, leaf.index);
    RecordSize const bound = record_bound(*chunk, leaf, pages);
    Records records{bound, {}};
    if (bound.bytes > usual_page) { records.large.assign(leaf.max_repetition > 0 ? 1 : workers_, bound.bytes); }
    if (look_at_values_ == LookAtValues::Yes && !is_usual(bound)) { measure(group, leaf, records); }
    ChunkNeeds needs;
    needs.page_bytes = pages.largest_page;
    needs.decoding = pages.decoding;
    needs.reading = std::max<std::int64_t>(pages.decoding - 2 * usual_page, 0);
    needs.resting = std::max<std::int64_t>(pages.holding - 2 * usual_page, 0);
    add_records(needs, leaf, records);
    return needs;
  }

 private:
  // What has no room now is not looked at, and stays the worst it can be.
  void measure(RowGroupRef const& group, LeafColumn const& leaf, Records& records) const {
    try {
      records = RecordMeter(leaf, workers_, pool_).measure(input_, group, check_stop_);
    }
    catch (std::bad_alloc const&) {
    }
  }

  FileSystem& file_system_;
  ParquetInput const& input_;
  std::size_t workers_;
  ::arrow::MemoryPool* pool_;
  LookAt look_at_;
  LookAtValues look_at_values_;
  std::function<void()> const& check_stop_;
};

}  // namespace

LargeNeeds large_needs(FileSystem& file_system, ParquetInput const& input, std::vector<LeafColumn> const& leaves,
                       std::vector<int> const& key_columns, std::size_t workers, ::arrow::MemoryPool* pool,
                       LookAt look_at, LookAtValues look_at_values, std::function<void()> const& check_stop) {
  LargeChunks const chunks(file_system, input, workers, pool, look_at, look_at_values, check_stop);
  LargeNeeds result;
  auto const columns = static_cast<std::size_t>(input.schema().num_columns());
  result.all_reading.assign(columns + 1, 0);
  result.one_reading.assign(columns + 1, 0);
  std::vector<std::int64_t> keys(input.row_groups().size());  // of each row group, when all of its keys are read
  std::vector<std::int64_t> reading;
  std::vector<std::int64_t> resting;
  std::vector<std::int64_t> writing;
  std::vector<std::int64_t> writing_alone;
  for (LeafColumn const& leaf : leaves) {
    reading.clear();
    resting.clear();
    writing.clear();
    writing_alone.clear();
    bool const is_key = std::find(key_columns.begin(), key_columns.end(), leaf.index) != key_columns.end();
    for (std::size_t i = 0; i < input.row_groups().size(); ++i) {
      RowGroupRef const& group = input.row_groups()[i];
      if (group.rows == 0) { continue; }
      ChunkNeeds const needs = chunks.needs_of(group, leaf);
      if (is_key) { keys[i] += needs.decoding + key_buffer_bytes; }
      result.page_bytes = std::max(result.page_bytes, needs.page_bytes);
      if (needs.reading + needs.resting > 0) { reading.push_back(std::max(needs.reading, needs.resting)); }
      if (needs.resting > 0) { resting.push_back(needs.resting); }
      // A record that is larger than any block of staging is the last of its row group until it is written.
      for (std::int64_t const bytes : needs.writing) {
        (bytes > writing_of(largest_block) ? writing_alone : writing).push_back(bytes);
      }
    }
    auto const column = static_cast<std::size_t>(leaf.index);
    auto const needed = [&](std::size_t readers) {
      std::size_t const alone = std::min(readers, writing_alone.size());
      std::int64_t const all_writing = sum_of_largest(writing_alone, alone) + sum_of_largest(writing, workers - alone);
      return std::max(sum_of_largest(reading, readers), sum_of_largest(resting, readers) + all_writing);
    };
    result.all_reading[column] = needed(workers);
    result.one_reading[column] = needed(1);
  }
  if (key_columns.size() < 2) { return result; }
  for (std::int64_t& need : keys) { need = std::max<std::int64_t>(need - usual_keys, 0); }
  result.all_reading[columns] = sum_of_largest(keys, workers);
  result.one_reading[columns] = sum_of_largest(keys, 1);
  return result;
}

}  // namespace earmark::detail
