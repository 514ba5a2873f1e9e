// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A bound on bytes that many threads take from and wait for: an account, slack per core, and a queue. Internal; use
// `Budget`, `Consumer` or an adaptor. There are three kinds:
//
//   a root       a limit of its own
//   a consumer   a quota within a budget; its requests wait in that budget's queue
//   a nested one a limit within a reservation, the lender; its requests wait in a queue of their own
//
// How a take is decided, in this order, so that nobody is refused who could be served and nobody is served who must
// not:
//
//   1. the caller's core may have the bytes at hand (`BasicCoreSlack`), when memory is plentiful and nobody waits;
//   2. else one compare-and-swap on the word; with waiters, only for those who may pass;
//   3. short: if no core could have had bytes meanwhile, that was the truth; else drain them all and look again.
//
// How waiting loses no wake-up: under the queue lock a request announces itself in the word and drains the cores; then
// it looks again. Whatever came back before is found there; whatever comes back later sees the bit and grants, in the
// queue's order, on the thread that brought it. Nothing thaws while the bit is set.
//
// Lock order: a nested budget's queue, its parents' queues, a quota's charge lock (from nested or consumer to what it
// stands on), the word's lock. Requests are completed, and listeners told, outside all of them.
// Thread safety: any thread. Ownership: whoever opens a consumer or a nested one keeps what it stands on alive.
// It is a template over the atomics, so that tests can run it under a scheduler that explores every interleaving.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/account.hpp"
#include "earmark/memory/atomic_max.hpp"
#include "earmark/memory/basic_budget_callbacks.hpp"
#include "earmark/memory/budget_parties.hpp"
#include "earmark/memory/core_slack.hpp"
#include "earmark/memory/wait_queue.hpp"
#include "earmark/memory/waiter_list.hpp"

namespace earmark::detail {

template <class Atomics>
class BasicBudget final : private BasicAccount<Atomics>, private Waiters {
 public:
  using Account = BasicAccount<Atomics>;
  using Request = BasicWaitRequest<Atomics>;
  static constexpr std::int64_t max_bytes = Account::max_bytes;

  // `cores`: for how many cores to keep slack; 0: none, and the peak is exact to the byte.
  BasicBudget(std::int64_t limit, std::size_t cores, std::int32_t overtakes_allowed)
      : BasicBudget(limit, nullptr, nullptr, nullptr, cores, overtakes_allowed) {}
  // A consumer of `parent`, itself a root or nested.
  BasicBudget(std::int64_t quota, BasicBudget& parent) : BasicBudget(quota, &parent, nullptr, &parent, 0, 0) {}
  BasicBudget(std::int64_t limit, BasicLender<Atomics>& lender, std::int32_t overtakes_allowed)
      : BasicBudget(limit, &lender.account(), &lender, nullptr, 0, overtakes_allowed) {}
  BasicBudget(BasicBudget const&) = delete;
  BasicBudget& operator=(BasicBudget const&) = delete;

  void belongs_to(BudgetOwner* owner) noexcept { owner_ = owner; }
  [[nodiscard]] BudgetOwner* owner() const noexcept { return owner_; }
  // What accounts that were granted from this budget name as their heir.
  [[nodiscard]] Account& account() noexcept { return *this; }
  // The budget whose queue this one's requests wait in.
  [[nodiscard]] BasicBudget& queue_keeper() noexcept { return parent_ == nullptr ? *this : *parent_; }
  [[nodiscard]] bool is_consumer() const noexcept { return parent_ != nullptr; }

  // Takes all of `bytes`, or nothing. `pass`: also ahead of those who wait. Requires: 0 <= bytes <= max_bytes; the
  // caller holds no lock.
  [[nodiscard]] Taken take(std::int64_t bytes, Pass pass) noexcept {
    Settle const settle{*this};
    return take_quietly(bytes, pass);
  }
  // Takes even what is not there, into a deficit.
  [[nodiscard]] Taken take_anyway(std::int64_t bytes) noexcept {
    Settle const settle{*this};
    return take_anyway_quietly(bytes);
  }
  // Takes what there is of `bytes`, in multiples of `granule`, but at least `at_least`; with waiters, nothing.
  [[nodiscard]] Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                 std::int64_t& taken) noexcept {
    Settle const settle{*this};
    return take_up_to_quietly(bytes, at_least, granule, taken);
  }
  // The same for callers who hold locks of those who may be waiting for bytes of this budget. Call `settle` afterwards,
  // without locks.
  [[nodiscard]] Taken take_quietly(std::int64_t bytes, Pass pass) noexcept;
  [[nodiscard]] Taken take_anyway_quietly(std::int64_t bytes) noexcept;
  // Gives back what was taken a moment ago and is not wanted after all, under locks. Call `settle` afterwards.
  void credit_quietly(std::int64_t bytes) noexcept {
    Account::credit(bytes, Tell::No);
    owes_telling_.store(1, std::memory_order_release);
  }
  // Tells those who wait of bytes that were given back quietly. Requires: the caller holds no lock.
  void settle() noexcept {
    if (owes_telling_.load(std::memory_order_acquire) != 0 &&
        owes_telling_.exchange(0, std::memory_order_acq_rel) != 0) {
      Account::tell_waiters_along_the_way();
    }
    if (lender_ != nullptr) { lender_->settle(); }
    if (parent_ != nullptr) { parent_->settle(); }
  }
  // Gives back what was taken. Returns at once; those who waited for it are granted it on this thread.
  void credit(std::int64_t bytes) noexcept {
    if (Slack::thawed(slack_.epoch()) && slack_.give(bytes, slack_cap_.load(std::memory_order_relaxed))) { return; }
    if (parent_ != nullptr || lender_ != nullptr) {
      Account::credit(bytes);
    } else if (Account::add_to_open(bytes)) {
      bytes_came_back();
    }
  }

  // Takes for `request`, or puts it into the queue. Requires: called on the queue keeper of the request's purse.
  // Returns: Ok (taken); Queue (it is in the queue, and will be completed); else why it can never be served, and it is
  // not in the queue. Throws: std::bad_alloc, before anything happened (only a nested one).
  [[nodiscard]] Taken take_or_enqueue(Request& request);
  // Takes `request` out of the queue and completes it with `outcome`. Returns: false if it was not in there any more;
  // then it is completed otherwise.
  bool cancel(Request& request, Take outcome) noexcept {
    return take_out(request, [&](Finished& finished) { finished.add(request, {outcome, 0}); });
  }
  // The same without completing it.
  bool withdraw(Request& request) noexcept {
    return take_out(request, [](Finished&) {});
  }
  // For a thread that is about to block: calls back now whom it left to itself for later, since nobody else will.
  void tell_those_left() noexcept;
  // Of a consumer: completes all its requests with Aborted, and every later one. Sticky.
  void abort() noexcept;
  [[nodiscard]] bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire) != 0; }
  // Completes all requests with Aborted, and every later one.
  void shut_down() noexcept;

  // Changes the limit at once; below what is committed nothing is taken back. Requests that can never be served any
  // more are completed with Impossible; after a raise, those that can be now are granted.
  void set_limit(std::int64_t limit) noexcept;

  [[nodiscard]] std::int64_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  // Limit and committed of one instant.
  struct Reading {
    std::int64_t limit{0};
    std::int64_t committed{0};
  };
  [[nodiscard]] Reading read() noexcept {
    std::uint32_t const before = slack_.epoch();
    if (Slack::frozen(before)) {
      std::int64_t const limit = this->limit();
      std::int64_t const available = Account::available();
      if (slack_.epoch() == before) { return {limit, limit - available}; }
    }
    Lock lock{word_mutex_};
    freeze();
    return {limit(), limit() - Account::available()};
  }
  [[nodiscard]] std::int64_t available() noexcept {
    Reading const now = read();
    return now.limit - now.committed;
  }
  // Bytes that would have to come back for the first in the queue to be served, or for the deficit to end.
  [[nodiscard]] std::int64_t pressure() noexcept {
    std::int64_t const wanted = wanted_.load(std::memory_order_relaxed);
    std::int64_t const now = available();
    return std::max({missing_.load(std::memory_order_relaxed), wanted - now, -now, std::int64_t{0}});
  }

  // From here `waiters` is told when bytes come back that it could take through this budget. Throws: std::bad_alloc.
  void subscribe(Waiters& waiters);
  void unsubscribe(Waiters& waiters) noexcept;

  // Calls `visit` for each that waits, first to last, under the queue lock.
  template <class Visit>
  void for_each_request(Visit const& visit) noexcept {
    Lock lock{queue_mutex_};
    for (Request* r = queue_.first(); r != nullptr; r = Queue::next(*r)) { visit(*r); }
  }

  // Lets cores keep bytes, if nobody waits. Happens by itself when threads meet at the word while memory is plentiful.
  void thaw() noexcept {
    if (!slack_.exists() || !word_mutex_.try_lock()) { return; }
    if (Slack::frozen(slack_.epoch()) && !Account::awaited()) { slack_.thaw(); }
    word_mutex_.unlock();
  }

 private:
  using Slack = BasicCoreSlack<Atomics>;
  using Queue = BasicWaitQueue<Atomics>;
  using Finished = typename BasicBudgetCallbacks<Atomics>::Finished;
  using Lock = BasicMutexLock<typename Atomics::Mutex>;
  static constexpr int slack_shift = 8;          // a core keeps 1/256 of the limit at most
  static constexpr std::uint32_t patience = 64;  // contended takes before cores get slack (again)

  // Settles at the end of a scope, after its locks.
  class Settle {
   public:
    explicit Settle(BasicBudget& budget) noexcept : budget_(budget) {}
    ~Settle() { budget_.settle(); }
    Settle(Settle const&) = delete;
    Settle& operator=(Settle const&) = delete;

   private:
    BasicBudget& budget_;
  };

  BasicBudget(std::int64_t limit, Account* heir, BasicLender<Atomics>* lender, BasicBudget* parent, std::size_t cores,
              std::int32_t overtakes_allowed)
      : Account(limit, heir,
                parent != nullptr   ? Credits::PassOn
                : lender != nullptr ? Credits::PassOnFirst
                                    : Credits::Keep),
        parent_(parent),
        lender_(lender),
        limit_(limit),
        slack_(cores),
        slack_cap_(limit >> slack_shift),
        queue_(overtakes_allowed) {
    Account::wait_with(this);
  }

  // -- taking --------------------------------------------------------------------------------------------------------

  [[nodiscard]] Taken take_up_to_quietly(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                         std::int64_t& taken) noexcept;
  [[nodiscard]] Taken take_from_root(std::int64_t bytes, Pass pass) noexcept;
  // The rest of it, where the core's slack has not enough. `epoch`: what it was when that was looked at.
  [[nodiscard]] Taken take_past_slack(std::uint32_t epoch, std::int64_t bytes, Pass pass) noexcept;
  [[nodiscard]] Taken take_from_word(std::int64_t bytes, Pass pass) noexcept;
  // Charges this limit and what it stands on as one step, so that no innocent is refused in between.
  template <class TakeTheirs>
  [[nodiscard]] Taken take_within(std::int64_t bytes, Take when_short, TakeTheirs const& take_theirs) noexcept;
  template <class TakeTheirs>
  [[nodiscard]] Taken take_up_to_within(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                        std::int64_t& taken, Take when_short, TakeTheirs const& take_theirs) noexcept;
  // Notes the peak after a take. Requires: a lock under which the limit stands still.
  Taken note(Taken const& taken) noexcept {
    if (taken.result == Take::Ok) { raise(peak_, limit() - taken.available); }
    return taken;
  }
  // The same without a lock, for a take that came after `epoch` was read.
  Taken note_since(std::uint32_t epoch, Taken const& taken) noexcept;

  // -- the cores' slack ----------------------------------------------------------------------------------------------

  void freeze() noexcept EARMARK_REQUIRES(word_mutex_) {
    if (Slack::frozen(slack_.epoch())) { return; }
    Account::adjust(slack_.freeze());
    slack_.frozen_and_settled();
    contended_takes_.store(0, std::memory_order_relaxed);
  }
  void thaw_if_plentiful(std::int64_t available) noexcept {
    if (available < limit() / 2 || contended_takes_.fetch_add(1, std::memory_order_relaxed) < patience) { return; }
    thaw();
  }

  // -- waiting -------------------------------------------------------------------------------------------------------

  // Whether somebody waits for bytes that others might take: not one who is short of nothing but his own quota. Without
  // the queue lock: a quota's charge lock may be held, which comes after it.
  [[nodiscard]] bool somebody_waits() const noexcept { return passed_over_.load(std::memory_order_acquire) != 0; }
  // Returns: Queue if waiting can help, else why not.
  [[nodiscard]] Take judge(Request const& request) noexcept EARMARK_REQUIRES(queue_mutex_);
  // Announces that somebody waits. What is in cores' hands is drained after that, for good while he waits.
  void open_queue() EARMARK_REQUIRES(queue_mutex_);
  void close_queue_if_empty() noexcept EARMARK_REQUIRES(queue_mutex_);
  void bytes_came_back() noexcept override {
    grant();
    dependents_.bytes_came_back();
  }
  void hold() noexcept override {
    if (owner_ != nullptr) { owner_->hold_budget(); }
  }
  void let_go() noexcept override {
    if (owner_ != nullptr) { owner_->let_go_of_budget(); }
  }

  // Serves the queue in its order as far as the bytes go. Who is short of nothing but his own quota holds up nobody.
  void grant() noexcept;
  void serve(Finished& finished) noexcept EARMARK_REQUIRES(queue_mutex_);
  template <class Finish>
  bool take_out(Request& request, Finish const& finish) noexcept;
  // Under the queue lock: `first()`, then completes every request for which `verdict` is not Queue.
  template <class First, class Verdict>
  void remove_if(First const& first, Verdict const& verdict) noexcept;
  // Calls `decide(finished)` under the queue lock, and then, outside it, tells those whom that finished. Returns: what
  // `decide` returned; after false nobody is told anything.
  template <class Decide>
  bool decide_and_tell(Decide const& decide) noexcept;
  void tell_owner() noexcept {
    if (owner_ != nullptr) { owner_->pressure_changed(); }
  }

  // Read by every take and hardly ever written: apart from the word.
  alignas(64) BasicBudget* parent_;
  BasicLender<Atomics>* lender_;
  BudgetOwner* owner_{nullptr};
  typename Atomics::template Atomic<std::int64_t> limit_;
  Slack slack_;
  typename Atomics::template Atomic<std::int64_t> slack_cap_;
  typename Atomics::template Atomic<std::uint32_t> aborted_{0};
  typename Atomics::template Atomic<std::uint32_t> owes_telling_{0};  // of bytes that were given back quietly

  alignas(64) std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> missing_{0};  // of a nested one: what its first request was short of
  std::atomic<std::int64_t> wanted_{0};   // of a root: what its first request asks for
  std::atomic<std::uint32_t> contended_takes_{0};
  typename Atomics::Mutex charge_mutex_;  // of a quota: it and what it stands on are charged as one step
  typename Atomics::Mutex word_mutex_;    // freezing, thawing and changing the limit
  typename Atomics::Mutex queue_mutex_;
  Queue queue_ EARMARK_GUARDED_BY(queue_mutex_);
  BasicWaiterList<Atomics> dependents_;
  // Whether a take now would pass somebody by; for those who do not have the lock.
  typename Atomics::template Atomic<std::uint32_t> passed_over_{0};
  std::int32_t dependents_count_ EARMARK_GUARDED_BY(queue_mutex_){0};
  BasicBudgetCallbacks<Atomics> callbacks_ EARMARK_GUARDED_BY(queue_mutex_);
  bool shut_down_ EARMARK_GUARDED_BY(queue_mutex_){false};
};

}  // namespace earmark::detail

#include "earmark/memory/basic_budget_taking.hpp"   // IWYU pragma: export
#include "earmark/memory/basic_budget_waiting.hpp"  // IWYU pragma: export
