// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a budget that each core keeps at hand, so that many threads which reserve and give back all day do not meet
// at one word. What lies here counts as committed until it is *frozen*: drained back into the budget's word, where
// refusals, waiting and exact readings are decided. Internal; see `BasicBudget`.
//
//   thawed   each core takes from and gives to its own slack, up to a cap; the rest goes through the word
//   frozen   every slack is empty and stays so; the word alone is the truth
//
//   changing  as frozen, while the budget changes what the word means (its limit)
//
// `epoch` says which, and never comes back to a value: between two loads of the same frozen one nothing was thawed, so
// what the word said was the truth; between two loads of the same one that is not changing, the limit stood still. Each
// step happens under the owner's lock.
// Thread safety: `take`, `give` and `epoch` from any thread; `freeze`, `thaw` under the owner's lock.
// It is a template over the atomics, so that tests can run it under a scheduler that explores every interleaving.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "earmark/memory/account.hpp"

namespace earmark::detail {

template <class Atomics>
class BasicCoreSlack {
 public:
  // `cores`: how many slacks to keep; 0 for none: then everything goes through the word.
  explicit BasicCoreSlack(std::size_t cores)
      : mask_(cores == 0 ? 0 : std::bit_ceil(cores) - 1),
        slacks_(cores == 0 ? nullptr : std::make_unique<Slack[]>(mask_ + 1)) {}

  [[nodiscard]] bool exists() const noexcept { return slacks_ != nullptr; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_.load(std::memory_order_acquire); }
  [[nodiscard]] static bool frozen(std::uint32_t epoch) noexcept { return (epoch & 3U) == Frozen; }
  [[nodiscard]] static bool thawed(std::uint32_t epoch) noexcept { return (epoch & 3U) == Thawed; }
  [[nodiscard]] static bool changing(std::uint32_t epoch) noexcept { return (epoch & 3U) == Changing; }

  // Takes `bytes` from the caller's core. Requires: an epoch that was thawed. Returns: whether they were there.
  [[nodiscard]] bool take(std::int64_t bytes) noexcept {
    auto& word = slacks_[Atomics::core() & mask_].word;
    std::int64_t now = word.load(std::memory_order_relaxed);
    while ((now & frozen_bit) == 0 && (now >> 1) >= bytes) {
      if (word.compare_exchange_weak(now, now - bytes * 2, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  // Leaves `bytes` with the caller's core, unless it would then have more than `cap`. Requires: as `take`. Returns:
  // whether it did.
  [[nodiscard]] bool give(std::int64_t bytes, std::int64_t cap) noexcept {
    auto& word = slacks_[Atomics::core() & mask_].word;
    std::int64_t now = word.load(std::memory_order_relaxed);
    while ((now & frozen_bit) == 0 && (now >> 1) + bytes <= cap) {
      if (word.compare_exchange_weak(now, now + bytes * 2, std::memory_order_release, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  // Requires: the owner's lock; frozen now (thaw) or thawed (freeze). Freeze returns what was drained.
  void thaw() noexcept {
    enter(Thawed);  // first: see `epoch`
    for (std::size_t i = 0; i <= mask_; ++i) { slacks_[i].word.store(0, std::memory_order_release); }
  }
  [[nodiscard]] std::int64_t freeze() noexcept {
    std::int64_t drained = 0;
    for (std::size_t i = 0; i <= mask_; ++i) {
      drained += slacks_[i].word.exchange(frozen_bit, std::memory_order_acq_rel) >> 1;
    }
    return drained;
  }
  // Requires: the owner's lock. What was drained is in the budget's word again.
  void frozen_and_settled() noexcept { enter(Frozen); }
  // Brackets a change of what the word means. Requires: the owner's lock, frozen.
  void begin_change() noexcept { enter(Changing); }
  void end_change() noexcept { enter(Frozen); }

  // What all cores have now, read one by one.
  [[nodiscard]] std::int64_t sum() const noexcept {
    std::int64_t sum = 0;
    for (std::size_t i = 0; slacks_ != nullptr && i <= mask_; ++i) {
      sum += slacks_[i].word.load(std::memory_order_relaxed) >> 1;
    }
    return sum;
  }

 private:
  enum State : std::uint32_t { Frozen = 0, Thawed = 1, Changing = 2 };

  void enter(State state) noexcept {
    std::uint32_t const next = (epoch_.load(std::memory_order_relaxed) & ~3U) + 4;
    epoch_.store(next | state, std::memory_order_release);
  }

  static constexpr std::int64_t frozen_bit = 1;
  // 128: two neighbours must not share what the hardware fetches in pairs of cache lines.
  struct alignas(128) Slack {
    typename Atomics::template Atomic<std::int64_t> word{frozen_bit};  // bytes * 2 | frozen
  };

  std::size_t mask_;
  std::unique_ptr<Slack[]> slacks_;
  typename Atomics::template Atomic<std::uint32_t> epoch_{0};
};

}  // namespace earmark::detail
