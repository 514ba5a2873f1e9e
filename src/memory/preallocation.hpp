// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The one block of memory that a preallocated reservation took from its upstream, and the carver that cuts it up. The
// reservation's balance is what the carver has left; its account has nothing to give until the end.
//
// The carver lives as long as the reservation's control block does, whatever becomes of the memory: whoever looks at
// it, or frees something elsewhere, needs no more than a reference to the reservation. Thread safety: the carver's any
// thread; the rest is for the reservation's owner, or for whoever was told to give the memory back. Ownership: owns its
// piece of the upstream; borrows the ledger.
#pragma once

#include <cstddef>

#include "earmark/memory/reservation_options.hpp"
#include "memory/carver.hpp"

namespace earmark::detail {

class Ledger;

class Preallocation {
 public:
  // Throws: what the upstream throws, std::bad_alloc.
  Preallocation(Ledger& ledger, std::size_t bytes, FallbackPolicy fallback);
  Preallocation(Preallocation const&) = delete;
  Preallocation& operator=(Preallocation const&) = delete;
  ~Preallocation() { give_back(); }

  [[nodiscard]] Carver& carver() noexcept { return carver_; }
  [[nodiscard]] Carver const& carver() const noexcept { return carver_; }
  [[nodiscard]] FallbackPolicy fallback() const noexcept { return fallback_; }

  // Frees the memory, behind whatever used it last. Idempotent. Requires: nothing is live, and the carver is closed or
  // being rebuilt.
  void give_back() noexcept;
  // Takes `bytes` from the upstream (0: none). Requires: it has none. Throws: as the constructor; then it has none.
  void take(std::size_t bytes);

 private:
  Carver carver_;
  Ledger& ledger_;
  void* base_{nullptr};
  std::size_t bytes_{0};
  FallbackPolicy fallback_;
};

}  // namespace earmark::detail
