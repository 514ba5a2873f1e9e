// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/ops/repartition.hpp"

#include <fmt/format.h>
#include <parquet/exception.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "column_names.hpp"
#include "column_pass.hpp"
#include "earmark/core/bytes.hpp"
#include "earmark/core/resident_memory.hpp"
#include "earmark/ops/errors.hpp"
#include "input_paths.hpp"
#include "job_memory.hpp"
#include "leaf_column.hpp"
#include "memory_needs.hpp"
#include "output_folder.hpp"
#include "parquet_input.hpp"
#include "partition_files.hpp"
#include "progress_report.hpp"
#include "row_router.hpp"
#include "verification.hpp"
#include "window_planner.hpp"

namespace earmark {
namespace {

using namespace detail;

void check_options(RepartitionOptions const& options) {
  if (options.inputs.empty()) { throw UsageError("name at least one input"); }
  if (options.by.empty()) { throw UsageError("name at least one key column"); }
  if (options.columns && options.columns->empty()) { throw UsageError("name at least one column for the output"); }
  if (options.output.empty()) { throw UsageError("name an output folder"); }
  if (options.partitions < 1 || options.partitions > std::numeric_limits<std::int32_t>::max()) {
    throw UsageError(fmt::format("the number of partitions must be from 1 to {}, not {}",
                                 std::numeric_limits<std::int32_t>::max(), options.partitions));
  }
  if (options.memory_bytes < 1) {
    throw UsageError(fmt::format("the memory limit must be positive, not {}", options.memory_bytes));
  }
  if (options.row_group_bytes && *options.row_group_bytes < 1) {
    throw UsageError(fmt::format("the size of a row group must be positive, not {}", *options.row_group_bytes));
  }
}

struct Window {
  std::vector<ReservedArray<std::byte>> ids;
  std::vector<WindowGroup> groups;
  std::vector<RowGroupRef> refs;  // the same row groups

  void add(std::span<RowGroupRef const> added, std::size_t id_width, ::arrow::MemoryPool* pool) {
    std::size_t rows = 0;
    for (RowGroupRef const& group : added) { rows += static_cast<std::size_t>(group.rows); }
    std::byte* at = ids.emplace_back(pool, rows * id_width).data();
    for (RowGroupRef const& group : added) {
      groups.push_back({group, at});
      refs.push_back(group);
      at += static_cast<std::size_t>(group.rows) * id_width;
    }
  }
};

class Job {
 public:
  Job(RepartitionOptions const& options, JobEnvironment environment)
      : options_(options),
        environment_(environment),
        workers_(options.threads > 0 ? options.threads : environment.executor.concurrency()),
        started_(environment.clock.now()),
        memory_(options.memory_bytes, resident_) {}

  RepartitionResult run() {
    try {
      return run_within_memory();
    }
    catch (std::bad_alloc const&) {
      fail_for_memory();
    }
    catch (::parquet::ParquetStatusException const& error) {  // from writing: reading translates its own
      if (error.status().IsOutOfMemory()) { fail_for_memory(); }
      throw InternalError(error.what());
    }
    catch (::parquet::ParquetException const& error) {
      throw InternalError(error.what());
    }
  }

 private:
  // The budget refused what no estimate told of. All page headers are looked at now: either one of them makes no sense,
  // or the next limit is named with their sizes known.
  [[noreturn]] void fail_for_memory() {
    staging_.reset();
    outside_ = {};
    memory_.forget_planning();
    std::int64_t least = options_.memory_bytes + options_.memory_bytes / 4;
    if (needs_) {
      JobShape shape = needs_->shape();
      shape.large = look(LookAt::AllPages, LookAtValues::Yes);
      shape.readers = Readers::One;
      least = std::max(least, MemoryNeeds(*input_, leaves_, shape).least_limit(memory_));
    }
    throw NotEnoughMemory(fmt::format("the input holds pages or records for which {} is too little memory",
                                      format_bytes(options_.memory_bytes)),
                          options_.memory_bytes, least);
  }

  [[nodiscard]] LargeNeeds look(LookAt look_at, LookAtValues look_at_values) {
    return large_needs(environment_.file_system, *input_, read_leaves_, key_columns_, workers_, memory_.pool(), look_at,
                       look_at_values, [this] { report_->check_stop(); });
  }

  RepartitionResult run_within_memory() {
    std::vector<InputPath> paths = expand_inputs(environment_.file_system, options_.inputs);
    OutputFolder::check(environment_.file_system, options_.output, options_.overwrite, paths, options_.inputs);
    input_.emplace(environment_.file_system, memory_.pool(), paths);
    auto const columns = find_output_columns(*input_, options_.columns);
    leaves_ = leaf_columns_below(input_->schema(), columns);
    schema_ = output_schema(input_->schema(), columns);
    metadata_ = metadata_for_columns(input_->first_footer(), columns);
    key_columns_ = find_key_columns(*input_, options_.by);
    router_.emplace(*input_, key_columns_, options_.partitions);
    planner_.emplace(input_->row_groups(), input_->total_rows(), options_.partitions,
                     rows_of_full_row_group(*input_, options_.row_group_bytes));
    // More workers than there is to do at once would only take memory.
    workers_ = std::clamp<std::size_t>(
        workers_, 1,
        std::max<std::size_t>({input_->row_groups().size(), static_cast<std::size_t>(options_.partitions), 1}));
    for (LeafColumn const& leaf : leaves_) {
      compression_.push_back(output_compression(*input_, leaf.index, options_.compression));
    }
    read_leaves_ = leaves_and_keys();
    // Verification reads each column twice, at half the cost of writing it, and the keys.
    std::size_t const passes = options_.verify == Verify::Yes ? 2 * leaves_.size() + 1 : leaves_.size();
    report_.emplace(options_, environment_.clock, memory_, *input_, passes);
    admit();
    OutputFolder folder(environment_.file_system, options_.output, options_.overwrite, paths, options_.inputs);
    write_files(folder);
    verify(folder);
    report_->finish();  // before the output is seen: the callback may throw, or ask to stop
    report_->check_stop();
    folder.publish();
    return result();
  }

  [[nodiscard]] std::vector<LeafColumn> leaves_and_keys() const {
    std::vector<LeafColumn> all = leaf_columns(input_->schema());
    std::vector<bool> wanted(all.size());
    for (LeafColumn const& leaf : leaves_) { wanted[static_cast<std::size_t>(leaf.index)] = true; }
    for (int const key : key_columns_) { wanted[static_cast<std::size_t>(key)] = true; }
    std::erase_if(all, [&](LeafColumn const& leaf) { return !wanted[static_cast<std::size_t>(leaf.index)]; });
    return all;
  }

  // Refuses at once what cannot work.
  void admit() {
    memory_.watch();
    JobShape shape{workers_,
                   options_.partitions,
                   router_->id_width(),
                   planner_->most_window_rows(),
                   look(LookAt::Footers, LookAtValues::No),
                   Readers::All,
                   compressor_bytes(compression_),
                   file_compressor_bytes(*input_, leaves_, compression_, options_.partitions)};
    auto const is_refused = [&] {
      for (Readers const readers : {Readers::All, Readers::One}) {
        shape.readers = readers;
        needs_.emplace(*input_, leaves_, shape);
        if (options_.memory_bytes >= needs_->least_limit(memory_)) { return false; }
      }
      return true;
    };
    // Page headers, then values, then the keys are looked at only for a limit that would not do if the worst were true
    // of them; no look will change that there are too many files.
    if (is_refused() && options_.memory_bytes > needs_->outside_bytes()) {
      shape.large = look(LookAt::LargePages, LookAtValues::No);
      if (is_refused() && shape.large.extra_bytes(Readers::One) > 0) {
        shape.large = look(LookAt::LargePages, LookAtValues::Yes);
        memory_.forget_planning();
      }
      if (is_refused()) {
        shape.window_rows = measure_windows();
        is_refused();
      }
    }
    std::int64_t const least = needs_->least_limit(memory_);
    if (options_.admission_check == AdmissionCheck::Yes && options_.memory_bytes < least) {
      // The size of a process differs a little from run to run: what is named must do in the next one.
      std::int64_t const named = least + MemoryNeeds::variation_bytes;
      throw NotEnoughMemory(fmt::format("{} is too little memory for this job", format_bytes(options_.memory_bytes)),
                            options_.memory_bytes, named);
    }
    memory_.end_planning();
    outside_ = memory_.reserve(needs_->outside_bytes(), "footers and page indices");
    staging_.emplace(memory_.pool(), static_cast<std::size_t>(needs_->staging_bytes(memory_)));
    memory_.keep_at_most(needs_->kept_bytes(memory_));
  }

  // Returns: rows of the largest window, found by planning all of them without keeping anything.
  std::int64_t measure_windows() {
    WindowPlanner planner = *planner_;
    std::int64_t largest = 0;
    while (!planner.done()) {
      counts_.assign(static_cast<std::size_t>(options_.partitions), 0);
      for (auto groups = planner.begin_window(); !groups.empty(); groups = planner.extend_window(counts_)) {
        route(groups, [](std::size_t) { return nullptr; });
      }
      largest = std::max(largest, planner.window_rows());
    }
    memory_.forget_planning();
    report_->restart();
    return largest;
  }

  void write_files(OutputFolder const& folder) {
    PartitionFiles files(environment_.file_system, folder, options_.partitions, schema_, compression_, metadata_,
                         workers_, memory_.pool(), report_->bytes_written(), [this] { report_->check_stop(); });
    counts_.assign(static_cast<std::size_t>(options_.partitions), 0);
    while (!planner_->done()) {
      Window const window = route_window();
      files.begin_row_group(counts_);
      for (std::size_t i = 0; i < leaves_.size(); ++i) { run_column(files, window, i); }
      files.end_row_group();
    }
    parallel_for(environment_.executor, workers_, counts_.size(), [&](std::size_t, std::size_t p) { files.finish(p); });
    bytes_out_ = report_->bytes_written().load(std::memory_order_relaxed);
  }

  // What was needed for writing only is given back first, so that a limit that does for writing does for this.
  void verify(OutputFolder const& folder) {
    if (options_.verify == Verify::No) { return; }
    staging_.reset();
    outside_ = {};
    memory_.give_back_unspent();
    std::vector<std::string> paths;
    for (std::int64_t p = 0; p < options_.partitions; ++p) { paths.push_back(folder.part_path(p)); }
    VerificationContext const context{environment_.file_system,
                                      environment_.executor,
                                      memory_.pool(),
                                      needs_->readers_of_any(workers_),
                                      options_.partitions,
                                      needs_->read_buffer_bytes(),
                                      needs_->shape().window_rows,
                                      [this](std::size_t worker, double rows) { report_->add_work(worker, rows); }};
    Verification(context, *input_, {leaves_, *schema_, metadata_}, key_columns_).run(paths);
  }

  void run_column(PartitionFiles& files, Window const& window, std::size_t column) {
    if (column + 1 < leaves_.size()) { input_->will_need(window.refs, leaves_[column + 1].index); }
    PassContext const context{*input_,
                              files,
                              memory_,
                              environment_.executor,
                              workers_,
                              counts_.size(),
                              router_->id_width(),
                              needs_->read_buffer_bytes(),
                              needs_->readers_of(leaves_[column].index),
                              dictionary_usage(compression_[column], options_.partitions),
                              [this](std::size_t worker, double rows) { report_->add_work(worker, rows); }};
    ColumnPass(context, leaves_[column], *schema_->Column(static_cast<int>(column)), window.groups, counts_,
               staging_->first(staging_->size()))
        .run();
    report_->end_column(window.refs, leaves_[column].index);
    adapt_staging();
  }

  // Staging gives way to what the process came to hold outside of the budget.
  void adapt_staging() {
    JobMemory::trim_heap();
    memory_.watch();
    auto const wanted = [&] {
      return static_cast<std::size_t>(needs_->staging_bytes(memory_, static_cast<std::int64_t>(staging_->size())));
    };
    memory_.keep_at_most(needs_->kept_bytes(memory_));
    if (wanted() >= staging_->size()) { return; }
    memory_.give_back_unspent();
    std::size_t const smaller = wanted();
    if (smaller >= staging_->size()) { return; }
    staging_->release();
    memory_.give_back_unspent();
    staging_->make_room(smaller);
  }

  // Pass 0 for the next window.
  Window route_window() {
    Window window;
    std::fill(counts_.begin(), counts_.end(), 0);
    for (auto groups = planner_->begin_window(); !groups.empty(); groups = planner_->extend_window(counts_)) {
      std::size_t const first = window.groups.size();
      for (int const column : key_columns_) { input_->will_need(groups, column); }
      window.add(groups, static_cast<std::size_t>(router_->id_width()), memory_.pool());
      route(groups, [&](std::size_t i) { return window.groups[first + i].ids; });
    }
    input_->will_need(window.refs, leaves_.front().index);
    return window;
  }

  // Routes the rows of `groups` and adds to `counts_`; `ids_of(i)` is where the ids of group i go.
  template <class IdsOf>
  void route(std::span<RowGroupRef const> groups, IdsOf&& ids_of) {
    std::vector<std::unique_ptr<RoutingWorker>> workers(workers_);
    std::vector<std::vector<std::int64_t>> counts(workers_);
    std::size_t const readers = needs_->readers_of(key_columns_) == Readers::One ? 1 : workers_;
    parallel_for(environment_.executor, readers, groups.size(), [&](std::size_t worker, std::size_t i) {
      if (!workers[worker]) {
        workers[worker] = std::make_unique<RoutingWorker>(memory_.pool());
        counts[worker].resize(counts_.size());
      }
      router_->route(groups[i], ids_of(i), counts[worker], *workers[worker], needs_->read_buffer_bytes(),
                     [this] { report_->check_stop(); });
      report_->add_work(worker, static_cast<double>(groups[i].rows) * ProgressReport::routing_weight);
    });
    for (auto const& of_worker : counts) {
      for (std::size_t p = 0; p < of_worker.size(); ++p) { counts_[p] += of_worker[p]; }
    }
  }

  RepartitionResult result() {
    RepartitionResult result;
    result.rows = input_->total_rows();
    result.files = options_.partitions;
    result.bytes_in = input_->total_bytes();
    result.bytes_out = bytes_out_;
    result.seconds = std::chrono::duration<double>(environment_.clock.now() - started_).count();
    result.limit_bytes = memory_.limit_bytes();
    result.baseline_bytes = memory_.baseline_bytes();
    result.peak_resident_bytes = memory_.peak_resident_bytes();
    result.peak_committed_bytes = memory_.peak_committed_bytes();
    result.verified = options_.verify;
    return result;
  }

  RepartitionOptions const& options_;
  JobEnvironment environment_;
  std::size_t workers_;
  Clock::time_point started_;
  ProcResidentMemory resident_;
  JobMemory memory_;
  std::optional<ParquetInput> input_;
  std::vector<LeafColumn> leaves_;       // of the output
  std::vector<LeafColumn> read_leaves_;  // those, and the keys that are not among them
  std::shared_ptr<::parquet::SchemaDescriptor const> schema_;
  std::shared_ptr<::arrow::KeyValueMetadata const> metadata_;
  std::vector<Compression> compression_;  // of each leaf column
  std::vector<int> key_columns_;
  std::optional<RowRouter> router_;
  std::optional<WindowPlanner> planner_;
  std::optional<MemoryNeeds> needs_;
  HostMemoryReservation outside_;  // stands for what Arrow's metadata builders will allocate outside of the budget
  std::optional<ReservedArray<std::byte>> staging_;
  std::optional<ProgressReport> report_;
  std::vector<std::int64_t> counts_;  // rows of the window in each partition
  std::int64_t bytes_out_{0};
};

}  // namespace

RepartitionResult repartition(RepartitionOptions const& options, JobEnvironment environment) {
  check_options(options);
  return Job(options, environment).run();
}

}  // namespace earmark
