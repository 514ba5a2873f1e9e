// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How those who can free memory learn that somebody waits for it: a function that is called with the bytes that must
// come back for the first in the queue to be served. A spill engine listens here.
//
//   PressureSubscription listening = adaptor.on_pressure([&](std::int64_t missing) { spiller.wake(missing); });
//
// It is called when what is missing changes: somebody waits, or is served or gone; memory was overbooked; the limit was
// lowered or raised. Not when a deficit ends and nobody waits: `pressure()` says so at any time.
// The function is called outside every lock, on the thread that changed things, never twice at once; what happens while
// it runs is told by one more call, so it always ends with the latest. It may allocate, free, subscribe and
// unsubscribe; it must not throw, and should hand on long work.
// Thread safety: any thread. Ownership: the subscription ends when it is dropped, which waits for a call under way
// (unless dropped inside it); it may outlive the adaptor. So two functions that each end the other's subscription wait
// for each other for ever when they run at once, like two threads that join each other: let an owner outside end both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "earmark/core/thread_annotations.hpp"

namespace earmark {

namespace detail {
class PressureListeners;
class PressureListener;
}  // namespace detail

class [[nodiscard]] PressureSubscription {
 public:
  PressureSubscription() noexcept = default;
  PressureSubscription(PressureSubscription&& other) noexcept = default;
  PressureSubscription& operator=(PressureSubscription&& other) noexcept;
  ~PressureSubscription() { end(); }

  // No calls any more. Blocks: while one is under way on another thread. Idempotent.
  void end() noexcept;

 private:
  friend class detail::PressureListeners;
  explicit PressureSubscription(std::shared_ptr<detail::PressureListener> listener) noexcept;

  std::shared_ptr<detail::PressureListener> listener_;  // shared with calls under way
};

namespace detail {

class PressureListeners {
 public:
  PressureListeners() = default;
  PressureListeners(PressureListeners const&) = delete;
  PressureListeners& operator=(PressureListeners const&) = delete;

  [[nodiscard]] PressureSubscription add(std::function<void(std::int64_t)> listener);
  // Calls each listener with what `pressure` returns, if that is above 0 or was.
  void tell(std::function<std::int64_t()> const& pressure) noexcept;

 private:
  using List = std::vector<std::shared_ptr<PressureListener>>;

  Mutex mutex_;
  std::shared_ptr<List const> listeners_ EARMARK_GUARDED_BY(mutex_);  // replaced, never changed: read outside the lock
};

}  // namespace detail
}  // namespace earmark
