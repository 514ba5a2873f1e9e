// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What a ledger tells about itself.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "earmark/memory/consumer_account.hpp"
#include "earmark/memory/ledger.hpp"
#include "memory/preallocation.hpp"

namespace earmark::detail {
namespace {

// Errors name the largest holders only as far as this, so that a refusal stays cheap with a million reservations.
constexpr std::size_t blocks_searched_for_holders = 4096;
constexpr std::size_t all_blocks = std::numeric_limits<std::size_t>::max();

void add_to(LabelCounters& label, LabelRecord::Counters const& counters) {
  label.reserved_total += counters.reservations;
  label.allocation_count += counters.allocations;
  label.total_allocated += counters.allocated_bytes;
  label.peak = std::max(label.peak, counters.peak);
}

}  // namespace

std::int64_t Ledger::live_now() noexcept {
  std::int64_t live = budget_.read().committed;
  pool_.for_each_block(all_blocks,
                       [&](ReservationBlock const&, Account::Reading const& reading) { live -= reading.available; });
  return std::max<std::int64_t>(live, 0);
}

AdaptorSnapshot Ledger::snapshot() noexcept {
  AdaptorSnapshot result;
  result.total_allocated = unreserved_bytes_.load(std::memory_order_relaxed);
  result.allocation_count = unreserved_allocations_.load(std::memory_order_relaxed);
  pool_.for_each_label([&](LabelRecord const& record) {
    LabelRecord::Counters const counters = record.counters();
    result.total_allocated += counters.allocated_bytes;
    result.allocation_count += counters.allocations;
  });
  auto const now = budget_.read();
  result.limit = now.limit;
  result.committed = now.committed;
  std::int64_t unspent = 0;
  std::int64_t largest_peak = 0;
  pool_.for_each_block(all_blocks, [&](ReservationBlock const& block, Account::Reading const& reading) {
    if (!reading.closed) {
      result.reserved += reading.granted;
      ++result.open_reservations;
    }
    unspent += reading.available;
    largest_peak = std::max(largest_peak, block.peak());
    LabelRecord::Counters const counters = block.counters();
    result.total_allocated += counters.allocated_bytes;
    result.allocation_count += counters.allocations;
  });
  result.allocated = std::max<std::int64_t>(now.committed - unspent, 0);
  if (tracks_exactly()) {
    result.allocated = tracked_live_.load(std::memory_order_relaxed);
  } else {
    note_peak(std::max(largest_peak, result.allocated));
  }
  result.peak_allocated = known_peak_.load(std::memory_order_relaxed);
  result.peak_committed = budget_.peak();
  return result;
}

std::vector<OutstandingReservation> Ledger::outstanding() const {
  std::vector<OutstandingReservation> result;
  pool_.for_each_block(all_blocks, [&](ReservationBlock const& block, Account::Reading const& reading) {
    if (reading.closed && reading.granted == 0) { return; }
    OutstandingReservation& one = result.emplace_back();
    one.label = std::string{block.label()};
    one.granted = reading.granted;
    one.live = reading.live();
    one.state = block.closed() ? OutstandingReservation::State::Closed : OutstandingReservation::State::Open;
    if (BlockExtras const* const extras = block.extras()) { one.reserved_at = extras->reserved_at; }
  });
  return result;
}

std::vector<LabelCounters> Ledger::label_counters() {
  std::map<std::string_view, LabelCounters> labels;
  pool_.for_each_label([&](LabelRecord const& record) {
    LabelCounters& label = labels[record.name()];
    label.label = std::string{record.name()};
    add_to(label, record.counters());
    label.waits = record.waits();
    label.waited = std::chrono::nanoseconds{record.waited_nanoseconds()};
    label.refusals = record.refusals();
  });
  pool_.for_each_block(all_blocks, [&](ReservationBlock const& block, Account::Reading const& reading) {
    LabelCounters& label = labels[block.label()];
    label.label = std::string{block.label()};
    add_to(label, block.counters());
    label.granted += reading.granted;
    label.live += reading.live();
  });
  Clock::time_point const now = clock_->now();
  budget_.for_each_request([&](BasicWaitRequest<StdAtomics> const& request) {
    auto const& waiting = static_cast<Waiting const&>(request);
    if (waiting.label() == nullptr) { return; }
    LabelCounters& label = labels[waiting.label()->name()];
    label.waits += 1;
    label.waited += now - waiting.since();
  });
  std::vector<LabelCounters> result;
  for (auto& [name, label] : labels) { result.push_back(std::move(label)); }
  return result;
}

MemoryReport Ledger::report() {
  MemoryReport result;
  AdaptorSnapshot const now = snapshot();
  result.tier = std::string{to_string(type_)};
  result.limit = now.limit;
  result.committed = now.committed;
  result.live = now.allocated;
  result.available = now.limit - now.committed;
  result.peak_committed = now.peak_committed;
  result.pressure = budget_.pressure();
  result.labels = label_counters();
  result.reservations = outstanding();
  pool_.for_each_block(all_blocks, [&](ReservationBlock const& block, Account::Reading const& reading) {
    BlockExtras const* const extras = block.extras();
    Preallocation* const preallocation = extras == nullptr ? nullptr : extras->preallocation.load();
    if (preallocation == nullptr || reading.closed) { return; }
    auto const hole = static_cast<std::int64_t>(preallocation->carver().largest_hole());
    result.largest_hole = std::max(result.largest_hole.value_or(0), hole);
  });
  Clock::time_point const moment = clock_->now();
  budget_.for_each_request([&](BasicWaitRequest<StdAtomics> const& request) {
    auto const& waiting = static_cast<Waiting const&>(request);
    WaitingRequest& one = result.waiting.emplace_back();
    if (waiting.label() != nullptr) { one.label = std::string{waiting.label()->name()}; }
    one.bytes = request.bytes();
    one.priority = request.priority();
    one.net_memory_delta = request.net_memory_delta();
    one.overtaken = request.overtaken();
    one.waited = moment - waiting.since();
  });
  MutexLock lock{consumers_mutex_};
  for (ConsumerAccount* consumer : consumers_) {
    auto const usage = consumer->budget().read();
    result.consumers.push_back({std::string{consumer->name()}, usage.limit, usage.committed});
  }
  return result;
}

ErrorFields Ledger::fields(std::int64_t requested, std::int64_t shortfall) noexcept {
  ErrorFields fields;
  auto const now = budget_.read();
  fields.tier.assign(to_string(type_));
  fields.limit = now.limit;
  fields.committed = now.committed;
  fields.requested = requested;
  fields.shortfall = shortfall;
  pool_.for_each_block(blocks_searched_for_holders,
                       [&](ReservationBlock const& block, Account::Reading const& reading) {
                         Holder holder{FixedText<47>{block.label()}, reading.granted};
                         for (Holder& place : fields.holders) {
                           if (holder.granted_bytes > place.granted_bytes) { std::swap(holder, place); }
                         }
                       });
  return fields;
}

}  // namespace earmark::detail
