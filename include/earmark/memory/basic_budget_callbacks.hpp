// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How those whose waiting is over are told of it. Internal; a budget decides under its queue lock, and tells outside
// it.
//
// A call-back may give back what it got, and so end other waiting on the same thread. Those are left to the first call,
// further up the stack, which goes on until none is left: else twenty thousand who each let go of what they got would
// lie on one stack. No wake-up is lost by that, because a thread leaves work to nobody but itself: nobody has to see
// that it is still at it, and it cannot overlook what it added itself. Threads that wait are told at once: a word to
// them calls nobody else.
//
// Thread safety: the owner's lock for what says so; the rest is for the thread that decided.
#pragma once

#include "earmark/memory/wait_queue.hpp"

namespace earmark::detail {

template <class Atomics>
class BasicBudgetCallbacks {
 public:
  using Request = BasicWaitRequest<Atomics>;

  // Requests in the order in which they are told.
  class Batch {
   public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void add(Request& request) noexcept {
      request.behind_ = nullptr;
      append(request, request);
    }
    void add_all(Batch const& others) noexcept {
      if (!others.empty()) { append(*others.first_, *others.last_); }
    }
    // Also what is added meanwhile.
    void complete() noexcept {
      while (first_ != nullptr) {
        Request& request = *first_;
        first_ = request.behind_;  // before it may be gone
        if (first_ == nullptr) { last_ = nullptr; }
        request.complete();
      }
    }

   private:
    void append(Request& first, Request& last) noexcept {
      (last_ == nullptr ? first_ : last_->behind_) = &first;
      last_ = &last;
    }

    Request* first_{nullptr};
    Request* last_{nullptr};
  };

  // What one call decided.
  struct Finished {
    Batch quick;
    Batch call_back;
    void add(Request& request, Taken const& outcome) noexcept {
      request.outcome_ = outcome;
      (request.completion_ == Completion::Quick ? quick : call_back).add(request);
    }
    [[nodiscard]] bool empty() const noexcept { return quick.empty() && call_back.empty(); }
  };

  // A thread that calls back, on its own stack; only that thread touches what is left to it.
  struct AtWork {
    typename Atomics::Thread thread{Atomics::thread()};
    Batch left{};
    AtWork* next{nullptr};
  };

  // Requires of these: the owner's lock.
  [[nodiscard]] AtWork* find_mine() const noexcept {
    typename Atomics::Thread const thread = Atomics::thread();
    AtWork* at = at_work_;
    while (at != nullptr && at->thread != thread) { at = at->next; }
    return at;
  }
  void enter(AtWork& mine) noexcept {
    mine.next = at_work_;
    at_work_ = &mine;
  }
  void leave(AtWork const& mine) noexcept {
    AtWork** at = &at_work_;
    while (*at != &mine) { at = &(*at)->next; }
    *at = mine.next;
  }

 private:
  AtWork* at_work_{nullptr};
};

}  // namespace earmark::detail
