// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Who waits for memory, in the order in which they are served: higher priority first, then whoever lets go of more
// memory than he asks for, then whoever came first. Nobody starves: a request that `overtakes_allowed` later ones were
// put before becomes a barrier that nobody passes any more. Internal: `BasicBudget` keeps one under its queue lock and
// grants from it; waiters come through `ReservationAwareResourceAdaptor::reserve_blocking` and `async_reserve`.
//
//   1. A new request goes in from the back, past everyone it is ordered before, and counts itself with each.
//   2. Each request can be passed `overtakes_allowed` times at most, so all that walking costs O(overtakes_allowed) a
//      request, however many wait.
//
// Thread safety: none of its own; the owner's lock. Ownership: requests belong to whoever waits, and stay put while
// they are in the queue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "earmark/memory/account.hpp"

namespace earmark::detail {

template <class Atomics>
class BasicBudget;
template <class Atomics>
class BasicBudgetCallbacks;

// What being told that it is decided leads to, on the thread that tells.
enum class Completion : std::uint8_t {
  Quick,      // a word to a thread that waits
  CallsBack,  // other people's code, which may give back what it got: see `BasicBudgetCallbacks`
};

// One who waits. Derive from it to be told.
template <class Atomics>
class BasicWaitRequest {
 public:
  BasicWaitRequest(std::int64_t bytes, BasicBudget<Atomics>& purse, int priority, std::int64_t net_memory_delta,
                   Completion completion = Completion::Quick) noexcept
      : bytes_(bytes),
        net_memory_delta_(net_memory_delta),
        purse_(&purse),
        priority_(priority),
        completion_(completion) {}
  BasicWaitRequest(BasicWaitRequest const&) = delete;
  BasicWaitRequest& operator=(BasicWaitRequest const&) = delete;

  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  // How the memory in use changes by the work that waits, once it is done.
  [[nodiscard]] std::int64_t net_memory_delta() const noexcept { return net_memory_delta_; }
  [[nodiscard]] int priority() const noexcept { return priority_; }
  // Whose bytes: the budget that keeps the queue, or a consumer of it.
  [[nodiscard]] BasicBudget<Atomics>& purse() const noexcept { return *purse_; }
  [[nodiscard]] std::int32_t overtaken() const noexcept { return overtaken_; }
  // Requires: `complete` was called.
  [[nodiscard]] Taken const& outcome() const noexcept { return outcome_; }

 protected:
  ~BasicWaitRequest() = default;

 private:
  template <class>
  friend class BasicWaitQueue;
  template <class>
  friend class BasicBudgetCallbacks;

  // Called once, outside every lock, on whatever thread decided; the request may be gone when it returns.
  virtual void complete() noexcept = 0;

  std::int64_t bytes_;
  std::int64_t net_memory_delta_;
  BasicBudget<Atomics>* purse_;
  BasicWaitRequest* before_{nullptr};
  BasicWaitRequest* behind_{nullptr};
  Taken outcome_{};
  int priority_;
  std::int32_t overtaken_{0};
  Completion completion_;
  bool queued_{false};
};

template <class Atomics>
class BasicWaitQueue {
 public:
  using Request = BasicWaitRequest<Atomics>;

  explicit BasicWaitQueue(std::int32_t overtakes_allowed) noexcept : overtakes_allowed_(overtakes_allowed) {}
  BasicWaitQueue(BasicWaitQueue const&) = delete;
  BasicWaitQueue& operator=(BasicWaitQueue const&) = delete;

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Request* first() const noexcept { return first_; }
  [[nodiscard]] static Request* next(Request const& request) noexcept { return request.behind_; }
  // Whether somebody is owed that nobody passes him any more.
  [[nodiscard]] bool has_barrier() const noexcept { return barriers_ != 0; }

  void insert(Request& request) noexcept {
    Request* ahead = last_;
    while (ahead != nullptr && goes_before(request, *ahead) && !is_barrier(*ahead)) {
      overtake(*ahead);
      ahead = ahead->before_;
    }
    request.before_ = ahead;
    request.behind_ = ahead == nullptr ? first_ : ahead->behind_;
    (ahead == nullptr ? first_ : ahead->behind_) = &request;
    (request.behind_ == nullptr ? last_ : request.behind_->before_) = &request;
    request.queued_ = true;
    barriers_ += is_barrier(request) ? 1 : 0;
    ++size_;
  }
  // Somebody was served without queueing: he overtook all.
  void overtake_all() noexcept {
    for (Request* request = first_; request != nullptr; request = request->behind_) { overtake(*request); }
  }
  // Returns: whether it was in the queue.
  bool remove(Request& request) noexcept {
    if (!request.queued_) { return false; }
    (request.before_ == nullptr ? first_ : request.before_->behind_) = request.behind_;
    (request.behind_ == nullptr ? last_ : request.behind_->before_) = request.before_;
    request.before_ = request.behind_ = nullptr;
    request.queued_ = false;
    barriers_ -= is_barrier(request) ? 1 : 0;
    --size_;
    return true;
  }

 private:
  [[nodiscard]] static bool goes_before(Request const& a, Request const& b) noexcept {
    if (a.priority_ != b.priority_) { return a.priority_ > b.priority_; }
    return a.net_memory_delta_ < b.net_memory_delta_;
  }
  [[nodiscard]] bool is_barrier(Request const& request) const noexcept {
    return request.overtaken_ >= overtakes_allowed_;
  }
  void overtake(Request& request) noexcept {
    ++request.overtaken_;
    barriers_ += request.overtaken_ == overtakes_allowed_ ? 1 : 0;
  }

  std::int32_t overtakes_allowed_;
  std::int32_t barriers_{0};
  std::size_t size_{0};
  Request* first_{nullptr};
  Request* last_{nullptr};
};

}  // namespace earmark::detail
