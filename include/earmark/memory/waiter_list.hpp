// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Those beyond an account's own queue who want to be told when bytes come back to it: the nested budgets that stand on
// it and have somebody waiting. Internal; see `BasicBudget::subscribe`.
// Thread safety: any thread. Ownership: owns nobody; whoever is in it stays alive until it was removed, and is held
// while it is told.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/account.hpp"

namespace earmark::detail {

template <class Atomics>
class BasicWaiterList final : public Waiters {
 public:
  BasicWaiterList() = default;
  BasicWaiterList(BasicWaiterList const&) = delete;
  BasicWaiterList& operator=(BasicWaiterList const&) = delete;

  // `announce()` is called under the list's lock while it is not empty, `announce_no_more()` when it becomes so.
  // Throws: std::bad_alloc.
  template <class Announce>
  void add(Waiters& waiters, Announce const& announce) {
    BasicMutexLock<typename Atomics::Mutex> lock{mutex_};
    entries_.push_back({&waiters, round_});
    announce();
  }
  template <class AnnounceNoMore>
  void remove(Waiters& waiters, AnnounceNoMore const& announce_no_more) noexcept {
    BasicMutexLock<typename Atomics::Mutex> lock{mutex_};
    auto const at = std::find_if(entries_.begin(), entries_.end(), [&](Entry const& e) { return e.who == &waiters; });
    if (at != entries_.end()) { entries_.erase(at); }
    if (entries_.empty()) { announce_no_more(); }
  }

  // Tells each once, outside the lock. One that a later round has told already needs no telling: that round began
  // after our bytes had come back.
  void bytes_came_back() noexcept override {
    std::uint64_t round = 0;
    for (;;) {
      Waiters* next = nullptr;
      {
        BasicMutexLock<typename Atomics::Mutex> lock{mutex_};
        if (round == 0) { round = ++round_; }
        auto const at = std::find_if(entries_.begin(), entries_.end(), [&](Entry const& e) { return e.told < round; });
        if (at == entries_.end()) { return; }
        at->told = round;
        next = at->who;
        next->hold();
      }
      next->bytes_came_back();
      next->let_go();
    }
  }

 private:
  struct Entry {
    Waiters* who;
    std::uint64_t told;
  };

  typename Atomics::Mutex mutex_;
  std::vector<Entry> entries_ EARMARK_GUARDED_BY(mutex_);
  std::uint64_t round_ EARMARK_GUARDED_BY(mutex_){0};
};

}  // namespace earmark::detail
