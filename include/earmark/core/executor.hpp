// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Where work runs. Everything below the roof posts to an `Executor` and never starts a thread: a pool runs it in
// programs, a simulator in tests. `parallel_for` is the way to use one from a plain function.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstddef>
#include <functional>

#include "earmark/core/clock.hpp"

namespace earmark {

class Executor {
 public:
  using Task = std::function<void()>;

  virtual ~Executor() = default;
  // Runs `task` once, soon, on a thread of the executor; never inside this call. `task` must not throw.
  virtual void post(Task task) = 0;
  // Runs `task` once, not before `when`.
  virtual void post_at(Clock::time_point when, Task task) = 0;
  // Returns: how many tasks can run at once, at least 1.
  [[nodiscard]] virtual std::size_t concurrency() const noexcept = 0;
};

// Calls `body(worker, index)` once for every index in [0, count), on up to `workers` threads: the caller (worker 0)
// and tasks posted to `executor` (workers 1, 2, ...; a worker number is never in use twice at once). Indices are handed
// out in increasing order. The caller works too, so this ends even when the executor is busy or single-threaded.
// Blocks: until every call that started has returned.
// Throws: the first exception that a call threw; no further index is handed out after it.
void parallel_for(Executor& executor, std::size_t workers, std::size_t count,
                  std::function<void(std::size_t worker, std::size_t index)> const& body);

}  // namespace earmark
