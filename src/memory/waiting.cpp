// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/waiting.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

#include "earmark/core/executor.hpp"
#include "earmark/core/thread_annotations.hpp"

namespace earmark::detail {
namespace {

// At the deadline a wait ends with Short; some then want the bytes all the same.
Taken after_deadline(BudgetCore& purse, std::int64_t bytes, WaitOptions const& options, Taken const& outcome) {
  if (outcome.result != Take::Short || options.after_deadline != AfterDeadline::Overbook) { return outcome; }
  return purse.take_anyway(bytes);
}

class BlockedThread final : public Waiting {
 public:
  BlockedThread(Wish const& wish, WaitOptions const& options, Clock::time_point since) noexcept
      : Waiting(wish, options, since, Completion::Quick) {}

  // Blocks: until completed; withdraws at the deadline.
  void wait(WaitOptions const& options, Clock const& clock) {
    if (completed_by(options, clock)) { return; }
    // If it is not in the queue any more, somebody has decided already and is about to say so.
    (void)purse().queue_keeper().cancel(*this, Take::Short);
    (void)completed_by({}, clock);
  }

 private:
  // Returns: false when the deadline came first.
  bool completed_by(WaitOptions const& options, Clock const& clock) {
    MutexLock lock{mutex_};
    while (!completed_) {
      if (!options.deadline) {
        condition_.wait(mutex_);
      } else if (clock.now() >= *options.deadline) {
        return false;
      } else {
        clock.wait_until(condition_, mutex_, *options.deadline);
      }
    }
    return true;
  }
  void complete() noexcept override {
    // Under the lock: the waiter may be gone as soon as it is given back.
    MutexLock lock{mutex_};
    completed_ = true;
    condition_.notify_one();
  }

  Mutex mutex_;
  ConditionVariable condition_;
  bool completed_ EARMARK_GUARDED_BY(mutex_){false};
};

// Withdraws a request when a stop is asked for, even one that came before the request stood in the queue.
template <class R>
class StopsRequest {
 public:
  StopsRequest(std::stop_token const& token, R& request) : request_(request), callback_(token, Stop{*this}) {}
  // Call when the request stands in the queue.
  void queued() {
    if (asked_.load(std::memory_order_acquire)) { withdraw(); }
  }

 private:
  struct Stop {
    StopsRequest& self;
    void operator()() const noexcept {
      self.asked_.store(true, std::memory_order_release);
      self.withdraw();
    }
  };
  void withdraw() noexcept { (void)request_.purse().queue_keeper().cancel(request_, Take::Aborted); }

  R& request_;
  std::atomic<bool> asked_{false};
  std::stop_callback<Stop> callback_;
};

class WaitingFunction final : public Waiting, public std::enable_shared_from_this<WaitingFunction> {
 public:
  WaitingFunction(Wish const& wish, WaitOptions const& options, Clock::time_point since,
                  std::function<void(Taken)> done)
      : Waiting(wish, options, since, Completion::CallsBack), options_(options), done_(std::move(done)) {
    options_.stop = {};
  }
  ~WaitingFunction() {
    // An executor may drop what it was given: what was taken for it must not be lost.
    if (undelivered_) { purse().credit(bytes()); }
  }

  void finish_at_once(Taken const& decided) noexcept {
    self_ = shared_from_this();
    finish(decided);
  }
  void start(std::stop_token const& stop) {
    auto const keep = shared_from_this();
    if (stop.stop_possible()) { stops_.emplace(stop, *this); }
    self_ = keep;
    Taken taken;
    try {
      taken = purse().queue_keeper().take_or_enqueue(*this);
    }
    catch (...) {
      self_.reset();
      throw;
    }
    if (taken.result != Take::Queue) { return finish(taken); }
    arm();
  }

 private:
  void arm() {
    if (stops_) { stops_->queued(); }
    if (options_.executor == nullptr || !options_.deadline) { return; }
    try {
      options_.executor->post_at(*options_.deadline, [weak = weak_from_this()] {
        if (auto const request = weak.lock()) { (void)request->purse().queue_keeper().cancel(*request, Take::Short); }
      });
    }
    catch (...) {
      if (!purse().queue_keeper().withdraw(*this)) { return; }  // decided already: a deadline is not needed
      self_.reset();
      throw;
    }
  }
  void complete() noexcept override { finish(outcome()); }
  void finish(Taken const& outcome) noexcept {
    auto const keep = std::move(self_);
    Taken const taken = after_deadline(purse(), bytes(), options_, outcome);
    undelivered_ = taken.result == Take::Ok;
    if (options_.executor != nullptr) {
      try {
        return options_.executor->post([keep, taken] { keep->deliver(taken); });
      }
      catch (...) {
        // Better on this thread than never.
      }
    }
    deliver(taken);
  }
  void deliver(Taken const& taken) {
    undelivered_ = false;
    done_(taken);
  }

  WaitOptions options_;
  std::function<void(Taken)> done_;
  std::optional<StopsRequest<WaitingFunction>> stops_;
  bool undelivered_{false};                // bytes were taken, and `done_` does not know
  std::shared_ptr<WaitingFunction> self_;  // while it waits, the queue is its owner
};

}  // namespace

Taken wait_blocking(Wish const& wish, WaitOptions const& options, Clock const& clock) {
  BlockedThread request{wish, options, clock.now()};
  Taken outcome;
  {
    std::optional<StopsRequest<BlockedThread>> stops;
    if (options.stop.stop_possible()) { stops.emplace(options.stop, request); }
    outcome = wish.purse.queue_keeper().take_or_enqueue(request);
    if (outcome.result == Take::Queue) {
      if (stops) { stops->queued(); }
      wish.purse.queue_keeper().tell_those_left();
      request.wait(options, clock);
      outcome = request.outcome();
    }
  }
  return after_deadline(wish.purse, wish.bytes, options, outcome);
}

void wait_async(Wish const& wish, WaitOptions const& options, Clock const& clock, std::function<void(Taken)> done,
                std::optional<Taken> const& decided) {
  auto const request = std::make_shared<WaitingFunction>(wish, options, clock.now(), std::move(done));
  decided ? request->finish_at_once(*decided) : request->start(options.stop);
}

}  // namespace earmark::detail
