// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "worker_queue.hpp"

#include <optional>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "posix_spill_file.hpp"

namespace earmark::detail {
namespace {

SpillOutcome transfer_blocking(SpillTransfer const& transfer) noexcept {
  TransferProgress progress{transfer};
  finish_blocking(progress);
  return progress.outcome();
}

// What queue and tasks share. The vectors have room for all from the start: nothing is allocated later.
class Work {
 public:
  explicit Work(std::size_t depth) {
    waiting_.reserve(depth);
    done_.reserve(depth);
  }

  void add(SpillTransfer const& transfer) EARMARK_EXCLUDES(mutex_) {
    MutexLock lock{mutex_};
    waiting_.push_back(transfer);
    ++in_flight_;
  }
  // Does one transfer, if one is left that nobody has begun. Returns: whether there was one.
  bool do_one() noexcept EARMARK_EXCLUDES(mutex_) {
    std::optional<SpillTransfer> const transfer = begin();
    if (!transfer) { return false; }
    SpillOutcome const outcome = transfer_blocking(*transfer);
    MutexLock lock{mutex_};
    done_.push_back(outcome);
    some_done_.notify_one();
    return true;
  }
  [[nodiscard]] std::optional<SpillOutcome> take_done() noexcept EARMARK_EXCLUDES(mutex_) {
    MutexLock lock{mutex_};
    return take();
  }
  // Blocks: until a transfer that others have begun is done.
  [[nodiscard]] SpillOutcome wait_for_others() noexcept EARMARK_EXCLUDES(mutex_) {
    MutexLock lock{mutex_};
    while (done_.empty()) { some_done_.wait(mutex_); }
    return *take();
  }
  [[nodiscard]] std::size_t in_flight() noexcept EARMARK_EXCLUDES(mutex_) {
    MutexLock lock{mutex_};
    return in_flight_;
  }

 private:
  [[nodiscard]] std::optional<SpillTransfer> begin() noexcept EARMARK_EXCLUDES(mutex_) {
    MutexLock lock{mutex_};
    if (waiting_.empty()) { return std::nullopt; }
    SpillTransfer const transfer = waiting_.front();
    waiting_.erase(waiting_.begin());
    return transfer;
  }
  [[nodiscard]] std::optional<SpillOutcome> take() noexcept EARMARK_REQUIRES(mutex_) {
    if (done_.empty()) { return std::nullopt; }
    SpillOutcome const outcome = done_.back();
    done_.pop_back();
    --in_flight_;
    return outcome;
  }

  Mutex mutex_;
  ConditionVariable some_done_;
  std::vector<SpillTransfer> waiting_ EARMARK_GUARDED_BY(mutex_);
  std::vector<SpillOutcome> done_ EARMARK_GUARDED_BY(mutex_);
  std::size_t in_flight_ EARMARK_GUARDED_BY(mutex_){0};
};

class WorkerQueue final : public SpillQueue {
 public:
  WorkerQueue(Executor& executor, std::size_t depth) : executor_(executor), work_(std::make_shared<Work>(depth)) {}
  ~WorkerQueue() override {
    while (work_->in_flight() != 0) { (void)wait(); }
  }

  void submit(SpillTransfer const& transfer) noexcept override {
    work_->add(transfer);
    try {
      executor_.post([work = work_] { (void)work->do_one(); });
    }
    catch (...) {
      // Nobody was told: whoever waits does it.
    }
  }

  [[nodiscard]] SpillOutcome wait() noexcept override {
    for (;;) {
      if (auto const outcome = work_->take_done()) { return *outcome; }
      if (!work_->do_one()) { return work_->wait_for_others(); }
    }
  }

 private:
  Executor& executor_;
  std::shared_ptr<Work> work_;  // shared with tasks that the executor may run after the queue is gone
};

}  // namespace

std::unique_ptr<SpillQueue> open_worker_queue(Executor& executor, std::size_t depth) {
  return std::make_unique<WorkerQueue>(executor, depth);
}

}  // namespace earmark::detail
