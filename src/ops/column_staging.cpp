// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "column_staging.hpp"

#include <fmt/format.h>
#include <parquet/types.h>

#include <algorithm>
#include <cstring>

#include "scatter.hpp"

namespace earmark::detail {
namespace {

constexpr std::size_t block_alignment = 64;
constexpr std::int64_t enough_bytes = 256 << 10;    // of strings in one batch: more would not make longer runs matter
constexpr std::size_t least_kept_bytes = 64 << 10;  // one allocation for the strings of many small pages

std::size_t aligned(std::size_t bytes) noexcept { return (bytes + block_alignment - 1) & ~(block_alignment - 1); }

bool is_index(ValueForm form) noexcept { return form == ValueForm::Index1 || form == ValueForm::Index2; }

std::size_t read_width(StagingPlan const& plan) noexcept {
  return is_index(plan.form) ? sizeof(std::int32_t) : plan.leaf->read_width();
}

// Returns: whether each entry that continues a list has an element there, and so has the entry before it: a list that
// is null or empty ends with its only entry. The first entry begins a record.
bool levels_agree(LeafColumn const& leaf, std::int16_t const* definition, std::int16_t const* repetition,
                  std::size_t entries) noexcept {
  std::int16_t const* const least = leaf.definition_of_repetition.data();
  bool agree = true;
  for (std::size_t i = 1; i < entries; ++i) {
    agree &= std::min(definition[i - 1], definition[i]) >= least[repetition[i]];
  }
  return agree;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- DecodedBatch

DecodedBatch::DecodedBatch(::arrow::MemoryPool* pool, StagingPlan const& plan)
    : plan_(plan),
      pool_(pool),
      width_(read_width(plan)),
      has_pointers_(!is_index(plan.form) && (plan.leaf->input_type == ::parquet::Type::BYTE_ARRAY ||
                                             plan.leaf->input_type == ::parquet::Type::FIXED_LEN_BYTE_ARRAY)),
      definition_(pool),
      repetition_(pool),
      values_(pool),
      capacity_(plan.batch_entries) {
  auto const size = static_cast<std::size_t>(capacity_);
  if (plan.leaf->max_definition > 0) { definition_.make_room(size); }
  if (plan.leaf->max_repetition > 0) { repetition_.make_room(size); }
  values_.make_room(size * width_);
}

bool DecodedBatch::refill(ChunkReader& reader) {
  keep_rest();
  while (!ended_) {
    if (entries_ == capacity_) {  // not even one whole record: a longer batch is needed
      capacity_ *= 2;
      auto const size = static_cast<std::size_t>(capacity_);
      definition_.grow(size, static_cast<std::size_t>(entries_));
      repetition_.grow(size, static_cast<std::size_t>(entries_));
      values_.grow(size * width_, static_cast<std::size_t>(values_read_) * width_);
    }
    ChunkReader::Count const count =
        reader.read(capacity_ - entries_, plan_.leaf->max_definition > 0 ? definition_.data() + entries_ : nullptr,
                    plan_.leaf->max_repetition > 0 ? repetition_.data() + entries_ : nullptr,
                    values_.data() + static_cast<std::size_t>(values_read_) * width_);
    if (count.entries == 0) {
      ended_ = true;
      break;
    }
    std::int64_t const first = values_read_;
    entries_ += count.entries;
    values_read_ += count.values;
    total_entries_ += count.entries;
    ready_ = end_of_whole_records();
    bool const long_enough =
        entries_ == capacity_ ||
        (has_pointers_ && (entries_ >= capacity_ / 4 || bytes_of(0, values_read_) >= enough_bytes));
    if (ready_ > 0 && long_enough) { break; }
    if (has_pointers_) { keep_bytes(first, values_read_); }
  }
  if (ended_) { ready_ = entries_; }
  return ready_ > 0;
}

void DecodedBatch::reset() noexcept {
  entries_ = values_read_ = ready_ = entry_ = value_ = total_entries_ = 0;
  ended_ = false;
  kept_.clear();
}

void DecodedBatch::consume(std::int64_t entries, std::int64_t values) noexcept {
  entry_ += entries;
  value_ += values;
}

// Moves what is not consumed to the front; its bytes leave the page, which goes with the next read.
void DecodedBatch::keep_rest() {
  std::int64_t const entries = entries_ - entry_;
  std::int64_t const values = values_read_ - value_;
  if (entries > 0) {
    if (plan_.leaf->max_definition > 0) {
      std::memmove(definition_.data(), definition_.data() + entry_,
                   static_cast<std::size_t>(entries) * sizeof(std::int16_t));
    }
    if (plan_.leaf->max_repetition > 0) {
      std::memmove(repetition_.data(), repetition_.data() + entry_,
                   static_cast<std::size_t>(entries) * sizeof(std::int16_t));
    }
    std::memmove(values_.data(), values_.data() + static_cast<std::size_t>(value_) * width_,
                 static_cast<std::size_t>(values) * width_);
  }
  entries_ = entries;
  values_read_ = values;
  entry_ = value_ = ready_ = 0;
  auto const old = std::move(kept_);
  kept_.clear();
  if (has_pointers_) { keep_bytes(0, values); }
}

std::int64_t DecodedBatch::bytes_of(std::int64_t first, std::int64_t end) const {
  if (plan_.leaf->input_type != ::parquet::Type::BYTE_ARRAY) { return (end - first) * plan_.leaf->type_length; }
  auto const* const values = reinterpret_cast<::parquet::ByteArray const*>(values_.data());
  std::int64_t bytes = 0;
  for (std::int64_t i = first; i < end; ++i) { bytes += values[i].len; }
  return bytes;
}

void DecodedBatch::keep_bytes(std::int64_t first, std::int64_t end) {
  auto const bytes = static_cast<std::size_t>(bytes_of(first, end));
  if (bytes == 0) { return; }
  ReservedArray<std::byte> copy(pool_, std::max(bytes, least_kept_bytes));
  std::byte* to = copy.data();
  auto const keep = [&](std::uint8_t const*& pointer, std::size_t size) {
    std::memcpy(to, pointer, size);
    pointer = reinterpret_cast<std::uint8_t const*>(to);
    to += size;
  };
  if (plan_.leaf->input_type == ::parquet::Type::BYTE_ARRAY) {
    auto* const values = reinterpret_cast<::parquet::ByteArray*>(values_.data());
    for (std::int64_t i = first; i < end; ++i) {
      if (values[i].len > 0) { keep(values[i].ptr, values[i].len); }
    }
  } else {
    auto* const values = reinterpret_cast<::parquet::FixedLenByteArray*>(values_.data());
    for (std::int64_t i = first; i < end; ++i) {
      keep(values[i].ptr, static_cast<std::size_t>(plan_.leaf->type_length));
    }
  }
  kept_.push_back(std::move(copy));
}

// The last record may go on in what is not read yet.
std::int64_t DecodedBatch::end_of_whole_records() const {
  if (plan_.leaf->max_repetition == 0) { return entries_; }
  std::int64_t end = entries_ - 1;
  while (end > 0 && repetition_[static_cast<std::size_t>(end)] > 0) { --end; }
  return end;
}

// --------------------------------------------------------------------------------------------------- StagingWorker

StagingWorker::StagingWorker(::arrow::MemoryPool* pool, StagingPlan const& plan)
    : counts(pool, 2 * plan.partitions), cursors(pool, plan.partitions), entry_ids(pool), value_ids(pool) {
  std::memset(counts.data(), 0, counts.size() * sizeof(std::uint32_t));
}

// ----------------------------------------------------------------------------------------------------- StagingSlot

void StagingSlot::begin(std::size_t group_in_window) noexcept {
  group_ = group_in_window;
  row_ = entries_ = values_ = 0;
  begun_ = complete_ = full_ = false;
}

void StagingSlot::drop_blocks() noexcept {
  blocks_.clear();
  oversize_.clear();
  has_large_record_ = false;
  used_ = 0;
  full_ = false;
}

void StagingSlot::fill(ParquetInput const& input, StagingPlan const& plan, std::span<WindowGroup const> window,
                       StagingWorker& worker, ::arrow::MemoryPool* pool) {
  WindowGroup const& group = window[group_];
  if (!begun_) {
    if (group.group.rows > 0) { reader_ = plan.open_chunk(group_); }
    batch_ = worker.spare_batch ? std::move(worker.spare_batch) : std::make_unique<DecodedBatch>(pool, plan);
    begun_ = true;
  }
  for (;;) {
    if (batch_->ready_entries() == 0 && (!reader_ || !batch_->refill(*reader_))) { break; }
    bool const fits = plan.id_width == 1   ? append_block<std::uint8_t>(input, plan, group, worker, pool)
                      : plan.id_width == 2 ? append_block<std::uint16_t>(input, plan, group, worker, pool)
                                           : append_block<std::uint32_t>(input, plan, group, worker, pool);
    if (!fits || !oversize_.empty() || has_large_record_) {  // which leaves before the next page comes
      full_ = true;
      return;
    }
  }
  if (row_ != group.group.rows) {
    input.fail(group.group, plan.leaf->index,
               fmt::format("it has {} rows, the footer says {}", row_, group.group.rows));
  }
  if (reader_ && batch_->total_entries() != input.chunk(group.group, plan.leaf->index)->num_values()) {
    input.fail(group.group, plan.leaf->index, "it has fewer or more values than the footer says");
  }
  reader_.reset();
  batch_->reset();
  worker.spare_batch = std::move(batch_);
  complete_ = true;
}

template <class Id>
std::span<Id const> StagingSlot::ids_of_entries(StagingPlan const& plan, WindowGroup const& group,
                                                StagingWorker& worker, std::int64_t entries, std::int64_t& rows) {
  auto const* const ids = reinterpret_cast<Id const*>(group.ids);
  auto const size = static_cast<std::size_t>(entries);
  if (plan.leaf->max_repetition == 0) {
    rows = entries;
    return {ids + row_, std::min(size, static_cast<std::size_t>(group.group.rows - row_))};
  }
  worker.entry_ids.make_room(size * sizeof(Id));
  auto* const out = reinterpret_cast<Id*>(worker.entry_ids.data());
  std::int16_t const* const repetition = batch_->repetition();
  std::int64_t row = row_ - 1;
  for (std::size_t i = 0; i < size; ++i) {
    if (repetition[i] == 0 && ++row >= group.group.rows) { return {}; }
    if (row < row_) { return {}; }  // the first record has no beginning
    out[i] = ids[row];
  }
  rows = row + 1 - row_;
  return {out, size};
}

template <class Id>
std::span<Id const> StagingSlot::ids_of_values(StagingPlan const& plan, StagingWorker& worker,
                                               std::span<Id const> entry_ids) {
  if (plan.leaf->max_definition == 0) { return entry_ids; }
  std::int16_t const* const definition = batch_->definition();
  std::int16_t const max = plan.leaf->max_definition;
  std::size_t nulls = 0;
  for (std::size_t i = 0; i < entry_ids.size(); ++i) { nulls += definition[i] != max ? 1U : 0U; }
  if (nulls == 0) { return entry_ids; }
  worker.value_ids.make_room((entry_ids.size() + 1) * sizeof(Id));
  auto* const out = reinterpret_cast<Id*>(worker.value_ids.data());
  std::size_t values = 0;
  for (std::size_t i = 0; i < entry_ids.size(); ++i) {
    out[values] = entry_ids[i];
    values += definition[i] == max ? 1U : 0U;
  }
  return {out, values};
}

template <class Id>
void StagingSlot::scatter(ParquetInput const& input, StagingPlan const& plan, WindowGroup const& group,
                          std::span<Id const> ids, std::byte* out, std::uint32_t* cursors) {
  void const* const values = batch_->values();
  auto const* const pointers = static_cast<::parquet::FixedLenByteArray const*>(values);
  auto const width = static_cast<std::size_t>(std::max(plan.leaf->type_length, 0));
  bool fits = true;
  switch (plan.form) {
    case ValueForm::Copy1:
      scatter_values(ids, static_cast<std::uint8_t const*>(values), reinterpret_cast<std::uint8_t*>(out), cursors);
      break;
    case ValueForm::Copy4:
      scatter_values(ids, static_cast<std::uint32_t const*>(values), reinterpret_cast<std::uint32_t*>(out), cursors);
      break;
    case ValueForm::Copy8:
      scatter_values(ids, static_cast<std::uint64_t const*>(values), reinterpret_cast<std::uint64_t*>(out), cursors);
      break;
    case ValueForm::Copy12:
      scatter_values(ids, static_cast<::parquet::Int96 const*>(values), reinterpret_cast<::parquet::Int96*>(out),
                     cursors);
      break;
    case ValueForm::FixedBytes: scatter_fixed_bytes(ids, pointers, width, out, cursors); break;
    case ValueForm::Decimal4:
      fits = scatter_decimals(ids, pointers, width, reinterpret_cast<std::int32_t*>(out), cursors);
      break;
    case ValueForm::Decimal8:
      fits = scatter_decimals(ids, pointers, width, reinterpret_cast<std::int64_t*>(out), cursors);
      break;
    case ValueForm::Bytes: scatter_bytes(ids, static_cast<::parquet::ByteArray const*>(values), out, cursors); break;
    case ValueForm::Index1:
      scatter_remapped(ids, static_cast<std::int32_t const*>(values), plan.remap(group_),
                       reinterpret_cast<std::uint8_t*>(out), cursors);
      break;
    case ValueForm::Index2:
      scatter_remapped(ids, static_cast<std::int32_t const*>(values), plan.remap(group_),
                       reinterpret_cast<std::uint16_t*>(out), cursors);
      break;
  }
  if (!fits) { input.fail(group.group, plan.leaf->index, "a decimal has more digits than its type allows"); }
}

template <class Id>
StagingSlot::BlockShape<Id> StagingSlot::shape_of(ParquetInput const& input, StagingPlan const& plan,
                                                  WindowGroup const& group, StagingWorker& worker,
                                                  std::int64_t entries) {
  BlockShape<Id> shape;
  shape.entries = entries;
  shape.entry_ids = ids_of_entries<Id>(plan, group, worker, entries, shape.rows);
  if (static_cast<std::int64_t>(shape.entry_ids.size()) != entries) {
    input.fail(group.group, plan.leaf->index, "its rows do not agree with the footer");
  }
  if (plan.leaf->max_repetition > 0 &&
      !levels_agree(*plan.leaf, batch_->definition(), batch_->repetition(), shape.entry_ids.size())) {
    input.fail(group.group, plan.leaf->index, "its levels contradict each other");
  }
  shape.value_ids = ids_of_values<Id>(plan, worker, shape.entry_ids);
  shape.has_nulls = shape.value_ids.size() != shape.entry_ids.size();
  shape.value_bytes = shape.value_ids.size() * LeafColumn::staged_width(plan.form, plan.leaf->type_length);
  if (plan.form == ValueForm::Bytes) {
    auto const* const values = reinterpret_cast<::parquet::ByteArray const*>(batch_->values());
    for (std::size_t i = 0; i < shape.value_ids.size(); ++i) {
      shape.value_bytes += values[i].len + sizeof(std::uint32_t);
    }
  }
  std::size_t const ends = 1U + (shape.has_nulls ? 1U : 0U) + (plan.form == ValueForm::Bytes ? 1U : 0U);
  std::size_t const levels = (shape.has_nulls ? 1U : 0U) + (plan.leaf->max_repetition > 0 ? 1U : 0U);
  shape.bytes = ends * aligned(plan.partitions * sizeof(std::uint32_t)) + levels * aligned(shape.entry_ids.size()) +
                aligned(shape.value_bytes);
  return shape;
}

// Returns: a shorter stretch of whole records, about half of `entries`; 0 when it is one record already.
std::int64_t StagingSlot::shorter_stretch(StagingPlan const& plan, std::int64_t entries) const {
  if (plan.leaf->max_repetition == 0) { return entries / 2; }
  std::int16_t const* const repetition = batch_->repetition();
  std::int64_t shorter = entries / 2;
  while (shorter > 0 && repetition[shorter] > 0) { --shorter; }
  if (shorter == 0) {  // the first record is the longer half
    shorter = 1;
    while (shorter < entries && repetition[shorter] > 0) { ++shorter; }
  }
  return shorter < entries ? shorter : 0;
}

template <class Id>
bool StagingSlot::append_block(ParquetInput const& input, StagingPlan const& plan, WindowGroup const& group,
                               StagingWorker& worker, ::arrow::MemoryPool* pool) {
  constexpr std::size_t max_block_bytes = 2'000'000'000;  // a partition's part of it has to fit into one page
  BlockShape<Id> shape = shape_of<Id>(input, plan, group, worker, batch_->ready_entries());
  auto const fits = [&] { return shape.bytes <= memory_.size() - used_; };
  while (!fits() || shape.value_bytes > plan.most_block_bytes) {
    bool const is_short = shape.value_bytes <= plan.most_block_bytes;
    std::int64_t const shorter = is_short && !blocks_.empty() ? 0 : shorter_stretch(plan, shape.entries);
    if (shorter == 0 && !fits() && !blocks_.empty()) { return false; }  // when the slot is empty again
    if (shorter == 0) { break; }
    shape = shape_of<Id>(input, plan, group, worker, shorter);
  }
  if (shape.value_bytes > max_block_bytes) {
    input.fail(group.group, plan.leaf->index, "one record has more than 2 GB of bytes");
  }
  std::byte* memory = memory_.data() + used_;
  if (fits()) {
    used_ += shape.bytes;
  } else {  // one record that is larger than the slot gets memory of its own
    memory = oversize_.emplace_back(pool, shape.bytes).data();
  }
  has_large_record_ = shape.value_bytes > plan.most_block_bytes;
  blocks_.push_back(build_block(input, plan, group, worker, shape, memory));
  auto const values = static_cast<std::int64_t>(shape.value_ids.size());
  batch_->consume(shape.entries, values);
  row_ += shape.rows;
  entries_ += shape.entries;
  values_ += values;
  return true;
}

template <class Id>
Block StagingSlot::build_block(ParquetInput const& input, StagingPlan const& plan, WindowGroup const& group,
                               StagingWorker& worker, BlockShape<Id> const& shape, std::byte* memory) {
  auto const take = [&memory](std::size_t bytes) {
    std::byte* const taken = memory;
    memory += aligned(bytes);
    return taken;
  };
  auto const ends_of_counts = [&] {
    auto* const ends = reinterpret_cast<std::uint32_t*>(take(plan.partitions * sizeof(std::uint32_t)));
    prefix_ends(worker.counts.data(), ends, worker.cursors.data(), plan.partitions);
    std::memset(worker.counts.data(), 0, plan.partitions * sizeof(std::uint32_t));
    return ends;
  };
  auto const rewind_cursors = [&](std::uint32_t const* ends) {
    worker.cursors[0] = 0;
    std::copy(ends, ends + plan.partitions - 1, worker.cursors.data() + 1);
  };
  Block block;
  count_partitions(shape.entry_ids, worker.counts.data(), plan.partitions);
  block.entry_ends = ends_of_counts();
  block.value_ends = block.entry_ends;
  auto const scatter_to_bytes = [&](std::int16_t const* levels) {
    auto* const out = reinterpret_cast<std::uint8_t*>(take(shape.entry_ids.size()));
    scatter_levels(shape.entry_ids, levels, out, worker.cursors.data());
    rewind_cursors(block.entry_ends);
    return out;
  };
  if (plan.leaf->max_repetition > 0) { block.repetition = scatter_to_bytes(batch_->repetition()); }
  if (shape.has_nulls) {
    block.definition = scatter_to_bytes(batch_->definition());
    count_partitions(shape.value_ids, worker.counts.data(), plan.partitions);
    block.value_ends = ends_of_counts();
  }
  if (plan.form == ValueForm::Bytes) {
    auto const* const values = reinterpret_cast<::parquet::ByteArray const*>(batch_->values());
    for (std::size_t i = 0; i < shape.value_ids.size(); ++i) {
      worker.counts[shape.value_ids[i]] += values[i].len + static_cast<std::uint32_t>(sizeof(std::uint32_t));
    }
    block.byte_ends = ends_of_counts();
  }
  std::byte* const out = take(shape.value_bytes);
  block.values = out;
  scatter(input, plan, group, shape.value_ids, out, worker.cursors.data());
  return block;
}

}  // namespace earmark::detail
