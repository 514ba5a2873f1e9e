// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "column_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

constexpr std::size_t page_bytes = 1 << 20;    // of staged values; a page holds at least one run
constexpr std::size_t page_entries = 1 << 16;  // keeps the page index useful for narrow columns
constexpr std::int64_t least_batch_entries = 1 << 15;
constexpr std::int64_t most_batch_entries = 1 << 17;
constexpr std::int64_t batch_entries_a_partition = 32;  // shorter runs cost more than longer batches
constexpr std::size_t most_pages_a_block = 8;           // a block of few partitions must not make longer pages
constexpr std::size_t slot_alignment = 4096;
constexpr std::int64_t index1_values = 1 << 8;

}  // namespace

ColumnPass::ColumnPass(PassContext const& context, LeafColumn const& leaf, ::parquet::ColumnDescriptor const& output,
                       std::span<WindowGroup const> window, std::span<std::int64_t const> rows,
                       std::span<std::byte> staging)
    : context_(context), leaf_(leaf), output_(output), window_(window), rows_(rows), staging_(staging) {}

void ColumnPass::run() {
  make_plan();
  make_slots();
  ::arrow::MemoryPool* const pool = context_.memory.pool();
  for (std::size_t i = 0; i < context_.workers; ++i) {
    staging_workers_.push_back(std::make_unique<StagingWorker>(pool, plan_));
    encoders_.push_back(make_page_encoder(leaf_, output_, plan_.form, dictionary_ ? &*dictionary_ : nullptr, pool));
  }
  runs_.resize(context_.workers);
  for (std::size_t p = 0; p < context_.partitions; ++p) { totals_.push_back(encoders_.front()->begin_chunk()); }
  context_.files.begin_column(dictionary_ ? &*dictionary_ : nullptr);
  assign_groups();
  while (!active_.empty()) {
    decode_round();
    // Row groups leave in order: all complete ones at the head, and what there is of the first that is not.
    auto const incomplete =
        std::find_if(active_.begin(), active_.end(), [](StagingSlot const* slot) { return !slot->is_complete(); });
    auto const complete = static_cast<std::size_t>(incomplete - active_.begin());
    std::span<StagingSlot* const> const ready = std::span(active_).first(std::min(complete + 1, active_.size()));
    write_round(ready);
    for (StagingSlot* slot : ready) { slot->drop_blocks(); }
    for (StagingSlot* slot : ready.first(complete)) {
      entries_ += slot->entries();
      values_ += slot->values();
      free_.push_back(slot);
    }
    active_.erase(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(complete));
    assign_groups();
  }
  check_counts();
  parallel_for(context_.executor, context_.workers, context_.partitions, [&](std::size_t, std::size_t p) {
    context_.files.end_column(p, encoders_.front()->chunk_statistics(totals_[p]));
  });
}

void ColumnPass::make_plan() {
  plan_.leaf = &leaf_;
  plan_.form = leaf_.form;
  plan_.id_width = context_.id_width;
  plan_.partitions = context_.partitions;
  plan_.most_block_bytes = page_bytes * std::min(context_.partitions, most_pages_a_block);
  plan_.batch_entries = std::clamp(static_cast<std::int64_t>(context_.partitions) * batch_entries_a_partition,
                                   least_batch_entries, most_batch_entries);
  if (context_.dictionaries == DictionaryUsage::Allowed) {
    dictionary_ = Dictionary::unify(context_.input, leaf_, output_, window_, context_.partitions, context_.executor,
                                    context_.readers == Readers::One ? 1 : context_.workers);
  }
  if (dictionary_) {
    plan_.form = static_cast<std::int64_t>(dictionary_->values().size()) <= index1_values ? ValueForm::Index1
                                                                                          : ValueForm::Index2;
    plan_.remap = [this](std::size_t group) { return dictionary_->remap(group).data(); };
  }
  plan_.open_chunk = [this](std::size_t group) {
    return dictionary_ ? dictionary_->open_chunk(context_.input, leaf_, window_, group, context_.read_buffer_bytes,
                                                 context_.memory.pool())
                       : context_.input.open_chunk(window_[group].group, leaf_.index, ReadAs::Values,
                                                   context_.read_buffer_bytes);
  };
}

// Returns: about how much staging a row group needs.
std::int64_t ColumnPass::estimated_slot_bytes(std::size_t group) const {
  if (window_[group].group.rows == 0) { return 0; }
  auto const chunk = context_.input.chunk(window_[group].group, leaf_.index);
  std::int64_t const entries = std::max<std::int64_t>(chunk->num_values(), 0);
  std::int64_t const levels = (leaf_.max_definition > 0 ? 1 : 0) + (leaf_.max_repetition > 0 ? 1 : 0);
  auto const width = static_cast<std::int64_t>(LeafColumn::staged_width(plan_.form, leaf_.type_length));
  // Plain byte arrays take in staging what they take in the file; of dictionary encoded ones the footer tells too
  // little.
  bool const is_dictionary = context_.input.dictionary_use(window_[group].group, leaf_.index) != DictionaryUse::None;
  std::int64_t const bytes =
      plan_.form == ValueForm::Bytes ? chunk->total_uncompressed_size() * (is_dictionary ? 4 : 1) : entries * width;
  std::int64_t const blocks = 2 * entries / plan_.batch_entries + 2;
  auto const ends = static_cast<std::int64_t>(3 * sizeof(std::uint32_t) * context_.partitions);
  return bytes + entries * levels + blocks * ends;
}

void ColumnPass::make_slots() {
  std::int64_t largest = 1;
  for (std::size_t i = 0; i < window_.size(); ++i) { largest = std::max(largest, estimated_slot_bytes(i)); }
  auto const workers = static_cast<std::int64_t>(context_.workers);
  auto const size = static_cast<std::int64_t>(staging_.size());
  std::int64_t count = std::max(size / (largest + largest / 16 + static_cast<std::int64_t>(slot_alignment)), workers);
  // Row groups far larger than staging: one at a time makes the longest pages.
  if (largest > 4 * size / workers || context_.readers == Readers::One) { count = 1; }
  if (count > workers) { count -= count % workers; }
  count = std::clamp<std::int64_t>(count, 1, std::max<std::int64_t>(1, static_cast<std::int64_t>(window_.size())));
  std::size_t const slot_bytes = staging_.size() / static_cast<std::size_t>(count) / slot_alignment * slot_alignment;
  slots_.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    slots_.emplace_back(staging_.subspan(i * slot_bytes, slot_bytes));
  }
  for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot) { free_.push_back(&*slot); }
}

void ColumnPass::assign_groups() {
  while (!free_.empty() && next_group_ < window_.size()) {
    free_.back()->begin(next_group_++);
    active_.push_back(free_.back());
    free_.pop_back();
  }
}

void ColumnPass::decode_round() {
  std::vector<StagingSlot*> open;
  std::copy_if(active_.begin(), active_.end(), std::back_inserter(open),
               [](StagingSlot const* slot) { return !slot->is_complete() && !slot->is_full(); });
  ::arrow::MemoryPool* const pool = context_.memory.pool();
  parallel_for(context_.executor, context_.workers, open.size(), [&](std::size_t worker, std::size_t i) {
    std::int64_t const before = open[i]->rows();
    open[i]->fill(context_.input, plan_, window_, *staging_workers_[worker], pool);
    context_.after_work(worker, static_cast<double>(open[i]->rows() - before) / 2);
  });
}

void ColumnPass::write_round(std::span<StagingSlot* const> ready) {
  parallel_for(context_.executor, context_.workers, context_.partitions, [&](std::size_t worker, std::size_t p) {
    std::int64_t const before = totals_[p].rows;
    write_partition(worker, p, ready);
    context_.after_work(worker, static_cast<double>(totals_[p].rows - before) / 2);
  });
}

void ColumnPass::write_partition(std::size_t worker, std::size_t partition, std::span<StagingSlot* const> ready) {
  std::vector<Run>& runs = runs_[worker];
  std::size_t bytes = 0;
  std::size_t entries = 0;
  for (StagingSlot const* slot : ready) {
    for (Block const& block : slot->blocks()) {
      Run const run = run_of(block, partition, plan_.form, leaf_.type_length);
      std::size_t const run_bytes = run.byte_end - run.byte_begin;
      std::size_t const run_entries = run.entry_end - run.entry_begin;
      if (run_entries == 0) { continue; }
      if (!runs.empty() && (bytes + run_bytes > page_bytes || entries + run_entries > page_entries)) {
        flush_page(worker, partition, runs);
        bytes = entries = 0;
      }
      runs.push_back(run);
      bytes += run_bytes;
      entries += run_entries;
    }
  }
  if (!runs.empty()) { flush_page(worker, partition, runs); }
}

void ColumnPass::flush_page(std::size_t worker, std::size_t partition, std::vector<Run>& runs) {
  std::int64_t const first_row = totals_[partition].rows;
  EncodedPage const page = encoders_[worker]->encode(runs, totals_[partition]);
  context_.files.write_page(worker, partition, page, first_row);
  encoders_[worker]->drop_large_scratch();
  runs.clear();
}

// Everything that was read must have been written, and every partition must have the rows that pass 0 counted.
void ColumnPass::check_counts() {
  std::int64_t entries = 0;
  std::int64_t values = 0;
  for (std::size_t p = 0; p < totals_.size(); ++p) {
    entries += totals_[p].entries;
    values += totals_[p].values;
    if (totals_[p].rows != rows_[p]) {
      throw InternalError(
          fmt::format("column '{}': partition {} got {} rows instead of {}", leaf_.name, p, totals_[p].rows, rows_[p]));
    }
  }
  if (entries != entries_ || values != values_) {
    throw InternalError(fmt::format("column '{}': {} entries with {} values read, {} with {} written", leaf_.name,
                                    entries_, values_, entries, values));
  }
}

}  // namespace earmark::detail
