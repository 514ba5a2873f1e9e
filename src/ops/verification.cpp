// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "earmark/ops/errors.hpp"
#include "schema_difference.hpp"

namespace earmark::detail {
namespace {

constexpr double routing_share = 0.5;  // of reading a column, as the job's progress has it
constexpr double reading_share = 0.5;  // the same for reading a column without writing it

// Returns: where the key columns of the input are among the leaf columns that are written.
std::vector<int> keys_in_output(std::vector<LeafColumn> const& leaves, std::vector<int> const& key_columns) {
  std::vector<int> keys;
  for (int const key : key_columns) {
    auto const leaf = std::find_if(leaves.begin(), leaves.end(), [key](auto const& l) { return l.index == key; });
    if (leaf == leaves.end()) { return {}; }
    keys.push_back(static_cast<int>(leaf - leaves.begin()));
  }
  return keys;
}

template <class T>
ReservedArray<T> zeros(::arrow::MemoryPool* pool, std::size_t size) {
  ReservedArray<T> array(pool, size);
  std::fill_n(array.data(), size, T{});
  return array;
}

[[noreturn]] void fail(std::string const& path, std::string_view cause) {
  throw InternalError(fmt::format("verification failed: '{}' {}", path, cause));
}

}  // namespace

Verification::Verification(VerificationContext context, ParquetInput const& input, WrittenColumns const& written,
                           std::vector<int> const& key_columns)
    : context_(std::move(context)),
      input_(input),
      leaves_(written.leaves),
      schema_(written.schema),
      metadata_(written.metadata),
      router_(input, key_columns, context_.partitions),
      output_leaves_(leaf_columns(schema_)),
      output_keys_(keys_in_output(leaves_, key_columns)),
      sums_(zeros<Checksum>(context_.pool, leaves_.size() * static_cast<std::size_t>(context_.partitions))),
      rows_(zeros<std::int64_t>(context_.pool, static_cast<std::size_t>(context_.partitions))),
      scratch_(zeros<std::int64_t>(context_.pool, context_.workers * static_cast<std::size_t>(context_.partitions))),
      routing_workers_(context_.workers),
      checksum_workers_(context_.workers) {}

std::function<void()> Verification::stop_of(std::size_t worker) const {
  return [this, worker] { context_.after_work(worker, 0); };
}

void Verification::run(std::vector<std::string> const& paths) {
  add_input();
  parallel_for(context_.executor, context_.workers, paths.size(), [&](std::size_t worker, std::size_t p) {
    try {
      check_file(worker, p, paths[p]);
    }
    catch (InputError const& error) {
      fail(paths[p], fmt::format("does not read: {}", error.what()));
    }
  });
}

RoutingWorker& Verification::routing_worker(std::size_t worker) {
  if (!routing_workers_[worker]) { routing_workers_[worker] = std::make_unique<RoutingWorker>(context_.pool); }
  return *routing_workers_[worker];
}

ChecksumWorker& Verification::checksum_worker(std::size_t worker) {
  if (!checksum_workers_[worker]) { checksum_workers_[worker] = std::make_unique<ChecksumWorker>(context_.pool); }
  return *checksum_workers_[worker];
}

void Verification::add_input() {
  std::vector<RowGroupRef> const& groups = input_.row_groups();
  for (std::size_t begin = 0; begin < groups.size();) {
    std::size_t end = begin + 1;
    std::int64_t rows = groups[begin].rows;
    while (end < groups.size() && rows + groups[end].rows <= context_.most_rows_at_once) { rows += groups[end++].rows; }
    add_stretch(std::span(groups).subspan(begin, end - begin));
    begin = end;
  }
}

// One stretch of row groups: first the partition of each row, then column after column.
void Verification::add_stretch(std::span<RowGroupRef const> groups) {
  auto const partitions = static_cast<std::size_t>(context_.partitions);
  auto const width = static_cast<std::size_t>(router_.id_width());
  std::vector<std::size_t> starts{0};
  for (RowGroupRef const& group : groups) { starts.push_back(starts.back() + static_cast<std::size_t>(group.rows)); }
  ReservedArray<std::byte> ids(context_.pool, starts.back() * width);
  auto const of_worker = [&](std::size_t worker) {
    return std::span(scratch_.data() + worker * partitions, partitions);
  };
  std::fill_n(scratch_.data(), scratch_.size(), 0);
  parallel_for(context_.executor, context_.workers, groups.size(), [&](std::size_t worker, std::size_t i) {
    router_.route(groups[i], ids.data() + starts[i] * width, of_worker(worker), routing_worker(worker),
                  context_.read_buffer_bytes, stop_of(worker));
    context_.after_work(worker, static_cast<double>(groups[i].rows) * routing_share);
  });
  auto counts = zeros<std::int64_t>(context_.pool, partitions);
  for (std::size_t i = 0; i < scratch_.size(); ++i) { counts[i % partitions] += scratch_[i]; }

  parallel_for(context_.executor, context_.workers, leaves_.size(), [&](std::size_t worker, std::size_t c) {
    auto const next_row = of_worker(worker);
    std::copy_n(rows_.data(), partitions, next_row.data());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      RowPlaces const places{ids.data() + starts[i] * width, router_.id_width(), next_row,
                             std::span(sums_.data() + c * partitions, partitions)};
      add_chunk(input_, groups[i], leaves_[c], places, checksum_worker(worker), context_.read_buffer_bytes,
                stop_of(worker));
      context_.after_work(worker, static_cast<double>(groups[i].rows) * reading_share);
    }
  });
  for (std::size_t p = 0; p < partitions; ++p) { rows_[p] += counts[p]; }
}

void Verification::check_file(std::size_t worker, std::size_t partition, std::string const& path) {
  auto const status = context_.file_system.status(path);
  if (!status) { throw FileSystemError("read back", path, ENOENT); }
  ParquetInput const output(context_.file_system, context_.pool, {{path, *status}}, FileErrors::AreTheDisks);
  if (auto const difference = schema_difference(schema_, output.schema())) { fail(path, difference->text); }
  check_descriptions(output, path);
  if (output.total_rows() != rows_[partition]) {
    fail(path, fmt::format("has {} rows instead of {}", output.total_rows(), rows_[partition]));
  }
  check_keys(worker, partition, output, path);
  for (std::size_t c = 0; c < output_leaves_.size(); ++c) {
    Checksum sum;
    std::int64_t next_row = 0;
    for (RowGroupRef const& group : output.row_groups()) {
      add_chunk(output, group, output_leaves_[c], {nullptr, 1, {&next_row, 1}, {&sum, 1}}, checksum_worker(worker),
                context_.read_buffer_bytes, stop_of(worker));
      context_.after_work(worker, static_cast<double>(group.rows) * reading_share);
    }
    if (sum != sums_[c * static_cast<std::size_t>(context_.partitions) + partition]) {
      fail(path, fmt::format("holds other values than the input in column '{}'", output_leaves_[c].name));
    }
  }
}

// What is not of the rows, but carried with them.
void Verification::check_descriptions(ParquetInput const& output, std::string const& path) const {
  auto const& metadata = output.first_footer().key_value_metadata();
  auto const size = [](auto const& pairs) { return pairs ? pairs->size() : 0; };
  bool const is_same = size(metadata) == size(metadata_) && (size(metadata) == 0 || metadata->Equals(*metadata_));
  if (!is_same) { fail(path, "has other key-value metadata than the input"); }
  for (int i = 0; i < schema_.num_columns(); ++i) {
    if (schema_.Column(i)->schema_node()->field_id() == output.schema().Column(i)->schema_node()->field_id()) {
      continue;
    }
    fail(path, fmt::format("has another field id in column '{}'", output_leaves_[static_cast<std::size_t>(i)].name));
  }
}

// Each row must be in the file that its key, as it was written, leads to.
void Verification::check_keys(std::size_t worker, std::size_t partition, ParquetInput const& output,
                              std::string const& path) {
  if (output_keys_.empty()) { return; }
  RowRouter const router(output, output_keys_, context_.partitions);
  std::span const counts(scratch_.data() + worker * static_cast<std::size_t>(context_.partitions),
                         static_cast<std::size_t>(context_.partitions));
  std::fill(counts.begin(), counts.end(), 0);
  for (RowGroupRef const& group : output.row_groups()) {
    router.route(group, nullptr, counts, routing_worker(worker), context_.read_buffer_bytes, stop_of(worker));
    context_.after_work(worker, static_cast<double>(group.rows) * routing_share);
  }
  if (counts[partition] != output.total_rows()) {
    fail(path, fmt::format("has {} rows that belong into other files", output.total_rows() - counts[partition]));
  }
}

}  // namespace earmark::detail
