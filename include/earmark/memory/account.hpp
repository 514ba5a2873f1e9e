// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The ledger's one data structure. A budget and a reservation are the same kind of account: what is available and
// whether the account is closed live in one signed 64-bit word, so an admission is one compare-and-swap and a limit is
// never passed for an instant.
//
//   word = (available << 2) | waiters bit | closed bit
//
// The waiters bit says that somebody waits for bytes of this account: whoever brings some back then tells its
// `Waiters`. A negative `available` is a deficit. Bytes that come back to a closed account go on to its *heir*: the
// account it was granted from, or the one it was merged into. Whoever adds to a closed account takes away exactly what
// it added, so nothing is lost or counted twice however closes and frees interleave.
//
// When to use: through `Budget` and `MemoryReservation`; this header is their engine room. It is a template over the
// atomics so that the tests can run the very same code under a scheduler that explores every interleaving.
// Thread safety: every function may be called from any thread, except `open` (before the account is shared).
// Ownership: an account does not own its heir; whoever opens it keeps the heir alive.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>

#include "earmark/core/thread_annotations.hpp"

namespace earmark::detail {

enum class Take : std::uint8_t {
  Ok,
  Short,       // not enough is available
  Closed,      // the account is closed
  Queue,       // others wait: nobody may pass them
  QuotaShort,  // there is enough, but not for this consumer
  Impossible,  // more than the limit: waiting cannot help
  Aborted,     // the consumer was aborted, or nobody may wait any more
};

// The outcome of a take: `available` is what was left after it (Ok) or what there was (Short). It fits two registers.
struct Taken {
  constexpr Taken() noexcept = default;
  constexpr Taken(Take outcome, std::int64_t there = 0, bool with_others = false) noexcept
      : result(outcome), contended(with_others), available(there) {}

  Take result{Take::Closed};
  bool contended{false};  // other threads were at the same word
  std::int64_t available{0};
};

// Whether a take may go ahead of those who wait.
enum class Pass : std::uint8_t { No, Yes };

// Whether those who wait are told of bytes that were added.
enum class Tell : std::uint8_t { No, Yes };

// What an open account does with bytes that come back: keep them, or count them and pass them on to its heir as well: a
// quota before the heir has them (who waits there looks at the quota first), a nested budget after (who draws through
// it must find them with its lender, or a growing lender would grow by what is just coming back).
enum class Credits : std::uint8_t { Keep, PassOn, PassOnFirst };

// Who waits for bytes of an account. Told by whoever brought bytes back, or closed the account, outside every lock.
class Waiters {
 public:
  virtual void bytes_came_back() noexcept = 0;
  // Between these it stays alive: whoever tells it does so outside every lock.
  virtual void hold() noexcept {}
  virtual void let_go() noexcept {}

 protected:
  ~Waiters() = default;
};

// The atomics and locks of programs. `wait_until` is for the few instructions that another thread is inside a sequence;
// `core` says where the caller runs, for what is kept per core; `thread` says which of the threads that live it is.
struct StdAtomics {
  template <class T>
  using Atomic = std::atomic<T>;
  using Mutex = earmark::Mutex;
  using Thread = void const*;
  [[nodiscard]] static std::size_t core() noexcept { return static_cast<std::size_t>(::sched_getcpu()); }
  [[nodiscard]] static Thread thread() noexcept { return __builtin_thread_pointer(); }
  template <class Predicate>
  static void wait_until(Predicate const& ready) noexcept {
    while (!ready()) { std::this_thread::yield(); }
  }
  // Asks for a contended word's cache line to write it at once, rather than to read it and then to ask again.
  template <class T>
  static void about_to_change([[maybe_unused]] std::atomic<T> const& word) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(word));
#endif
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
    SoleWriter writer{*this};
    heir_.store(heir, std::memory_order_relaxed);
    credits_ = credits;
    merged_ = false;
    waiters_.store(nullptr, std::memory_order_relaxed);
    granted_.store(available, std::memory_order_release);
    word_.store(available * unit, std::memory_order_release);
  }

  // Takes `bytes` if they are there. Requires: 0 <= bytes <= max_bytes.
  [[nodiscard]] Taken try_take(std::int64_t bytes, Pass pass = Pass::Yes) noexcept {
    return take_if([bytes](std::int64_t available) { return available >= bytes ? bytes : -1; }, pass);
  }
  // The same for the path of every allocation, with nothing but what it needs. `live`: what is live with it.
  // Returns: whether the bytes were taken; where not, `try_take` says why.
  [[nodiscard]] bool take_quickly(std::int64_t bytes, std::int64_t& live) noexcept {
    Atomics::about_to_change(word_);
    std::int64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      std::int64_t const left = bytes_of(word) - bytes;
      if ((word & closed_bit) != 0 || left < 0) [[unlikely]] { return false; }
      live = granted_.load(std::memory_order_relaxed) - left;  // while the line is ours, if others want it too
      if (word_.compare_exchange_weak(word, word - bytes * unit, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
  }
  // Takes `bytes` even into a deficit. Returns: Short only where the deficit would leave the word's range.
  [[nodiscard]] Taken take_anyway(std::int64_t bytes) noexcept {
    return take_if([bytes](std::int64_t available) { return available - bytes >= -max_bytes ? bytes : -1; });
  }
  // Takes as much of `bytes` as there is, in whole multiples of `granule` but at least `at_least`; `taken` says how
  // much. Requires: bytes and at_least are multiples of granule, a power of two.
  [[nodiscard]] Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule, std::int64_t& taken,
                                 Pass pass = Pass::Yes) noexcept {
    return take_if(
        [&](std::int64_t available) {
          taken = std::min(bytes, std::max<std::int64_t>(available, 0) & ~(granule - 1));
          return taken >= at_least ? taken : -1;
        },
        pass);
  }

  // Gives `bytes` back: to this account if it is open, else to the first open heir, and on from there where credits
  // are passed on; and tells those who wait for them.
  // Returns: the first open account that took them; nothing when all were closed (a budget never is).
  BasicAccount* credit(std::int64_t bytes, Tell tell = Tell::Yes) noexcept {
    if (credits_ != Credits::Keep) [[unlikely]] { return credit_along(this, {}, bytes, tell); }
    std::int64_t const before = word_.fetch_add(bytes * unit, std::memory_order_acq_rel);
    if ((before & (closed_bit | waiters_bit)) == 0) [[likely]] { return this; }
    return credit_onward(bytes, before, tell);
  }

  // The same for an account that is never closed and passes nothing on: one visit to a line that others want.
  // Returns: whether somebody waits for the bytes; then the caller tells them.
  [[nodiscard]] bool add_to_open(std::int64_t bytes) noexcept {
    return (word_.fetch_add(bytes * unit, std::memory_order_acq_rel) & waiters_bit) != 0;
  }

  // Changes what is available without an owner's grant: a limit that moved, or a take that is undone before anyone
  // could be told of it. One step, so every admission is wholly before or after it. Requires: the account is open.
  void adjust(std::int64_t delta) noexcept { word_.fetch_add(delta * unit, std::memory_order_acq_rel); }

  // Closes: no takes any more. Idempotent. Returns: the unspent bytes, which the caller must give to the heir.
  [[nodiscard]] std::int64_t close_and_take_unspent() noexcept {
    std::int64_t unspent = 0;
    std::int64_t word = 0;
    {
      Sequence sequence{*this};
      word = word_.load(std::memory_order_relaxed);
      do {
        if ((word & closed_bit) != 0) { return 0; }
      } while (!word_.compare_exchange_weak(word, closed_bit, std::memory_order_acq_rel, std::memory_order_relaxed));
      unspent = bytes_of(word);
      // From here `granted` is what is still live; a free that saw the closed bit lowers it itself.
      granted_.fetch_sub(unspent, std::memory_order_acq_rel);
    }
    if ((word & waiters_bit) != 0) { waiters()->bytes_came_back(); }  // they find it closed
    return unspent;
  }
  // The same without a read-modify-write, where nobody could notice. Requires: nobody else has a reference to the
  // account. Returns: nothing if something is live, or awaited, after all; then nothing was done.
  [[nodiscard]] std::optional<std::int64_t> close_alone() noexcept {
    std::int64_t const word = word_.load(std::memory_order_relaxed);
    std::int64_t const granted = granted_.load(std::memory_order_relaxed);
    if (word != granted * unit) { return std::nullopt; }
    SoleWriter writer{*this};
    granted_.store(0, std::memory_order_release);
    word_.store(closed_bit, std::memory_order_release);
    return granted;
  }
  // Closes and gives what was unspent to the heir at once. Returns: the bytes that this call gave back.
  std::int64_t close() noexcept {
    std::int64_t const unspent = close_and_take_unspent();
    if (BasicAccount* const heir = this->heir(); unspent != 0 && heir != nullptr) { heir->credit(unspent); }
    return unspent;
  }

  // Closes this account into `other`, with what is live in it: later frees go there.
  // Requires: this one is open; both have the same heir; nobody else closes or merges them now.
  void merge_into(BasicAccount& other) noexcept {
    std::int64_t mine_before = 0;
    std::int64_t theirs_before = 0;
    {
      Sequence mine{*this};
      Sequence theirs{other};
      other.granted_.fetch_add(granted_.exchange(0, std::memory_order_acq_rel), std::memory_order_acq_rel);
      heir_.store(&other, std::memory_order_release);
      merged_ = true;
      mine_before = word_.load(std::memory_order_relaxed);
      while (!word_.compare_exchange_weak(mine_before, closed_bit, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {}
      theirs_before = other.word_.load(std::memory_order_relaxed);  // closing happens in a sequence, too
      if ((theirs_before & closed_bit) == 0) {
        theirs_before = other.word_.fetch_add(bytes_of(mine_before) * unit, std::memory_order_acq_rel);
      }
    }
    if ((mine_before & waiters_bit) != 0) { waiters()->bytes_came_back(); }
    if ((theirs_before & closed_bit) != 0) {
      other.credit(bytes_of(mine_before));  // and on to its heir
    } else if ((theirs_before & waiters_bit) != 0) {
      other.waiters()->bytes_came_back();
    }
  }

  // Adds bytes that were taken from the heir. If the account was closed meanwhile they go on: to what it was merged
  // into, or back. Returns: false when they went back.
  bool grow(std::int64_t bytes) noexcept {
    BasicAccount* account = this;
    while (!account->grow_if_open(bytes)) {
      BasicAccount* const heir = account->next_heir();
      if (!account->merged_) {
        if (heir != nullptr) { heir->credit(bytes); }
        return false;
      }
      account = heir;
    }
    return true;
  }
  // Takes `bytes` with `grown` more that were taken from the heir, as one step: nobody else can take what was grown.
  // Returns: Short or Closed where that is not enough (any more); then nothing was added either.
  [[nodiscard]] Taken grow_and_take(std::int64_t grown, std::int64_t bytes) noexcept {
    Sequence sequence{*this};
    Taken const taken = try_take(bytes - grown);
    if (taken.result == Take::Ok) { granted_.fetch_add(grown, std::memory_order_acq_rel); }
    return taken;
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

  // Those who wait. Requires of `wait_with`: it is always the same, or `announce` was never called.
  void wait_with(Waiters* waiters) noexcept { waiters_.store(waiters, std::memory_order_relaxed); }
  [[nodiscard]] Waiters* waiters() const noexcept { return waiters_.load(std::memory_order_relaxed); }
  // From here every byte that comes back is told; what came back before is there to be taken. A closed account is
  // never announced. Returns: whether it is open.
  bool announce() noexcept {
    std::int64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      if ((word & closed_bit) != 0) { return false; }
      if ((word & waiters_bit) != 0) { return true; }
      if (word_.compare_exchange_weak(word, word | waiters_bit, std::memory_order_acq_rel, std::memory_order_relaxed)) {
        return true;
      }
    }
  }
  void announce_no_more() noexcept { word_.fetch_and(~waiters_bit, std::memory_order_acq_rel); }
  [[nodiscard]] bool awaited() const noexcept { return (word_.load(std::memory_order_acquire) & waiters_bit) != 0; }

  // For bytes that came back here without anybody being told: tells those who wait for them, from here on.
  void tell_waiters_along_the_way() noexcept {
    for (BasicAccount* account = this; account != nullptr; account = account->heir()) {
      if (account->awaited()) { account->waiters()->bytes_came_back(); }
      if (account->credits_ == Credits::Keep && !account->closed()) { break; }
    }
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

  // The same for a writer who is alone: readers can tell, and no read-modify-write is needed.
  class SoleWriter {
   public:
    explicit SoleWriter(BasicAccount& account) noexcept
        : account_(account), before_(account.sequence_.load(std::memory_order_relaxed)) {
      account_.sequence_.store(before_ + 1, std::memory_order_relaxed);
    }
    ~SoleWriter() { account_.sequence_.store(before_ + 2, std::memory_order_release); }
    SoleWriter(SoleWriter const&) = delete;
    SoleWriter& operator=(SoleWriter const&) = delete;

   private:
    BasicAccount& account_;
    std::uint32_t before_;
  };

  [[nodiscard]] BasicAccount* heir() const noexcept { return heir_.load(std::memory_order_acquire); }
  // The heir of a closed account, closer to the end of a chain of merges each time: who was merged lets bytes through
  // and counts none of them, so that it can be left out. A chain that many go along so costs each of them the logarithm
  // of its length. Whom a link points to lives as long as the account it starts from does: each keeps the one that it
  // was merged into, whatever was left out in between. Threads that shorten the same link write the same way on.
  [[nodiscard]] BasicAccount* next_heir() noexcept {
    BasicAccount* const next = heir();
    if (!merged_ || !next->closed() || !next->merged_) { return next; }
    BasicAccount* const after = next->heir();
    heir_.store(after, std::memory_order_release);
    return after;
  }
  // Returns: false if it is closed; then nothing happened.
  [[nodiscard]] bool grow_if_open(std::int64_t bytes) noexcept {
    std::int64_t word = 0;
    {
      Sequence sequence{*this};  // close and merge happen inside a sequence too, so the bit cannot change here
      if (closed()) { return false; }
      granted_.fetch_add(bytes, std::memory_order_acq_rel);
      word = word_.fetch_add(bytes * unit, std::memory_order_acq_rel);
    }
    if ((word & waiters_bit) != 0) { waiters()->bytes_came_back(); }
    return true;
  }
  [[nodiscard]] bool in_sequence() const noexcept { return (sequence_.load(std::memory_order_relaxed) & 1U) != 0; }

  // What a credit met on its way.
  struct Met {
    BasicAccount* receiver{nullptr};  // the first open account
    bool awaited{false};              // somebody waits at one of them
  };
  // The rest of `credit`, off the path of every free: `before` is the word that the bytes were added to.
  [[gnu::noinline]] BasicAccount* credit_onward(std::int64_t bytes, std::int64_t before, Tell tell) noexcept {
    Met met;
    BasicAccount* const next = credited(bytes, before, met);
    return credit_along(next, met, bytes, tell);
  }
  [[gnu::noinline]] static BasicAccount* credit_along(BasicAccount* account, Met met, std::int64_t bytes,
                                                      Tell tell) noexcept {
    credit_each(account, bytes, met);
    if (met.awaited && tell == Tell::Yes) { met.receiver->tell_waiters_along_the_way(); }
    return met.receiver;
  }
  static void credit_each(BasicAccount* account, std::int64_t bytes, Met& met) noexcept {
    while (account != nullptr) {
      if (account->credits_ == Credits::PassOnFirst) {
        if (met.receiver == nullptr) { met.receiver = account; }
        credit_each(account->heir(), bytes, met);  // as deep as budgets are nested
        (void)account->credited(bytes, account->word_.fetch_add(bytes * unit, std::memory_order_acq_rel), met);
        return;
      }
      account = account->credited(bytes, account->word_.fetch_add(bytes * unit, std::memory_order_acq_rel), met);
    }
  }
  // `bytes` were added to the word, which was `before`. Returns: who gets them now.
  [[nodiscard]] BasicAccount* credited(std::int64_t bytes, std::int64_t before, Met& met) noexcept {
    if ((before & closed_bit) != 0) {
      BasicAccount* const heir = next_heir();  // now: once nothing is live in it, it may be opened anew
      word_.fetch_sub(bytes * unit, std::memory_order_relaxed);
      if (!merged_) { granted_.fetch_sub(bytes, std::memory_order_acq_rel); }
      return heir;
    }
    met.awaited = met.awaited || (before & waiters_bit) != 0;
    if (met.receiver == nullptr) { met.receiver = this; }
    return credits_ == Credits::Keep ? nullptr : heir();
  }
  // `choose(available)` returns the bytes to take, or -1 for "not enough".
  template <class Choose>
  [[nodiscard]] Taken take_if(Choose const& choose, Pass pass = Pass::Yes) noexcept {
    Atomics::about_to_change(word_);
    std::int64_t word = word_.load(std::memory_order_relaxed);
    for (bool contended = false;; contended = true) {
      std::int64_t const available = bytes_of(word);
      if ((word & closed_bit) != 0) [[unlikely]] { return {Take::Closed, 0}; }
      if (pass == Pass::No && (word & waiters_bit) != 0) { return {Take::Queue, available}; }
      std::int64_t const bytes = choose(available);
      if (bytes < 0) [[unlikely]] { return {Take::Short, available}; }
      if (word_.compare_exchange_weak(word, word - bytes * unit, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return {Take::Ok, available - bytes, contended};
      }
    }
  }

  typename Atomics::template Atomic<std::int64_t> word_{closed_bit};
  typename Atomics::template Atomic<std::int64_t> granted_{0};  // by the owner's view; see `read`
  // Written before the closed bit is set; where bytes are not passed on, read only after that was seen.
  typename Atomics::template Atomic<BasicAccount*> heir_{nullptr};
  std::atomic<Waiters*> waiters_{nullptr};  // set before the waiters bit is; by several at once, all to the same
  typename Atomics::template Atomic<std::uint32_t> sequence_{0};
  Credits credits_{Credits::Keep};
  bool merged_{false};  // what was live moved to the heir's grant
};

using Account = BasicAccount<StdAtomics>;
static_assert(sizeof(Account) == 40);

}  // namespace earmark::detail
