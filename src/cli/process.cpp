// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace earmark::cli {
namespace {

// Blocks from this size on are mapped, so that freeing one gives it back at once. Fixed, because malloc would raise the
// threshold after the first big block and keep the next ones in the heap.
constexpr int mapped_block_bytes = 256 << 10;
// The top of the heap that malloc may keep.
constexpr int kept_heap_bytes = 256 << 10;

void prepare_allocator() noexcept {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, mapped_block_bytes);
  ::mallopt(M_TRIM_THRESHOLD, kept_heap_bytes);
  // Whatever of Arrow does not use the job's pool must not start an allocator of its own.
  ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 0);
}

void open_closed_descriptors() noexcept {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      // The lowest free number is this one, since the ones below it are open.
      [[maybe_unused]] auto const opened = ::open("/dev/null", O_RDWR);
    }
  }
}

void raise_open_files() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

void prepare_process() noexcept {
  prepare_allocator();
  open_closed_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  raise_open_files();
}

void end_process(int exit_code) noexcept {
#ifdef EARMARK_RUN_EXIT_HANDLERS
  std::exit(exit_code);
#else
  ::_exit(exit_code);
#endif
}

Written write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    auto const count = ::write(descriptor, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      return errno == EPIPE ? Written::ReaderGone : Written::Failed;
    }
  }
  return Written::All;
}

}  // namespace earmark::cli
