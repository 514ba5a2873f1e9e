// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes that lie on a disk: an owner of their space, with what is needed to tell whether they come back unharmed. Made
// and read by `DiskTier`. Thread safety: as any value; reading the same bytes by several threads at once is fine.
// Ownership: the space goes back to the reservation it was drawn from, and to the file system, when this goes. It may
// outlive the tier's handles, not the file system and disk beneath.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "earmark/tier/disk_space.hpp"

namespace earmark {

class SpilledBytes {
 public:
  SpilledBytes(SpilledBytes&& other) noexcept
      : resource_(other.resource_),
        extent_(std::exchange(other.extent_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        checksums_(std::move(other.checksums_)) {}
  SpilledBytes& operator=(SpilledBytes&& other) noexcept {
    SpilledBytes taken{std::move(other)};
    std::swap(resource_, taken.resource_);
    std::swap(extent_, taken.extent_);
    std::swap(bytes_, taken.bytes_);
    std::swap(checksums_, taken.checksums_);
    return *this;
  }
  ~SpilledBytes() {
    if (extent_ != nullptr) { resource_.deallocate_sync(extent_, bytes_); }
  }

  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  friend class DiskTier;
  // Takes `bytes` of space. Throws: ReservationExhausted, ReservationClosed, FileSystemError.
  SpilledBytes(DiskSpaceReservation::Resource resource, std::size_t bytes, std::size_t blocks)
      : resource_(std::move(resource)), checksums_(blocks) {
    extent_ = resource_.allocate_sync(bytes);
    bytes_ = bytes;
  }

  DiskSpaceReservation::Resource resource_;
  void* extent_{nullptr};
  std::size_t bytes_{0};
  std::vector<std::uint64_t> checksums_;  // one for each block
};

}  // namespace earmark
