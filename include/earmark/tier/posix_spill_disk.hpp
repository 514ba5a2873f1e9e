// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The real disk to spill to. Files are made without a name (O_TMPFILE) or, where the file system cannot, unlinked as
// soon as they are open; they are readable by their user alone and pass by the system's cache where the file system
// allows it. Transfers go through io_uring where the kernel allows it, else through blocking calls on an executor:
// decided once, when the disk is made, and told by `method()`.
//
//   ThreadPool pool{4};
//   PosixSpillDisk disk{pool};
//
// A queue of workers lends a hand itself: whoever waits for a transfer that no thread has begun does it, so a pool
// whose threads are all busy waiting cannot come to a stop. Thread safety: any thread. Ownership: borrows the executor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "earmark/core/executor.hpp"
#include "earmark/core/spill_disk.hpp"

namespace earmark {

enum class UseIoUring : std::uint8_t { WherePossible, Never };
enum class UseDirect : std::uint8_t { WherePossible, Never };
enum class UseUnnamed : std::uint8_t { WherePossible, Never };  // Never: open, then unlink

struct PosixSpillDiskOptions {
  UseIoUring io_uring{UseIoUring::WherePossible};
  UseDirect direct{UseDirect::WherePossible};
  UseUnnamed unnamed{UseUnnamed::WherePossible};
};

class PosixSpillDisk final : public SpillDisk {
 public:
  explicit PosixSpillDisk(Executor& executor, PosixSpillDiskOptions const& options = {});

  [[nodiscard]] std::unique_ptr<SpillFile> create_unnamed(std::string const& folder) override;
  [[nodiscard]] std::unique_ptr<SpillQueue> open_queue(std::size_t depth) override;
  [[nodiscard]] SpillPlace look_at(std::string const& folder) override;
  [[nodiscard]] SpillMethod method() const noexcept override { return method_; }

 private:
  Executor& executor_;
  PosixSpillDiskOptions options_;
  SpillMethod method_;
};

}  // namespace earmark
