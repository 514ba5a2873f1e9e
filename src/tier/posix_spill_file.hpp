// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A nameless file of the operating system, and a transfer on it that takes several calls when the system does a part at
// a time. Private to tier. Thread safety: as `SpillFile`; a transfer is for one thread at a time.
#pragma once

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "core/posix_file.hpp"
#include "earmark/core/spill_disk.hpp"
#include "earmark/tier/posix_spill_disk.hpp"

namespace earmark::detail {

class PosixSpillFile final : public SpillFile {
 public:
  PosixSpillFile(Descriptor descriptor, std::string folder, bool direct) noexcept
      : descriptor_(std::move(descriptor)), folder_(std::move(folder)), direct_(direct) {}

  [[nodiscard]] int place_bytes(std::int64_t offset, std::int64_t bytes) noexcept override;
  void release_bytes(std::int64_t offset, std::int64_t bytes) noexcept override;
  [[nodiscard]] std::string const& folder() const noexcept override { return folder_; }
  [[nodiscard]] bool direct() const noexcept override { return direct_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
  std::string folder_;
  bool direct_;
};

// Throws: FileSystemError; then nothing was left.
[[nodiscard]] std::unique_ptr<SpillFile> create_posix_spill_file(std::string const& folder,
                                                                 PosixSpillDiskOptions const& options);

// Writes a block at the file's beginning and reads it. Returns: whether it was not refused for its size or place (as
// O_DIRECT is on some file systems that take the flag).
[[nodiscard]] bool takes_single_blocks(int descriptor) noexcept;

// What is left of a transfer. The system may do less than it was asked for, or be interrupted.
class TransferProgress {
 public:
  explicit TransferProgress(SpillTransfer const& transfer) noexcept : rest_(transfer) {}

  [[nodiscard]] SpillTransfer const& rest() const noexcept { return rest_; }
  [[nodiscard]] int descriptor() const noexcept { return static_cast<PosixSpillFile*>(rest_.file)->descriptor(); }

  // Takes the result of a call on `rest`: bytes moved, or a negative errno. Returns: whether the transfer has ended.
  [[nodiscard]] bool advance(long result) noexcept {
    if (result == -EINTR || result == -EAGAIN) { return false; }
    if (result < 0) { return end(static_cast<int>(-result)); }
    // Nothing moved without an error would repeat for ever: the end of the file, or a disk that does not take more.
    if (result == 0) { return end(EIO); }
    auto moved = std::min(static_cast<std::size_t>(result), rest_.bytes);
    // The next call must begin at a whole block again.
    if (moved != rest_.bytes) { moved -= moved % spill_alignment; }
    rest_.memory += moved;
    rest_.offset += static_cast<std::int64_t>(moved);
    rest_.bytes -= moved;
    if (moved == 0 && ++without_progress_ == most_without_progress) { return end(EIO); }
    return rest_.bytes == 0;
  }
  [[nodiscard]] SpillOutcome outcome() const noexcept { return {rest_.tag, error_number_}; }

 private:
  // Calls that moved less than a block.
  static constexpr int most_without_progress = 16;

  bool end(int error_number) noexcept {
    error_number_ = error_number;
    return true;
  }

  SpillTransfer rest_;
  int error_number_{0};
  int without_progress_{0};
};

// Does what is left by blocking calls.
void finish_blocking(TransferProgress& progress) noexcept;

}  // namespace earmark::detail
