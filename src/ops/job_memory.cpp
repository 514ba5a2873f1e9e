// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "job_memory.hpp"

#include <malloc.h>

#include <algorithm>

#include "earmark/core/machine_memory.hpp"
#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/memory_arrow/arrow_memory_pool.hpp"
#include "reusing_memory_pool.hpp"

namespace earmark::detail {
namespace {

// The least that will do is named with the largest page read, if the machine has room for it.
constexpr std::int64_t least_planning = 32 << 20;
constexpr std::int64_t most_planning = 128 << 20;

std::int64_t planning_room() {
  return std::clamp(read_machine_memory().available_bytes() / 2, least_planning, most_planning);
}

HostMemoryReservation growing(HostReservationAwareResourceAdaptor& budget, std::string_view label) {
  return budget.reserve(0, ReservationOptions{.label = label, .exhausted = ExhaustedPolicy::GrowOrRefuse});
}

}  // namespace

JobMemory::JobMemory(std::int64_t limit_bytes, ResidentMemory& resident)
    : resident_(resident),
      limit_(limit_bytes),
      baseline_(resident.current_bytes()),
      planning_bytes_(planning_room()),
      budget_(HostMemoryResource{}, budget_bytes()),
      working_space_(growing(budget_, "working space")),
      pool_(std::make_unique<ReusingMemoryPool>(make_arrow_memory_pool(working_space_.resource()))) {}

std::int64_t JobMemory::watch() {
  std::int64_t const resident = resident_.current_bytes();
  std::int64_t const outside = resident - baseline_ - budget_.committed();
  std::int64_t seen = slack_.load(std::memory_order_relaxed);
  while (outside > seen && !slack_.compare_exchange_weak(seen, outside, std::memory_order_relaxed)) {}
  if (outside > seen) { budget_.set_limit(budget_bytes()); }
  return resident;
}

std::size_t JobMemory::budget_bytes() const noexcept {
  std::int64_t const least = is_planning_.load(std::memory_order_relaxed) ? planning_bytes_ : 0;
  return static_cast<std::size_t>(std::max(limit_ - baseline_ - slack_bytes(), least));
}

void JobMemory::end_planning() {
  is_planning_.store(false, std::memory_order_relaxed);
  budget_.set_limit(budget_bytes());
}

HostMemoryReservation JobMemory::reserve(std::int64_t bytes, std::string_view label) {
  return budget_.reserve(static_cast<std::size_t>(bytes), ReservationOptions{.label = label});
}

void JobMemory::forget_planning() {
  give_back_unspent();
  std::int64_t const outside = resident_.current_bytes() - baseline_ - static_cast<std::int64_t>(budget_.committed());
  slack_.store(std::max<std::int64_t>(outside, 0), std::memory_order_relaxed);
  budget_.set_limit(budget_bytes());
}

void JobMemory::trim_heap() {
  constexpr std::size_t much = 4 << 20;
  if (::mallinfo2().fordblks > much) { ::malloc_trim(0); }
}

void JobMemory::give_back_unspent() {
  pool_->ReleaseUnused();
  working_space_.shrink_to_fit();
  ::malloc_trim(0);
}

}  // namespace earmark::detail
