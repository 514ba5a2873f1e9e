// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a job through the library: `repartition INPUT OUTPUT KEY`.
#include <exception>
#include <iostream>

#include "earmark/core/bytes.hpp"
#include "earmark/core/clock.hpp"
#include "earmark/core/posix_file_system.hpp"
#include "earmark/core/thread_pool.hpp"
#include "earmark/ops/repartition.hpp"

int main(int argc, char** argv) try {
  using namespace earmark::literals;
  if (argc != 4) { return 2; }
  earmark::PosixFileSystem files;
  earmark::SteadyClock clock;
  earmark::ThreadPool pool{2};
  earmark::RepartitionOptions options;
  options.inputs = {argv[1]};
  options.output = argv[2];
  options.by = {argv[3]};
  options.partitions = 4;
  options.memory_bytes = 256_MiB;
  earmark::RepartitionResult const done = earmark::repartition(options, {pool, clock, files});
  std::cout << done.rows << " rows in " << done.files << " files\n";
}
catch (std::exception const& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
