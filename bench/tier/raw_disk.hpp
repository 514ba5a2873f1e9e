// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What a disk does by itself: blocks written and read past the system's cache, several in flight, with nothing around
// it. The ceiling of the disk tier. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <string>

namespace earmark::bench {

class RawDisk {
 public:
  // An unnamed file of `bytes` in `folder`, and as much memory.
  RawDisk(std::string const& folder, std::size_t bytes, std::size_t block_bytes, unsigned in_flight);
  RawDisk(RawDisk const&) = delete;
  RawDisk& operator=(RawDisk const&) = delete;
  ~RawDisk();

  // Seconds that one pass over the file takes. The file's space is taken anew by each `write`.
  [[nodiscard]] double write();
  [[nodiscard]] double read();

 private:
  [[nodiscard]] double pass(bool writes);

  struct State;
  State* state_;
};

}  // namespace earmark::bench
