// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A bound on bytes, shared by everyone who takes from it: exact admission by one compare-and-swap, never a byte above
// the limit unless someone overbooks, and then the deficit is a number. Use it directly for bytes that no memory
// resource allocates (a file, a socket's buffer); for memory use `ReservationAwareResourceAdaptor`, which holds one.
//
//   Budget budget{1_GiB};
//   if (budget.try_take(64_MiB)) { ...; budget.credit(64_MiB); }
//
// Thread safety: every function may be called from any thread. Ownership: owns nothing but its counters.
// Limits are clamped to `Budget::max_bytes` (2^60 - 1); anything above means "unlimited".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/account.hpp"

namespace earmark {

class Budget {
 public:
  static constexpr std::int64_t max_bytes = detail::Account::max_bytes;

  explicit Budget(std::size_t limit) noexcept : Budget(limit, nullptr) {}
  // A nested budget: what it grants was taken from `lender` first, and goes back there as well.
  Budget(std::size_t limit, detail::Account* lender) noexcept
      : account_(clamp(limit), lender, detail::Credits::PassOn), limit_(clamp(limit)) {}
  Budget(Budget const&) = delete;
  Budget& operator=(Budget const&) = delete;

  // Takes all of `bytes`, or nothing. Returns: whether they were there (false for any size that can never be).
  [[nodiscard]] bool try_take(std::size_t bytes) noexcept;
  // Gives back bytes that were taken. Requires: 0 <= bytes <= what is still out.
  void credit(std::int64_t bytes) noexcept { account_.credit(bytes); }

  // The same with the reason and what was left; `bytes` is at most max_bytes.
  [[nodiscard]] detail::Taken take(std::int64_t bytes) noexcept;
  // Takes even what is not there, into a deficit.
  [[nodiscard]] detail::Taken take_anyway(std::int64_t bytes) noexcept;
  // Takes what there is of `bytes`, in multiples of `granule`, but at least `at_least`.
  [[nodiscard]] detail::Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                         std::int64_t& taken) noexcept;
  // Remembers what a take through `account()` left, for the peak.
  detail::Taken noted(detail::Taken taken) noexcept;

  // Changes the limit at once. Below what is committed is allowed: nothing is taken back, and nothing is granted until
  // enough came back.
  void set_limit(std::size_t limit) noexcept;

  [[nodiscard]] std::int64_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }
  // Limit minus committed, at one instant; negative while overbooked or after the limit was lowered.
  [[nodiscard]] std::int64_t available() const noexcept { return account_.available(); }
  // Bytes taken and not given back, at one instant.
  [[nodiscard]] std::int64_t committed() const noexcept { return read().committed; }
  // The most that was ever committed. Exact, but for takes that race with a change of the limit.
  [[nodiscard]] std::int64_t peak_committed() const noexcept { return peak_.load(std::memory_order_relaxed); }

  // Limit and committed of one instant.
  struct Reading {
    std::int64_t limit{0};
    std::int64_t committed{0};
  };
  [[nodiscard]] Reading read() const noexcept;

  // What reservations name as their heir.
  [[nodiscard]] detail::Account& account() noexcept { return account_; }

 private:
  static constexpr std::int64_t clamp(std::size_t limit) noexcept {
    return limit > static_cast<std::size_t>(max_bytes) ? max_bytes : static_cast<std::int64_t>(limit);
  }

  detail::Account account_;
  std::atomic<std::int64_t> limit_;
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::uint32_t> limit_changes_{0};  // odd while a change is under way
  Mutex limit_mutex_;                            // one change at a time
};

}  // namespace earmark
