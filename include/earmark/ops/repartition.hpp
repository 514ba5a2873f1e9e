// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The repartition job: Parquet in, exactly N Parquet files out, rows placed by the hash of their key columns, inside a
// memory limit. Use it from any program; the command `earmark repartition` is a thin shell over it.
//
//   earmark::PosixFileSystem files;
//   earmark::SteadyClock clock;
//   earmark::ThreadPool pool{2};
//   earmark::RepartitionOptions options;
//   options.inputs = {"in/*.parquet"};
//   options.by = {"l_orderkey"};
//   options.partitions = 64;
//   options.output = "out";
//   options.memory_bytes = 512_MiB;
//   earmark::RepartitionResult done = earmark::repartition(options, {pool, clock, files});
//
// Thread safety: several jobs may run at once, each with its own options; the memory limit is one of the process, so
// give each its share. The calling thread works too and is the only one that calls `progress`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "earmark/core/clock.hpp"
#include "earmark/core/executor.hpp"
#include "earmark/core/file_system.hpp"

namespace earmark {

enum class Overwrite { No, Yes };
enum class AdmissionCheck { Yes, No };
enum class Verify { No, Yes };

// How output columns are compressed.
struct Compression {
  enum class Codec { None, Snappy, Gzip, Brotli, Zstd, Lz4 };
  Codec codec{Codec::Snappy};
  std::optional<int> level;  // the codec's own default when absent
};

// One look at a running job. Counts only grow.
struct RepartitionProgress {
  double fraction{0};    // of the whole work, 0 to 1
  std::int64_t rows{0};  // rows that the job has placed so far (estimated from `fraction`)
  std::int64_t total_rows{0};
  std::int64_t bytes_read{0};       // compressed input bytes
  std::int64_t bytes_written{0};    // output bytes
  std::int64_t resident_bytes{0};   // resident size of the process now
  std::int64_t committed_bytes{0};  // bytes committed in the job's budget now
};

struct RepartitionOptions {
  std::vector<std::string> inputs;  // files, folders, globs
  std::vector<std::string> by;      // key columns, by their full top-level name
  // Top-level columns to write, in any order; absent: all. The output has them in the order of the input; keys need not
  // be among them.
  std::optional<std::vector<std::string>> columns;
  std::int64_t partitions{0};  // 1 to 2^31 - 1
  std::string output;          // folder to create
  Overwrite overwrite{Overwrite::No};
  std::int64_t memory_bytes{0};                 // bound on the resident size of the process
  std::size_t threads{0};                       // workers, the caller included; 0: the executor's concurrency
  std::optional<Compression> compression;       // absent: each column's own
  std::optional<std::int64_t> row_group_bytes;  // absent: a row group is full at 122,880 rows or 64 MiB of Arrow
  AdmissionCheck admission_check{AdmissionCheck::Yes};
  // Yes: before the output is published, it and the input are read again and compared. A difference is an
  // InternalError.
  Verify verify{Verify::No};
  std::function<void(RepartitionProgress const&)> progress;  // called now and then, at most every 50 ms
  std::stop_token stop;                                      // a requested stop ends the job with `JobInterrupted`
};

struct RepartitionResult {
  std::int64_t rows{0};
  std::int64_t files{0};
  std::int64_t bytes_in{0};   // size of the input files
  std::int64_t bytes_out{0};  // size of the output files
  double seconds{0};
  std::int64_t limit_bytes{0};
  std::int64_t baseline_bytes{0};        // resident size before the job
  std::int64_t peak_resident_bytes{0};   // of the process
  std::int64_t peak_committed_bytes{0};  // of the job's budget
  std::int64_t spilled_bytes{0};         // always 0: repartition spills nothing
  std::int64_t waits{0};
  double wait_seconds{0};
  Verify verified{Verify::No};  // Yes: the output was read back and holds exactly the rows of the input
};

// What a job runs on. The executor's threads, the clock and the disk are borrowed for the call.
struct JobEnvironment {
  Executor& executor;
  Clock const& clock;
  FileSystem& file_system;
};

// Runs the job. The output folder appears complete, by one rename, or not at all; after any error the target is as it
// was and nothing is left beside it.
// Throws: UsageError, OutputError, InputError, NotEnoughMemory, FileSystemError, JobInterrupted, InternalError
// (`earmark/ops/errors.hpp`).
// Blocks: until the job is done or failed.
RepartitionResult repartition(RepartitionOptions const& options, JobEnvironment environment);

}  // namespace earmark
