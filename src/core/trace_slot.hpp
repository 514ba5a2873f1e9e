// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// One place of a trace ring: a few words that are written and read as a whole, without locks, by any number of writers
// and readers. Each write has a ticket of its own; a larger one is newer. A template over its atomics, so that tests
// run the very same code in every order of its steps.
// Thread safety: any thread. No function waits for another thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace earmark::detail {

template <class Atomics, std::size_t N>
class TraceSlot {
 public:
  using Words = std::array<std::uint64_t, N>;

  // Returns: whether the words were written; not while another writer is inside, nor over those of a newer ticket.
  bool try_write(std::uint64_t ticket, Words const& words) noexcept {
    std::uint64_t seen = stamp_.load(std::memory_order_relaxed);
    do {
      bool const is_taken = (seen & 1U) != 0 || seen > 2 * ticket;
      if (is_taken) { return false; }
      // Acquire: what the former writer stored comes before what is stored now.
    } while (!stamp_.compare_exchange_weak(seen, 2 * ticket + 1, std::memory_order_acquire, std::memory_order_relaxed));
    for (std::size_t i = 0; i < N; ++i) { words_[i].store(words[i], std::memory_order_release); }
    stamp_.store(2 * ticket + 2, std::memory_order_release);
    return true;
  }

  // Returns: whether `words` are now those of `ticket`, whole. A word that a later writer stored came after that
  // writer's claim, so whoever sees the word sees the claim in the second look at the stamp.
  bool try_read(std::uint64_t ticket, Words& words) const noexcept {
    std::uint64_t const whole = 2 * ticket + 2;
    if (stamp_.load(std::memory_order_acquire) != whole) { return false; }
    for (std::size_t i = 0; i < N; ++i) { words[i] = words_[i].load(std::memory_order_acquire); }
    return stamp_.load(std::memory_order_relaxed) == whole;
  }

 private:
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

  Atomic<std::uint64_t> stamp_{0};  // 2 * ticket + 1 while it is written, 2 * ticket + 2 afterwards; 0 at first
  Atomic<std::uint64_t> words_[N]{};
};

}  // namespace earmark::detail
