// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/pressure.hpp"

#include <thread>
#include <utility>

namespace earmark {
namespace detail {

class PressureListener {
 public:
  explicit PressureListener(std::function<void(std::int64_t)> function) : function_(std::move(function)) {}

  void tell(std::function<std::int64_t()> const& pressure) noexcept {
    mutex_.lock();
    again_ = true;
    if (running_ || ended_) { return mutex_.unlock(); }
    running_ = true;
    runner_ = std::this_thread::get_id();
    while (again_ && !ended_) {
      again_ = false;
      std::int64_t const told = std::exchange(told_, -1);
      mutex_.unlock();
      std::int64_t const now = pressure();
      if (now != told) { function_(now); }
      mutex_.lock();
      told_ = now;
    }
    running_ = false;
    std::function<void(std::int64_t)> dead;
    if (ended_) { dead.swap(function_); }
    idle_.notify_all();
    mutex_.unlock();
  }

  void end() noexcept {
    std::function<void(std::int64_t)> dead;  // what it captured goes now, outside the lock
    MutexLock lock{mutex_};
    ended_ = true;
    while (running_ && runner_ != std::this_thread::get_id()) { idle_.wait(mutex_); }
    if (!running_) { dead.swap(function_); }
  }
  [[nodiscard]] bool ended() noexcept {
    MutexLock lock{mutex_};
    return ended_;
  }

 private:
  std::function<void(std::int64_t)> function_;
  Mutex mutex_;
  ConditionVariable idle_;
  std::thread::id runner_ EARMARK_GUARDED_BY(mutex_);
  std::int64_t told_ EARMARK_GUARDED_BY(mutex_){0};
  bool running_ EARMARK_GUARDED_BY(mutex_){false};
  bool again_ EARMARK_GUARDED_BY(mutex_){false};
  bool ended_ EARMARK_GUARDED_BY(mutex_){false};
};

PressureSubscription PressureListeners::add(std::function<void(std::int64_t)> function) {
  auto listener = std::make_shared<PressureListener>(std::move(function));
  MutexLock lock{mutex_};
  auto list = std::make_shared<List>();
  if (listeners_ != nullptr) {
    for (auto const& known : *listeners_) {
      if (!known->ended()) { list->push_back(known); }
    }
  }
  list->push_back(listener);
  listeners_ = std::move(list);
  return PressureSubscription{std::move(listener)};
}

void PressureListeners::tell(std::function<std::int64_t()> const& pressure) noexcept {
  std::shared_ptr<List const> listeners;
  {
    MutexLock lock{mutex_};
    listeners = listeners_;
  }
  if (listeners == nullptr) { return; }
  for (auto const& listener : *listeners) { listener->tell(pressure); }
}

}  // namespace detail

PressureSubscription::PressureSubscription(std::shared_ptr<detail::PressureListener> listener) noexcept
    : listener_(std::move(listener)) {}

PressureSubscription& PressureSubscription::operator=(PressureSubscription&& other) noexcept {
  PressureSubscription taken{std::move(other)};
  std::swap(listener_, taken.listener_);
  return *this;
}

void PressureSubscription::end() noexcept {
  if (listener_ == nullptr) { return; }
  listener_->end();
  listener_.reset();
}

}  // namespace earmark
