// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How bytes get from one kind of memory to another: an interface for each pair of tiers that can be addressed. Between
// kinds of host memory it is `HostCopier`; one for device memory comes with the part that knows the device. What lies
// on a disk is reached through host memory, by `DiskTier`.
//
//   copier.copy(to, from, bytes, stream);
//   EventHandle const mark = copier.events().record(stream);       // both sides are free again behind it
//
// Thread safety: any thread. Ownership: outlives what was given to it.
#pragma once

#include <cstddef>
#include <cstring>
#include <cuda/stream_ref>

#include "earmark/memory/stream_events.hpp"

namespace earmark {

class MemoryCopier {
 public:
  MemoryCopier() = default;
  MemoryCopier(MemoryCopier const&) = delete;
  MemoryCopier& operator=(MemoryCopier const&) = delete;
  virtual ~MemoryCopier() = default;

  // Copies behind all that `stream` has been given; it may return before that is done. Requires: neither overlaps the
  // other. Throws: what the device reports.
  virtual void copy(std::byte* to, std::byte const* from, std::size_t bytes, cuda::stream_ref stream) = 0;
  // What tells when a copy is done.
  [[nodiscard]] virtual StreamEvents& events() noexcept = 0;
};

// Done when it returns.
class HostCopier final : public MemoryCopier {
 public:
  void copy(std::byte* to, std::byte const* from, std::size_t bytes, cuda::stream_ref) override {
    if (bytes != 0) { std::memcpy(to, from, bytes); }
  }
  [[nodiscard]] StreamEvents& events() noexcept override { return events_; }

 private:
  HostStreamEvents events_;
};

}  // namespace earmark
