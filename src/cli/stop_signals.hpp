// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns Ctrl-C and friends into a requested stop. Make one before any other thread, so that all threads inherit the
// blocked signals; while it lives, SIGINT, SIGTERM and SIGHUP (unless the caller has it ignored, as nohup does) only
// ask `source` to stop, however often they come, so that cleaning up is never cut short.
// Ownership: owns a thread and joins it. Thread safety: `cause` may be asked from any thread.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

#include "failure.hpp"

namespace earmark::cli {

class StopSignals {
 public:
  // Throws: std::system_error when the system gives no descriptor or thread.
  explicit StopSignals(std::stop_source source);
  StopSignals(StopSignals const&) = delete;
  StopSignals& operator=(StopSignals const&) = delete;
  // Signals that came and those to come stay blocked: the process is about to end.
  ~StopSignals();

  // Returns: what the first signal was.
  [[nodiscard]] StopCause cause() const noexcept { return cause_.load(); }

 private:
  void watch();

  std::stop_source source_;
  std::atomic<StopCause> cause_{StopCause::None};
  int signals_{-1};
  int done_{-1};
  std::thread watcher_;
};

}  // namespace earmark::cli
