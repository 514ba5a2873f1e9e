// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The disk as memory spills to it: files without names, which are gone with the process however it ends, and many
// transfers in flight at once. An interface, so that tests can make any of it fail (`testing::FaultySpillDisk`);
// `PosixSpillDisk` of the tier floor is the real one. For files that people see, use `FileSystem`.
//
//   std::unique_ptr<SpillFile> file = disk.create_unnamed("/data/spill");
//   std::unique_ptr<SpillQueue> queue = disk.open_queue(4);
//   queue->submit({.direction = SpillDirection::Write, .file = file.get(), .memory = page, .bytes = 4096, .tag = 7});
//   SpillOutcome const outcome = queue->wait();             // outcome.tag == 7
//
// What is moved is whole blocks of `spill_alignment`: memory, offset and bytes are multiples of it, so that the same
// calls work where the system's cache is passed by.
// Thread safety: a disk may be used from any thread, and so may a file's `place_bytes` and `release_bytes`; a queue is
// for one thread at a time. Ownership: the disk outlives its files and queues, a file the transfers on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "earmark/core/error.hpp"

namespace earmark {

// What every transfer's memory, offset and size is a multiple of.
inline constexpr std::size_t spill_alignment = 4096;

class SpillFile {
 public:
  SpillFile() = default;
  SpillFile(SpillFile const&) = delete;
  SpillFile& operator=(SpillFile const&) = delete;
  virtual ~SpillFile() = default;

  // Asks the file system to set space aside for a range, so that a full disk shows before anything is written. Where it
  // cannot do that, nothing happens. Returns: 0, or an errno. Blocks: for the file system.
  [[nodiscard]] virtual int place_bytes(std::int64_t offset, std::int64_t bytes) noexcept = 0;
  // Gives a range's space back to the file system, where that can be done. Blocks: for the file system.
  virtual void release_bytes(std::int64_t offset, std::int64_t bytes) noexcept = 0;

  // For messages: the folder in which the file lies.
  [[nodiscard]] virtual std::string const& folder() const noexcept = 0;
  // Whether transfers pass by the system's cache (O_DIRECT).
  [[nodiscard]] virtual bool direct() const noexcept = 0;
};

enum class SpillDirection : std::uint8_t { Read, Write };

// One transfer between memory and a file. Requires: see above; `memory` stays untouched until it is done.
struct SpillTransfer {
  SpillDirection direction{SpillDirection::Read};
  SpillFile* file{nullptr};
  std::byte* memory{nullptr};
  std::size_t bytes{0};
  std::int64_t offset{0};
  std::uint64_t tag{0};  // the caller's, to know it again
};

// How a transfer ended. `error_number` is 0 when all bytes were moved, else an errno; a read beyond the end is EIO.
struct SpillOutcome {
  std::uint64_t tag{0};
  int error_number{0};
};

// Transfers in flight, in no order. Destroying it waits for them.
class SpillQueue {
 public:
  SpillQueue() = default;
  SpillQueue(SpillQueue const&) = delete;
  SpillQueue& operator=(SpillQueue const&) = delete;
  virtual ~SpillQueue() = default;

  // Starts a transfer. Requires: fewer than the queue's depth are in flight. What goes wrong is told by `wait`.
  virtual void submit(SpillTransfer const& transfer) noexcept = 0;
  // Returns: how one of the transfers in flight ended. Requires: there is one. Blocks: until one has.
  [[nodiscard]] virtual SpillOutcome wait() noexcept = 0;
  // Whether it is worth keeping: false once the system has refused to go on. What it was given is done all the same.
  [[nodiscard]] virtual bool usable() const noexcept { return true; }
};

// How transfers are done.
enum class SpillMethod : std::uint8_t {
  IoUring,  // by the kernel, through a ring
  Workers,  // by blocking calls on an executor's threads
};

// Returns: the name in reports: "io_uring", "workers".
[[nodiscard]] constexpr std::string_view to_string(SpillMethod method) noexcept {
  return method == SpillMethod::IoUring ? "io_uring" : "workers";
}

// A folder, as the system sees it.
struct SpillPlace {
  FixedText<23> file_system;   // "ext4", "tmpfs", or a number where the name is not known
  bool held_in_memory{false};  // its files take memory, not a disk's space
  std::int64_t free_bytes{0};  // for this user
};

class SpillDisk {
 public:
  virtual ~SpillDisk() = default;

  // Returns: a new, empty file in `folder` that nobody else can open and that needs no removing.
  // Throws: FileSystemError; then nothing was left.
  [[nodiscard]] virtual std::unique_ptr<SpillFile> create_unnamed(std::string const& folder) = 0;
  // Returns: a queue for up to `depth` (at least 1) transfers at once. Throws: FileSystemError, std::bad_alloc.
  [[nodiscard]] virtual std::unique_ptr<SpillQueue> open_queue(std::size_t depth) = 0;
  // Throws: FileSystemError when there is no such folder.
  [[nodiscard]] virtual SpillPlace look_at(std::string const& folder) = 0;
  // Decided when the disk was made.
  [[nodiscard]] virtual SpillMethod method() const noexcept = 0;
};

}  // namespace earmark
