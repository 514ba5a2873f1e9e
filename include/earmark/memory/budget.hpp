// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A bound on bytes, shared by everyone who takes from it: exact admission by one compare-and-swap, never a byte above
// the limit unless someone overbooks, and then the deficit is a number. Use it directly for bytes that no memory
// resource allocates (a file, a socket's buffer); for memory use `ReservationAwareResourceAdaptor`, which holds one.
//
//   Budget budget{1_GiB};
//   if (budget.try_take(64_MiB)) { ...; budget.credit(64_MiB); }
//   budget.take_blocking(64_MiB);                                    // waits its turn
//
// Thread safety: every function may be called from any thread. Ownership: owns nothing but its counters; whoever waits
// must be gone before the budget is.
// Limits are clamped to `Budget::max_bytes` (2^60 - 1); anything above means "unlimited".
#pragma once

#include <cstddef>
#include <cstdint>

#include "earmark/core/clock.hpp"
#include "earmark/memory/basic_budget.hpp"
#include "earmark/memory/reservation_options.hpp"

namespace earmark {

class Budget {
 public:
  static constexpr std::int64_t max_bytes = detail::Account::max_bytes;

  // `Tracking::Exact`: the peak is exact to the byte, for a word that all threads share however many they are.
  explicit Budget(std::size_t limit, Tracking tracking = Tracking::PerReservation);

  // Takes all of `bytes`, or nothing. Returns: whether they were there and nobody waits for them (false for any size
  // that can never be).
  [[nodiscard]] bool try_take(std::size_t bytes) noexcept;
  // Takes even what is not there, into a deficit. Returns: false only where the deficit could not be counted.
  [[nodiscard]] bool take_anyway(std::size_t bytes) noexcept;
  // Waits for its turn. Blocks: until the bytes were taken. Throws: ReservationRefused at the deadline,
  // ReservationAborted, ImpossibleRequest; then nothing was taken.
  void take_blocking(std::size_t bytes, WaitOptions const& wait = {});
  // Gives back bytes that were taken; who waited for them gets them on this thread. Requires: 0 <= bytes <= what is
  // still out.
  void credit(std::int64_t bytes) noexcept { core_.credit(bytes); }

  // Changes the limit at once. Below what is committed is allowed: nothing is taken back, and nothing is granted until
  // enough came back. Requests that wait for more than the limit fail with ImpossibleRequest.
  void set_limit(std::size_t limit) noexcept { core_.set_limit(clamp(limit)); }
  // Ends all waiting, now and later, with ReservationAborted.
  void shutdown() noexcept { core_.shut_down(); }

  [[nodiscard]] std::int64_t limit() const noexcept { return core_.limit(); }
  // Limit minus committed, at one instant; negative while overbooked or after the limit was lowered.
  [[nodiscard]] std::int64_t available() const noexcept { return core_.available(); }
  // Bytes taken and not given back, at one instant.
  [[nodiscard]] std::int64_t committed() const noexcept { return core_.read().committed; }
  // The most that was ever committed. Where threads meet often and memory is plentiful, cores keep bytes at hand (1/256
  // of the limit each at most), which count as committed here; with Tracking::Exact none do.
  [[nodiscard]] std::int64_t peak_committed() const noexcept { return core_.peak(); }
  // Limit and committed of one instant.
  using Reading = detail::BasicBudget<detail::StdAtomics>::Reading;
  [[nodiscard]] Reading read() const noexcept { return core_.read(); }
  // Bytes that must come back for the first who waits to be served, or for a deficit to end; else 0.
  [[nodiscard]] std::int64_t pressure() const noexcept { return core_.pressure(); }

  // Returns: `limit`, at most max_bytes.
  [[nodiscard]] static constexpr std::int64_t clamp(std::size_t limit) noexcept {
    return limit > static_cast<std::size_t>(max_bytes) ? max_bytes : static_cast<std::int64_t>(limit);
  }

 private:
  mutable detail::BasicBudget<detail::StdAtomics> core_;  // an exact reading may have to collect what cores keep
};

}  // namespace earmark
