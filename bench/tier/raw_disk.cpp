// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "tier/raw_disk.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace earmark::bench {
namespace {

void require(bool well, char const* what) {
  if (!well) {
    std::perror(what);
    std::exit(EXIT_FAILURE);
  }
}

}  // namespace

struct RawDisk::State {
  int file;
  std::byte* memory;
  std::size_t bytes;
  std::size_t block_bytes;
  unsigned in_flight;
  io_uring ring;
};

RawDisk::RawDisk(std::string const& folder, std::size_t bytes, std::size_t block_bytes, unsigned in_flight)
    : state_(new State{
          ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600), nullptr, bytes, block_bytes, in_flight, {}}) {
  require(state_->file >= 0, "open");
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  state_->memory = static_cast<std::byte*>(memory);
  std::memset(state_->memory, 1, bytes);
  require(::io_uring_queue_init(in_flight, &state_->ring, 0) == 0, "io_uring_queue_init");
}

RawDisk::~RawDisk() {
  ::io_uring_queue_exit(&state_->ring);
  ::munmap(state_->memory, state_->bytes);
  ::close(state_->file);
  delete state_;
}

double RawDisk::write() {
  auto const size = static_cast<off_t>(state_->bytes);
  require(::ftruncate(state_->file, 0) == 0, "ftruncate");
  require(::fallocate(state_->file, 0, 0, size) == 0, "fallocate");
  return pass(true);
}

double RawDisk::read() { return pass(false); }

double RawDisk::pass(bool writes) {
  auto const start = std::chrono::steady_clock::now();
  std::size_t next = 0;
  unsigned flying = 0;
  while (next < state_->bytes || flying != 0) {
    while (next < state_->bytes && flying < state_->in_flight) {
      io_uring_sqe* const entry = ::io_uring_get_sqe(&state_->ring);
      auto const bytes = static_cast<unsigned>(state_->block_bytes);
      if (writes) {
        ::io_uring_prep_write(entry, state_->file, state_->memory + next, bytes, next);
      } else {
        ::io_uring_prep_read(entry, state_->file, state_->memory + next, bytes, next);
      }
      next += state_->block_bytes;
      ++flying;
    }
    ::io_uring_submit_and_wait(&state_->ring, 1);
    io_uring_cqe* event = nullptr;
    while (::io_uring_peek_cqe(&state_->ring, &event) == 0) {
      require(event->res == static_cast<int>(state_->block_bytes), "a transfer");
      ::io_uring_cqe_seen(&state_->ring, event);
      --flying;
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace earmark::bench
