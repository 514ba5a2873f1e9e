// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/ledger.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <stdexcept>

#include "earmark/memory/errors.hpp"

namespace earmark::detail {
namespace {

// Errors name the largest holders only as far as this, so that a refusal stays cheap with a million reservations.
constexpr std::size_t slabs_searched_for_holders = 64;
constexpr std::size_t all_slabs = std::numeric_limits<std::size_t>::max();

std::size_t granularity_of(MemoryType type, AdaptorOptions const& options, ReservationBlock const* lender) {
  std::size_t const standard = type == MemoryType::Device ? 256 : 64;
  std::size_t const wanted = options.granularity == 0 ? standard : options.granularity;
  if (!std::has_single_bit(wanted) || wanted > (std::size_t{1} << 30)) {
    throw std::invalid_argument("an allocation granularity must be a power of two of at most 1 GiB");
  }
  // What is lent is charged by the lender's granules, so a finer one would not add up.
  return lender == nullptr ? wanted : std::max(wanted, lender->ledger().granularity());
}

Overbooking report(std::int64_t granted, std::int64_t available_after) {
  std::int64_t const available_before = std::max<std::int64_t>(available_after + granted, 0);
  return {granted, std::max<std::int64_t>(granted - available_before, 0), std::max<std::int64_t>(-available_after, 0)};
}

void raise(std::atomic<std::int64_t>& peak, std::int64_t value) {
  std::int64_t known = peak.load(std::memory_order_relaxed);
  while (value > known && !peak.compare_exchange_weak(known, value, std::memory_order_relaxed)) {}
}

}  // namespace

Ledger::Ledger(std::size_t limit, MemoryType type, AdaptorOptions const& options, ReservationBlock* lender)
    : granule_mask_(granularity_of(type, options, lender) - 1),
      granule_shift_(std::countr_one(granule_mask_)),
      type_(type),
      unreserved_(options.unreserved),
      tracking_(options.tracking),
      lender_(lender),
      budget_(limit, lender == nullptr ? nullptr : &lender->account()) {
  if (lender_ != nullptr) { lender_->retain(); }
}

Ledger::~Ledger() {
  if (lender_ == nullptr) { return; }
  lender_->ledger().add_totals(total_allocated_.load(std::memory_order_relaxed),
                               allocation_count_.load(std::memory_order_relaxed));
  lender_->release();
}

Taken Ledger::take(std::int64_t bytes) noexcept {
  if (lender_ == nullptr) { return budget_.take(bytes); }
  MutexLock lock{lender_mutex_};
  Taken const mine = budget_.account().try_take(bytes);
  if (mine.result != Take::Ok) { return mine; }
  Taken const lent = lender_->try_draw(bytes);
  if (lent.result == Take::Ok) { return budget_.noted(mine); }
  budget_.account().adjust(bytes);
  return lent;
}

Taken Ledger::take_anyway(std::int64_t bytes) noexcept {
  if (lender_ == nullptr) { return budget_.take_anyway(bytes); }
  MutexLock lock{lender_mutex_};
  Taken const lent = lender_->draw_anyway(bytes);
  if (lent.result != Take::Ok) { return lent; }
  return budget_.noted(budget_.account().take_anyway(bytes));
}

Taken Ledger::take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t& taken) noexcept {
  auto const granule = static_cast<std::int64_t>(granularity());
  if (lender_ == nullptr) { return budget_.take_up_to(bytes, at_least, granule, taken); }
  MutexLock lock{lender_mutex_};
  Taken const mine = budget_.account().take_up_to(bytes, at_least, granule, taken);
  if (mine.result != Take::Ok) { return mine; }
  std::int64_t const quota = taken;
  Taken lent = lender_->try_draw(quota);
  if (lent.result == Take::Short) { lent = lender_->account().take_up_to(quota, at_least, granule, taken); }
  std::int64_t const unused = lent.result == Take::Ok ? quota - taken : quota;
  budget_.account().adjust(unused);
  return lent.result == Take::Ok ? budget_.noted({Take::Ok, mine.available + unused}) : lent;
}

ReservationBlock* Ledger::try_reserve(std::size_t bytes, ReservationOptions const& options) {
  std::int64_t const charge = this->charge(bytes);
  if (charge < 0) { return nullptr; }
  Taken taken = take(charge);
  if (taken.result == Take::Short && options.overbooking == AllowOverbooking::YES) { taken = take_anyway(charge); }
  if (taken.result != Take::Ok) { return nullptr; }
  return &grant(charge, taken, options);
}

ReservationBlock& Ledger::reserve(std::size_t bytes, ReservationOptions const& options) {
  if (ReservationBlock* block = try_reserve(bytes, options)) { return *block; }
  std::int64_t const charge = this->charge(bytes);
  refuse(bytes, charge, {Take::Short, budget_.available()});
}

ReservationBlock& Ledger::reserve_up_to(std::size_t bytes, std::size_t at_least, ReservationOptions const& options) {
  std::int64_t const least = charge(at_least);
  if (least < 0) { refuse(at_least, least, {Take::Short, budget_.available()}); }
  // More than any budget can hold is a fine wish here: one gets what there is.
  std::int64_t const largest = Budget::max_bytes & ~static_cast<std::int64_t>(granule_mask_);
  std::int64_t const wish = std::max(least, charge(bytes) < 0 ? largest : charge(bytes));
  std::int64_t taken = 0;
  Taken const outcome = take_up_to(wish, least, taken);
  if (outcome.result != Take::Ok) { refuse(at_least, least, outcome); }
  return grant(taken, outcome, options);
}

ReservationBlock& Ledger::grant(std::int64_t bytes, Taken const& taken, ReservationOptions const& options) {
  try {
    return make_block(bytes, report(bytes, taken.available), options);
  }
  catch (std::bad_alloc const&) {
    credit(bytes);
    throw;
  }
}

void Ledger::refuse(std::size_t bytes, std::int64_t charge, Taken const& taken) const {
  std::int64_t const requested =
      charge >= 0 ? charge : static_cast<std::int64_t>(std::min<std::size_t>(bytes, INT64_MAX));
  ErrorFields fields = this->fields(requested, requested - std::clamp<std::int64_t>(taken.available, 0, requested));
  {
    MutexLock lock{mutex_};
    fields.live = sum_of_live();
  }
  if (charge < 0 || charge > budget_.limit()) {
    fields.setting.assign("the adaptor's limit");
    throw ImpossibleRequest(fields);
  }
  fields.setting.assign("the adaptor's limit, or AllowOverbooking::YES");
  throw ReservationRefused(fields);
}

ReservationBlock& Ledger::make_block(std::int64_t granted, Overbooking const& overbooking,
                                     ReservationOptions const& options) {
  // Opened under the lock, so that whoever walks the blocks sees each whole.
  MutexLock lock{mutex_};
  if (free_ == nullptr) { add_slab(); }
  ReservationBlock::Label const* const name = label(options.label);
  ReservationBlock& block = *free_;
  free_ = block.next_free_;
  block.open(granted, budget_.account(), overbooking, name, options);
  if (blocks_in_use_++ == 0) { retain(); }
  return block;
}

void Ledger::add_slab() {
  slabs_.reserve(slabs_.size() + 1);
  auto slab = std::make_unique<ReservationBlock[]>(blocks_per_slab);
  for (std::size_t i = blocks_per_slab; i-- > 0;) {
    slab[i].ledger_ = this;
    slab[i].next_free_ = free_;
    free_ = &slab[i];
  }
  slabs_.push_back(std::move(slab));
}

ReservationBlock::Label const* Ledger::label(std::string_view text) {
  if (text.empty()) { return nullptr; }
  auto const known = labels_.find(text);
  if (known != labels_.end()) { return &known->second; }
  return &labels_.emplace(text, ReservationBlock::Label{text}).first->second;
}

void Ledger::recycle(ReservationBlock& block) noexcept {
  block.fold_counters();
  if (!tracks_exactly()) { raise(known_peak_, block.peak()); }
  ReservationBlock* const heir = block.merged_into_;
  bool last = false;
  {
    MutexLock lock{mutex_};
    block.use_.store(ReservationBlock::Use::Free, std::memory_order_relaxed);
    block.next_free_ = free_;
    free_ = &block;
    last = --blocks_in_use_ == 0;
  }
  if (heir != nullptr) { heir->release(); }
  if (last) { release(); }
}

void Ledger::add_totals(std::int64_t bytes, std::int64_t allocations) noexcept {
  total_allocated_.fetch_add(bytes, std::memory_order_relaxed);
  allocation_count_.fetch_add(allocations, std::memory_order_relaxed);
}

void Ledger::track(std::int64_t change) noexcept {
  std::int64_t const live = tracked_live_.fetch_add(change, std::memory_order_relaxed) + change;
  if (change > 0) { raise(known_peak_, live); }
}

ReservationBlock::Draw Ledger::draw_unreserved(std::size_t bytes) {
  std::int64_t const charge = this->charge(bytes);
  std::int64_t const requested = charge < 0 ? Budget::max_bytes : charge;
  Taken taken{Take::Short, 0};
  if (charge >= 0 && unreserved_ == UnreservedPolicy::Count) { taken = take(charge); }
  if (charge >= 0 && unreserved_ == UnreservedPolicy::Unbounded) { taken = take_anyway(charge); }
  if (taken.result == Take::Ok) { return {charge, 0}; }
  ErrorFields fields = this->fields(requested, requested - std::clamp<std::int64_t>(taken.available, 0, requested));
  fields.setting.assign(unreserved_ == UnreservedPolicy::Forbid ? "UnreservedPolicy, or allocate from a reservation"
                                                                : "the adaptor's limit");
  throw ReservationExhausted(fields);
}

void Ledger::count_unreserved(ReservationBlock::Draw const& draw) noexcept {
  add_totals(draw.charge, 1);
  if (tracks_exactly()) { track(draw.charge); }
}

void Ledger::give_back_unreserved(std::size_t bytes) noexcept {
  std::int64_t const charge = this->charge(bytes);
  if (tracks_exactly()) { track(-charge); }
  credit(charge);
}

void Ledger::fail_unreserved(ReservationBlock::Draw const& draw) {
  credit(draw.charge);
  ErrorFields fields = this->fields(draw.charge, 0);
  fields.setting.assign("the upstream's capacity");
  try {
    throw;
  }
  catch (std::bad_alloc const& cause) {
    throw UpstreamOutOfMemory(fields, cause.what());
  }
}

template <class Visit>
void Ledger::for_each_block(std::size_t most_slabs, Visit const& visit) const {
  std::size_t const slabs = std::min(most_slabs, slabs_.size());
  for (std::size_t s = 0; s < slabs; ++s) {
    for (std::size_t i = 0; i < blocks_per_slab; ++i) {
      ReservationBlock const& block = slabs_[s][i];
      if (block.use_.load(std::memory_order_relaxed) != ReservationBlock::Use::Free) {
        visit(block, block.account().read());
      }
    }
  }
}

std::int64_t Ledger::sum_of_live() const noexcept {
  std::int64_t live = budget_.committed();
  for_each_block(all_slabs,
                 [&](ReservationBlock const&, Account::Reading const& reading) { live -= reading.available; });
  return std::max<std::int64_t>(live, 0);
}

AdaptorSnapshot Ledger::snapshot() noexcept {
  AdaptorSnapshot result;
  std::int64_t largest_peak = 0;
  MutexLock lock{mutex_};
  Budget::Reading const now = budget_.read();
  result.limit = now.limit;
  result.committed = now.committed;
  std::int64_t unspent = 0;
  result.total_allocated = total_allocated_.load(std::memory_order_relaxed);
  result.allocation_count = allocation_count_.load(std::memory_order_relaxed);
  for_each_block(all_slabs, [&](ReservationBlock const& block, Account::Reading const& reading) {
    if (!reading.closed) {
      result.reserved += reading.granted;
      ++result.open_reservations;
    }
    unspent += reading.available;
    largest_peak = std::max(largest_peak, block.peak());
    block.add_counters_to(result);
  });
  result.allocated = std::max<std::int64_t>(now.committed - unspent, 0);
  if (tracks_exactly()) {
    result.allocated = tracked_live_.load(std::memory_order_relaxed);
  } else {
    raise(known_peak_, std::max(largest_peak, result.allocated));
  }
  result.peak_allocated = known_peak_.load(std::memory_order_relaxed);
  result.peak_committed = budget_.peak_committed();
  return result;
}

std::vector<OutstandingReservation> Ledger::outstanding() const {
  std::vector<OutstandingReservation> result;
  MutexLock lock{mutex_};
  for_each_block(all_slabs, [&](ReservationBlock const& block, Account::Reading const& reading) {
    if (reading.closed && reading.granted == 0) { return; }
    result.push_back({std::string{block.label()}, reading.granted, reading.live(),
                      reading.closed ? OutstandingReservation::State::Closed : OutstandingReservation::State::Open});
  });
  return result;
}

ErrorFields Ledger::fields(std::int64_t requested, std::int64_t shortfall) const noexcept {
  ErrorFields fields;
  Budget::Reading const now = budget_.read();
  fields.tier.assign(to_string(type_));
  fields.limit = now.limit;
  fields.committed = now.committed;
  fields.requested = requested;
  fields.shortfall = shortfall;
  MutexLock lock{mutex_};
  for_each_block(slabs_searched_for_holders, [&](ReservationBlock const& block, Account::Reading const& reading) {
    Holder holder{FixedText<47>{block.label()}, reading.granted};
    for (Holder& place : fields.holders) {
      if (holder.granted_bytes > place.granted_bytes) { std::swap(holder, place); }
    }
  });
  return fields;
}

}  // namespace earmark::detail
