// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/budget.hpp"

#include <thread>

namespace earmark {

bool Budget::try_take(std::size_t bytes) noexcept {
  if (bytes > static_cast<std::size_t>(max_bytes)) { return false; }
  return take(static_cast<std::int64_t>(bytes)).result == detail::Take::Ok;
}

detail::Taken Budget::take(std::int64_t bytes) noexcept { return noted(account_.try_take(bytes)); }

detail::Taken Budget::take_anyway(std::int64_t bytes) noexcept { return noted(account_.take_anyway(bytes)); }

detail::Taken Budget::take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                 std::int64_t& taken) noexcept {
  return noted(account_.take_up_to(bytes, at_least, granule, taken));
}

detail::Taken Budget::noted(detail::Taken taken) noexcept {
  if (taken.result != detail::Take::Ok) { return taken; }
  std::int64_t const committed = limit() - taken.available;
  std::int64_t peak = peak_.load(std::memory_order_relaxed);
  while (committed > peak && !peak_.compare_exchange_weak(peak, committed, std::memory_order_relaxed)) {}
  return taken;
}

void Budget::set_limit(std::size_t limit) noexcept {
  MutexLock lock{limit_mutex_};
  std::int64_t const wanted = clamp(limit);
  limit_changes_.fetch_add(1, std::memory_order_acq_rel);
  std::int64_t const before = limit_.exchange(wanted, std::memory_order_acq_rel);
  account_.adjust(wanted - before);
  limit_changes_.fetch_add(1, std::memory_order_release);
}

Budget::Reading Budget::read() const noexcept {
  for (;;) {
    std::uint32_t const before = limit_changes_.load(std::memory_order_acquire);
    std::int64_t const limit = limit_.load(std::memory_order_acquire);
    std::int64_t const available = account_.available();
    if ((before & 1U) == 0 && limit_changes_.load(std::memory_order_relaxed) == before) {
      return {limit, limit - available};
    }
    std::this_thread::yield();
  }
}

}  // namespace earmark
