// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The ledger's one data structure. A budget and a reservation are the same kind of account: what is available and
// whether the account is closed live in one signed 64-bit word, so an admission is one compare-and-swap and a limit is
// never passed for an instant.
//
//   word = (available << 2) | waiters bit | closed bit          (the waiters bit belongs to the wait queue)
//
// A negative `available` is a deficit. Bytes that come back to a closed account go on to its *heir*: the account it was
// granted from, or the one it was merged into. Whoever adds to a closed account takes away exactly what it added, so
// nothing is lost or counted twice however closes and frees interleave.
//
// When to use: through `Budget` and `MemoryReservation`; this header is their engine room. It is a template over the
// atomics so that the tests can run the very same code under a scheduler that explores every interleaving.
// Thread safety: every function may be called from any thread, except `open` (before the account is shared).
// Ownership: an account does not own its heir; whoever opens it keeps the heir alive.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

namespace earmark::detail {

enum class Take : std::uint8_t { Ok, Short, Closed };

// The outcome of a take: `available` is what was left after it (Ok) or what there was (Short).
struct Taken {
  Take result{Take::Closed};
  std::int64_t available{0};
};

// What an open account does with bytes that come back: keep them, or (a nested budget, whose own bytes are lent from
// its heir) count them and pass them on as well.
enum class Credits : std::uint8_t { Keep, PassOn };

// The atomics of programs. `wait_until` is for the few instructions that another thread is inside a sequence.
struct StdAtomics {
  template <class T>
  using Atomic = std::atomic<T>;
  template <class Predicate>
  static void wait_until(Predicate const& ready) noexcept {
    while (!ready()) { std::this_thread::yield(); }
  }
};

template <class Atomics>
class BasicAccount {
 public:
  static constexpr std::int64_t closed_bit = 1;
  static constexpr std::int64_t waiters_bit = 2;
  static constexpr std::int64_t unit = 4;
  // No account holds, owes or grants more than this, so sums of two stay far from the word's ends.
  static constexpr std::int64_t max_bytes = (std::int64_t{1} << 60) - 1;

  // An account that was never opened is closed and empty.
  BasicAccount() noexcept = default;
  BasicAccount(std::int64_t available, BasicAccount* heir, Credits credits = Credits::Keep) noexcept {
    open(available, heir, credits);
  }
  BasicAccount(BasicAccount const&) = delete;
  BasicAccount& operator=(BasicAccount const&) = delete;

  // Starts (again) with `available` bytes, all of them granted. Requires: nobody else uses the account.
  void open(std::int64_t available, BasicAccount* heir, Credits credits = Credits::Keep) noexcept {
    heir_ = heir;
    credits_ = credits;
    merged_ = false;
    granted_.store(available, std::memory_order_relaxed);
    word_.store(available * unit, std::memory_order_release);
  }

  // Takes `bytes` if they are there. Requires: 0 <= bytes <= max_bytes.
  [[nodiscard]] Taken try_take(std::int64_t bytes) noexcept {
    return take_if([bytes](std::int64_t available) { return available >= bytes ? bytes : -1; });
  }
  // Takes `bytes` even into a deficit. Returns: Short only where the deficit would leave the word's range.
  [[nodiscard]] Taken take_anyway(std::int64_t bytes) noexcept {
    return take_if([bytes](std::int64_t available) { return available - bytes >= -max_bytes ? bytes : -1; });
  }
  // Takes as much of `bytes` as there is, in whole multiples of `granule` but at least `at_least`; `taken` says how
  // much. Requires: bytes and at_least are multiples of granule, a power of two.
  [[nodiscard]] Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                 std::int64_t& taken) noexcept {
    return take_if([&](std::int64_t available) {
      taken = std::min(bytes, std::max<std::int64_t>(available, 0) & ~(granule - 1));
      return taken >= at_least ? taken : -1;
    });
  }

  // Gives `bytes` back: to this account if it is open, else to the first open heir, and on from there where credits
  // are passed on. Returns: the first open account that took them; nothing when all were closed (a budget never is).
  BasicAccount* credit(std::int64_t bytes) noexcept {
    BasicAccount* receiver = nullptr;
    for (BasicAccount* account = this; account != nullptr; account = account->heir_) {
      std::int64_t const before = account->word_.fetch_add(bytes * unit, std::memory_order_acq_rel);
      if ((before & closed_bit) != 0) {
        account->word_.fetch_sub(bytes * unit, std::memory_order_relaxed);
        if (!account->merged_) { account->granted_.fetch_sub(bytes, std::memory_order_acq_rel); }
        continue;
      }
      if (receiver == nullptr) { receiver = account; }
      if (account->credits_ == Credits::Keep) { break; }
    }
    return receiver;
  }

  // Changes what is available without an owner's grant: a limit that moved, or a take that is undone before anyone
  // could be told of it. One step, so every admission is wholly before or after it. Requires: the account is open.
  void adjust(std::int64_t delta) noexcept { word_.fetch_add(delta * unit, std::memory_order_acq_rel); }

  // Closes: no takes any more, and what was unspent goes to the heir at once. Idempotent.
  // Returns: the bytes that this call gave back.
  std::int64_t close() noexcept {
    std::int64_t unspent = 0;
    {
      Sequence sequence{*this};
      std::int64_t word = word_.load(std::memory_order_relaxed);
      do {
        if ((word & closed_bit) != 0) { return 0; }
      } while (!word_.compare_exchange_weak(word, closed_bit, std::memory_order_acq_rel, std::memory_order_relaxed));
      unspent = bytes_of(word);
      // From here `granted` is what is still live; a free that saw the closed bit lowers it itself.
      granted_.fetch_sub(unspent, std::memory_order_acq_rel);
    }
    if (unspent != 0 && heir_ != nullptr) { heir_->credit(unspent); }
    return unspent;
  }

  // Closes this account into `other`, with what is live in it: later frees go there.
  // Requires: this one is open; both were granted from the same budget; nobody else closes or merges them now.
  void merge_into(BasicAccount& other) noexcept {
    Sequence mine{*this};
    Sequence theirs{other};
    other.granted_.fetch_add(granted_.exchange(0, std::memory_order_acq_rel), std::memory_order_acq_rel);
    heir_ = &other;
    merged_ = true;
    std::int64_t word = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(word, closed_bit, std::memory_order_acq_rel, std::memory_order_relaxed)) {}
    other.credit(bytes_of(word));
  }

  // Adds bytes that were taken from the heir. If the account was closed meanwhile they go on: to what it was merged
  // into, or back. Returns: false when they went back.
  bool grow(std::int64_t bytes) noexcept {
    {
      Sequence sequence{*this};  // close and merge happen inside a sequence too, so the bit cannot change here
      if ((word_.load(std::memory_order_relaxed) & closed_bit) == 0) {
        granted_.fetch_add(bytes, std::memory_order_acq_rel);
        word_.fetch_add(bytes * unit, std::memory_order_acq_rel);
        return true;
      }
    }
    if (merged_) { return heir_->grow(bytes); }
    if (heir_ != nullptr) { heir_->credit(bytes); }
    return false;
  }
  // Takes `bytes` out of the account's grant, for another account (split) or the heir (shrink).
  [[nodiscard]] Taken detach(std::int64_t bytes) noexcept {
    Sequence sequence{*this};
    Taken const taken = try_take(bytes);
    if (taken.result == Take::Ok) { granted_.fetch_sub(bytes, std::memory_order_acq_rel); }
    return taken;
  }
  // Takes everything unspent out of the account's grant. Returns: how much.
  [[nodiscard]] std::int64_t detach_unspent() noexcept {
    Sequence sequence{*this};
    std::int64_t taken = 0;
    if (take_up_to(max_bytes, 0, 1, taken).result != Take::Ok) { return 0; }
    granted_.fetch_sub(taken, std::memory_order_acq_rel);
    return taken;
  }

  // One moment of the account. While open, `granted - available` is what is live; once closed, `granted` is.
  struct Reading {
    std::int64_t granted{0};
    std::int64_t available{0};
    bool closed{true};
    [[nodiscard]] std::int64_t live() const noexcept { return granted - available; }
  };
  [[nodiscard]] Reading read() const noexcept {
    for (;;) {
      std::uint32_t const before = sequence_.load(std::memory_order_acquire);
      if ((before & 1U) == 0) {
        std::int64_t const granted = granted_.load(std::memory_order_acquire);
        std::int64_t const word = word_.load(std::memory_order_acquire);
        if (sequence_.load(std::memory_order_relaxed) == before) {
          bool const closed = (word & closed_bit) != 0;
          return {granted, closed ? 0 : bytes_of(word), closed};
        }
      }
      Atomics::wait_until([this] { return !in_sequence(); });
    }
  }

  [[nodiscard]] std::int64_t available() const noexcept { return bytes_of(word_.load(std::memory_order_acquire)); }
  [[nodiscard]] std::int64_t granted() const noexcept { return granted_.load(std::memory_order_acquire); }
  [[nodiscard]] bool closed() const noexcept { return (word_.load(std::memory_order_acquire) & closed_bit) != 0; }

  [[nodiscard]] static constexpr std::int64_t bytes_of(std::int64_t word) noexcept { return word >> 2; }

 private:
  // `granted` and the word are two words; whoever changes both does so inside a sequence, so that a reader can tell.
  // It is a spin lock of a few instructions: nothing is called and no byte of the heir is taken inside it.
  class Sequence {
   public:
    explicit Sequence(BasicAccount& account) noexcept : account_(account) {
      for (;;) {
        std::uint32_t now = account_.sequence_.load(std::memory_order_relaxed);
        if ((now & 1U) == 0 && account_.sequence_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel,
                                                                        std::memory_order_relaxed)) {
          return;
        }
        Atomics::wait_until([this] { return !account_.in_sequence(); });
      }
    }
    ~Sequence() { account_.sequence_.fetch_add(1, std::memory_order_release); }
    Sequence(Sequence const&) = delete;
    Sequence& operator=(Sequence const&) = delete;

   private:
    BasicAccount& account_;
  };

  [[nodiscard]] bool in_sequence() const noexcept { return (sequence_.load(std::memory_order_relaxed) & 1U) != 0; }

  // `choose(available)` returns the bytes to take, or -1 for "not enough".
  template <class Choose>
  [[nodiscard]] Taken take_if(Choose const& choose) noexcept {
    std::int64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      std::int64_t const available = bytes_of(word);
      if ((word & closed_bit) != 0) { return {Take::Closed, 0}; }
      std::int64_t const bytes = choose(available);
      if (bytes < 0) { return {Take::Short, available}; }
      if (word_.compare_exchange_weak(word, word - bytes * unit, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return {Take::Ok, available - bytes};
      }
    }
  }

  typename Atomics::template Atomic<std::int64_t> word_{closed_bit};
  typename Atomics::template Atomic<std::int64_t> granted_{0};  // by the owner's view; see `read`
  BasicAccount* heir_{nullptr};  // written before the closed bit is set, read only after it was seen
  typename Atomics::template Atomic<std::uint32_t> sequence_{0};
  Credits credits_{Credits::Keep};
  bool merged_{false};  // what was live moved to the heir's grant
};

using Account = BasicAccount<StdAtomics>;
static_assert(sizeof(Account) == 32, "an account is half a cache line");

}  // namespace earmark::detail
