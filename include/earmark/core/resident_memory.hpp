// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory the process occupies, as the system sees it. Counters of allocators tell less: what they keep after
// a free, code, stacks and foreign libraries all count against a limit on the process. Use it to hold such a limit;
// tests inject numbers of their own through the interface.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>

namespace earmark {

class ResidentMemory {
 public:
  virtual ~ResidentMemory() = default;
  // Returns: bytes resident now. Throws: FileSystemError when the system does not say.
  [[nodiscard]] virtual std::int64_t current_bytes() = 0;
  // Returns: the most bytes that were resident since the process started. Throws: as above.
  [[nodiscard]] virtual std::int64_t peak_bytes() = 0;
};

// Asks /proc: a microsecond or two a call. The kernel counts in batches per thread or core, so a value may trail the
// truth by some hundred KiB. Owns two descriptors; after fork(2) make a new one, the old one still tells of the parent.
class ProcResidentMemory final : public ResidentMemory {
 public:
  // Throws: FileSystemError where /proc is not mounted.
  ProcResidentMemory();
  ProcResidentMemory(ProcResidentMemory const&) = delete;
  ProcResidentMemory& operator=(ProcResidentMemory const&) = delete;
  ~ProcResidentMemory() override;

  [[nodiscard]] std::int64_t current_bytes() override;
  [[nodiscard]] std::int64_t peak_bytes() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace earmark
