// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The half of `BasicBudget` that has to do with waiting: joining the queue, serving it, and telling those who waited.
// Internal; include basic_budget.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "earmark/memory/basic_budget.hpp"

namespace earmark::detail {

template <class Atomics>
Taken BasicBudget<Atomics>::take_or_enqueue(Request& request) {
  if (request.purse().aborted()) { return {Take::Aborted, 0}; }
  Settle const settle{request.purse()};
  Taken taken = request.purse().take_quietly(request.bytes(), Pass::No);
  if (taken.result == Take::Ok || taken.result == Take::Closed) { return taken; }
  {
    Lock lock{queue_mutex_};
    if (Take const verdict = judge(request); verdict != Take::Queue) { return {verdict, Account::available()}; }
    open_queue();
    // He who lets go of more than he asks for may pass all, as long as nobody is owed that nobody passes him.
    if (queue_.empty() || (request.net_memory_delta() < 0 && !queue_.has_barrier())) {
      taken = request.purse().take_quietly(request.bytes(), Pass::Yes);
      if (taken.result == Take::Ok || taken.result == Take::Closed) {
        queue_.overtake_all();
        close_queue_if_empty();
        return taken;
      }
    }
    queue_.insert(request);
    if (taken.result != Take::QuotaShort) { passed_over_.store(1, std::memory_order_release); }
  }
  grant();  // it may be the first now, and smaller than who was
  return {Take::Queue, 0};
}

template <class Atomics>
void BasicBudget<Atomics>::abort() noexcept {
  parent_->remove_if([this] { aborted_.store(1, std::memory_order_release); },
                     [this](Request& request) { return &request.purse() == this ? Take::Aborted : Take::Queue; });
  parent_->dependents_.bytes_came_back();  // who stands on a reservation that cannot grow any more learns it now
}

template <class Atomics>
void BasicBudget<Atomics>::shut_down() noexcept {
  remove_if([this]() EARMARK_NO_THREAD_SAFETY_ANALYSIS { shut_down_ = true; }, [](Request&) { return Take::Aborted; });
}

template <class Atomics>
void BasicBudget<Atomics>::set_limit(std::int64_t limit) noexcept {
  {
    Lock charge{charge_mutex_};
    Lock lock{word_mutex_};
    freeze();
    slack_.begin_change();
    std::int64_t const before = limit_.exchange(limit, std::memory_order_acq_rel);
    Account::adjust(limit - before);
    slack_cap_.store(limit >> slack_shift, std::memory_order_relaxed);
    slack_.end_change();
  }
  BasicBudget& keeper = queue_keeper();
  keeper.remove_if([] {}, [&](Request& request) EARMARK_NO_THREAD_SAFETY_ANALYSIS { return keeper.judge(request); });
  keeper.tell_owner();
  keeper.dependents_.bytes_came_back();
}

template <class Atomics>
void BasicBudget<Atomics>::tell_those_left() noexcept {
  typename BasicBudgetCallbacks<Atomics>::AtWork* mine = nullptr;
  {
    Lock lock{queue_mutex_};
    mine = callbacks_.find_mine();
  }
  if (mine != nullptr) { mine->left.complete(); }
  if (lender_ != nullptr) { lender_->tell_those_left(); }  // what they give back may be what is waited for
}

// -- who stands on it -------------------------------------------------------------------------------------------------

template <class Atomics>
void BasicBudget<Atomics>::subscribe(Waiters& waiters) {
  Lock lock{queue_mutex_};
  if (lender_ != nullptr) { lender_->subscribe(waiters); }
  try {
    dependents_.add(waiters, [this] { Account::announce(); });
  }
  catch (...) {
    if (lender_ != nullptr) { lender_->unsubscribe(waiters); }
    throw;
  }
  ++dependents_count_;
  // As for a queue of its own: whoever is about to thaw the cores sees the bit from here on, or is undone.
  Lock word{word_mutex_};
  freeze();
}

template <class Atomics>
void BasicBudget<Atomics>::unsubscribe(Waiters& waiters) noexcept {
  Lock lock{queue_mutex_};
  if (lender_ != nullptr) { lender_->unsubscribe(waiters); }
  dependents_.remove(waiters, [] {});
  --dependents_count_;
  if (queue_.empty() && dependents_count_ == 0) { Account::announce_no_more(); }
}

// -- the queue --------------------------------------------------------------------------------------------------------

template <class Atomics>
Take BasicBudget<Atomics>::judge(Request const& request) noexcept {
  if (shut_down_ || request.purse().aborted()) { return Take::Aborted; }
  if (request.bytes() > limit() || request.bytes() > request.purse().limit()) { return Take::Impossible; }
  return Take::Queue;
}

template <class Atomics>
void BasicBudget<Atomics>::open_queue() {
  if (queue_.empty() && lender_ != nullptr) { lender_->subscribe(*this); }
  Account::announce();
  Lock lock{word_mutex_};
  freeze();
}

template <class Atomics>
void BasicBudget<Atomics>::close_queue_if_empty() noexcept {
  if (!queue_.empty()) { return; }
  if (dependents_count_ == 0) { Account::announce_no_more(); }
  if (lender_ != nullptr) { lender_->unsubscribe(*this); }
}

// -- serving ----------------------------------------------------------------------------------------------------------

template <class Atomics>
void BasicBudget<Atomics>::grant() noexcept {
  if (parent_ != nullptr) { return parent_->grant(); }
  (void)decide_and_tell([this](Finished& finished) EARMARK_NO_THREAD_SAFETY_ANALYSIS {
    if (queue_.empty()) { return false; }
    serve(finished);
    return true;
  });
}

template <class Atomics>
void BasicBudget<Atomics>::serve(Finished& finished) noexcept {
  std::int64_t missing = 0;
  std::int64_t wanted = 0;
  bool request_is_short = false;
  for (Request* request = queue_.first(); request != nullptr;) {
    Request* const next = Queue::next(*request);
    Taken const taken = request->purse().take_quietly(request->bytes(), Pass::Yes);
    if (taken.result == Take::Short) {
      request_is_short = true;
      // What a root misses is looked up when it is asked for; what a lender said is kept.
      if (lender_ == nullptr) {
        wanted = request->bytes();
      } else {
        missing = std::max<std::int64_t>(request->bytes() - taken.available, 1);
      }
      break;
    }
    if (taken.result != Take::QuotaShort) {
      queue_.remove(*request);
      finished.add(*request, taken);
    }
    request = next;
  }
  missing_.store(missing, std::memory_order_relaxed);
  wanted_.store(wanted, std::memory_order_relaxed);
  passed_over_.store(request_is_short ? 1 : 0, std::memory_order_release);
  close_queue_if_empty();
}

template <class Atomics>
template <class Finish>
bool BasicBudget<Atomics>::take_out(Request& request, Finish const& finish) noexcept {
  return decide_and_tell([&](Finished& finished) EARMARK_NO_THREAD_SAFETY_ANALYSIS {
    if (!queue_.remove(request)) { return false; }
    finish(finished);
    serve(finished);
    return true;
  });
}

template <class Atomics>
template <class First, class Verdict>
void BasicBudget<Atomics>::remove_if(First const& first, Verdict const& verdict) noexcept {
  (void)decide_and_tell([&](Finished& finished) EARMARK_NO_THREAD_SAFETY_ANALYSIS {
    first();
    if (queue_.empty()) { return false; }
    for (Request* request = queue_.first(); request != nullptr;) {
      Request* const next = Queue::next(*request);
      if (Take const why = verdict(*request); why != Take::Queue) {
        queue_.remove(*request);
        finished.add(*request, {why, 0});
      }
      request = next;
    }
    serve(finished);
    return true;
  });
}

template <class Atomics>
template <class Decide>
bool BasicBudget<Atomics>::decide_and_tell(Decide const& decide) noexcept {
  Finished finished;
  typename BasicBudgetCallbacks<Atomics>::AtWork mine;
  auto* further_up = &mine;
  bool decided = false;
  {
    Lock lock{queue_mutex_};
    decided = decide(finished);
    further_up = callbacks_.find_mine();
    if (further_up == nullptr && !finished.call_back.empty()) {
      mine.left.add_all(finished.call_back);
      callbacks_.enter(mine);
    }
  }
  if (finished.empty()) {
    settle();
    if (decided) { tell_owner(); }
    return decided;
  }
  hold();  // a request may have been the last that kept us
  finished.quick.complete();
  settle();  // which may call back: not before those who sleep were told
  if (further_up != nullptr) {
    further_up->left.add_all(finished.call_back);
  } else if (!finished.call_back.empty()) {
    mine.left.complete();
    Lock lock{queue_mutex_};
    callbacks_.leave(mine);
  }
  tell_owner();
  let_go();
  return true;
}

}  // namespace earmark::detail
