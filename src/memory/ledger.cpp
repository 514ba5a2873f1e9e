// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/ledger.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "earmark/core/log_sink.hpp"
#include "earmark/memory/atomic_max.hpp"
#include "earmark/memory/block_lender.hpp"
#include "earmark/memory/consumer_account.hpp"
#include "earmark/memory/errors.hpp"

namespace earmark::detail {
namespace {

std::size_t granularity_of(MemoryType type, AdaptorOptions const& options, ReservationBlock const* lender) {
  std::size_t const standard = type == MemoryType::Device ? 256 : 64;
  std::size_t const wanted = options.granularity == 0 ? standard : options.granularity;
  if (!std::has_single_bit(wanted) || wanted > (std::size_t{1} << 30)) {
    throw std::invalid_argument("an allocation granularity must be a power of two of at most 1 GiB");
  }
  if (lender != nullptr && lender->preallocated()) {
    throw std::invalid_argument("a preallocated reservation has no balance to lend: make it the adaptor's upstream");
  }
  // What is lent is charged by the lender's granules, so a finer one would not add up.
  return lender == nullptr ? wanted : std::max(wanted, lender->ledger().granularity());
}

Overbooking what_it_took(std::int64_t granted, std::int64_t available_after) {
  std::int64_t const available_before = std::max<std::int64_t>(available_after + granted, 0);
  return {granted, std::max<std::int64_t>(granted - available_before, 0), std::max<std::int64_t>(-available_after, 0)};
}

constexpr std::string_view limit_bound = "the adaptor's limit";
constexpr std::string_view quota_bound = "the consumer's quota";

std::size_t cores_with_slack(AdaptorOptions const& options) {
  return options.tracking == Tracking::Exact ? 0 : std::thread::hardware_concurrency();
}

}  // namespace

Ledger::Ledger(std::size_t limit, MemoryType type, AdaptorOptions const& options, ReservationBlock* lender)
    : granule_mask_(granularity_of(type, options, lender) - 1),
      type_(type),
      unreserved_(options.unreserved),
      tracking_(options.tracking),
      call_stacks_(options.call_stacks),
      order_by_stream_(options.events != nullptr && options.events->order() == StreamEvents::Order::ByStream),
      observed_(options.tracking == Tracking::Exact || options.trace != nullptr),
      events_(options.events != nullptr ? options.events : &host_events_),
      clock_(options.clock != nullptr ? options.clock : &steady_clock_),
      trace_(options.trace),
      log_(options.log),
      traced_as_(trace_label(to_string(type))),
      lender_(lender == nullptr ? nullptr : std::make_unique<BlockLender>(*lender)),
      budget_(lender_ == nullptr
                  ? BudgetCore(Budget::clamp(limit), cores_with_slack(options), options.overtakes_allowed)
                  : BudgetCore(Budget::clamp(limit), *lender_, options.overtakes_allowed)),
      pool_(*this) {
  budget_.belongs_to(this);
}

Ledger::~Ledger() {
  if (lender_ == nullptr) { return; }
  // To the lender, what was allocated here was allocated in it.
  LabelRecord::Counters mine{0, unreserved_allocations_.load(std::memory_order_relaxed),
                             unreserved_bytes_.load(std::memory_order_relaxed), 0};
  pool_.for_each_label([&](LabelRecord const& record) {
    mine.allocations += record.counters().allocations;
    mine.allocated_bytes += record.counters().allocated_bytes;
  });
  lender_->block().label_record().add(mine);
}

void Ledger::retain() noexcept {
  handles_.fetch_add(1, std::memory_order_relaxed);
  hold();
}

void Ledger::release() noexcept {
  if (handles_.fetch_sub(1, std::memory_order_acq_rel) == 1 && !handles_gone_.exchange(true)) {
    log_leaks();
    pool_.bring_references_together();
  }
  let_go();
}

// -- reserving -------------------------------------------------------------------------------------------------------

BudgetCore& Ledger::purse_of(ReservationOptions const& options) {
  if (options.backing == Backing::Preallocated && type_ == MemoryType::Device && events_ == &host_events_) {
    throw std::invalid_argument(
        "a preallocated reservation of device memory needs AdaptorOptions::events, which order "
        "its pieces between streams");
  }
  if (options.backing == Backing::Preallocated && options.exhausted != ExhaustedPolicy::Refuse) {
    throw std::invalid_argument(
        "a preallocated reservation is one block and does not grow by itself: leave ExhaustedPolicy::Refuse, and see "
        "FallbackPolicy");
  }
  if (options.consumer == nullptr) { return budget_; }
  if (&options.consumer->account_->ledger() != this) {
    throw ReservationMismatch(fields(0, 0), "the consumer was made by another adaptor");
  }
  return options.consumer->account_->budget();
}

Ledger::Asked Ledger::ask(std::size_t bytes, ReservationOptions const& options) {
  return {bytes, charge(bytes), purse_of(options), options};
}

Wish Ledger::wish(Asked const& asked, LabelRecord const& label) const noexcept {
  return {asked.charge, asked.purse, &label};
}

Taken Ledger::take_for(BudgetCore& purse, std::int64_t bytes, AllowOverbooking overbooking) noexcept {
  if (purse.aborted()) { return {Take::Aborted, 0}; }
  Taken const taken = purse.take(bytes, Pass::No);
  if (taken.result == Take::Ok || overbooking == AllowOverbooking::NO) { return taken; }
  return purse.take_anyway(bytes);
}

ReservationBlock* Ledger::try_reserve(std::size_t bytes, ReservationOptions const& options) {
  Asked const asked = ask(bytes, options);
  if (asked.charge < 0) { return nullptr; }
  Taken const taken = take_for(asked.purse, asked.charge, options.overbooking);
  if (taken.result == Take::Ok) { return &grant(asked, asked.charge, taken); }
  if (observed_) { trace(TraceKind::Refuse, &pool_.label(options.label), asked.charge); }
  return nullptr;
}

ReservationBlock& Ledger::reserve(std::size_t bytes, ReservationOptions const& options) {
  Asked const asked = ask(bytes, options);
  if (asked.charge < 0) { refuse(asked, {Take::Impossible, 0}); }
  Taken const taken = take_for(asked.purse, asked.charge, options.overbooking);
  if (taken.result != Take::Ok) { refuse(asked, taken); }
  return grant(asked, asked.charge, taken);
}

ReservationBlock& Ledger::reserve_up_to(std::size_t bytes, std::size_t at_least, ReservationOptions const& options) {
  Asked const least = ask(at_least, options);
  if (least.charge < 0) { refuse(least, {Take::Impossible, 0}); }
  // More than any budget can hold is a fine wish here: one gets what there is.
  std::int64_t const largest = Budget::max_bytes & ~static_cast<std::int64_t>(granule_mask_);
  std::int64_t const wish = std::max(least.charge, charge(bytes) < 0 ? largest : charge(bytes));
  if (least.purse.aborted()) { refuse(least, {Take::Aborted, 0}); }
  std::int64_t taken = 0;
  Taken outcome = least.purse.take_up_to(wish, least.charge, static_cast<std::int64_t>(granularity()), taken);
  if (least.charge == 0 && outcome.result != Take::Ok && outcome.result != Take::Closed) {
    taken = 0;  // nothing is always there, whoever waits
    outcome = least.purse.take(0, Pass::Yes);
  }
  if (outcome.result != Take::Ok) { refuse(least, outcome); }
  return grant(least, taken, outcome);
}

ReservationBlock& Ledger::reserve_blocking(std::size_t bytes, ReservationOptions const& options,
                                           WaitOptions const& wait) {
  Asked const asked = ask(bytes, options);
  if (asked.charge < 0) { refuse(asked, {Take::Impossible, 0}); }
  Taken taken = take_for(asked.purse, asked.charge);
  if (taken.result != Take::Ok) {
    LabelRecord& label = pool_.label(options.label);
    Clock::time_point const since = clock_->now();
    if (observed_) { trace(TraceKind::Wait, &label, asked.charge); }
    taken = wait_blocking(wish(asked, label), wait, *clock_);
    note_wait(label, since, asked, taken);
  }
  if (taken.result != Take::Ok) { refuse(asked, taken); }
  return grant(asked, asked.charge, taken);
}

void Ledger::async_reserve(std::size_t bytes, ReservationOptions const& options, WaitOptions const& wait,
                           std::function<void(ReservationBlock*, std::exception_ptr)> done) {
  if (wait.deadline && wait.executor == nullptr) {
    throw std::invalid_argument("a deadline without a thread that waits needs WaitOptions::executor, which keeps it");
  }
  // What the options refer to may be gone when the wait is over.
  struct Request {
    Ledger& ledger;
    std::string label;
    ReservationOptions options;
    std::optional<Consumer> consumer;
    std::function<void(ReservationBlock*, std::exception_ptr)> done;
    Clock::time_point since;
    Request(Ledger& owner, ReservationOptions const& wanted,
            std::function<void(ReservationBlock*, std::exception_ptr)> call)
        : ledger(owner), label(wanted.label), options(wanted), done(std::move(call)), since(owner.clock_->now()) {
      options.label = label;
      if (wanted.consumer != nullptr) { options.consumer = &consumer.emplace(*wanted.consumer); }
      ledger.hold();
    }
    Request(Request const&) = delete;
    Request& operator=(Request const&) = delete;
    ~Request() { ledger.let_go(); }
  };
  (void)purse_of(options);
  auto const request = std::make_shared<Request>(*this, options, std::move(done));
  LabelRecord& label = pool_.label(options.label);
  Asked const asked = ask(bytes, request->options);
  Taken const first = asked.charge < 0 ? Taken{Take::Impossible, 0} : take_for(asked.purse, asked.charge);
  bool const decided = first.result == Take::Ok || asked.charge < 0;
  auto const finish = [request, bytes, decided, &label](Taken const& taken) {
    Ledger& ledger = request->ledger;
    ReservationBlock* block = nullptr;
    std::exception_ptr error;
    try {
      Asked const wanted = ledger.ask(bytes, request->options);
      if (!decided) { ledger.note_wait(label, request->since, wanted, taken); }
      if (taken.result != Take::Ok) { ledger.refuse(wanted, taken); }
      block = &ledger.grant(wanted, wanted.charge, taken);
    }
    catch (...) {
      error = std::current_exception();
    }
    request->done(block, std::move(error));
  };
  if (!decided) { trace(TraceKind::Wait, &label, asked.charge); }
  try {
    wait_async(wish(asked, label), wait, *clock_, finish, decided ? std::optional{first} : std::nullopt);
  }
  catch (...) {
    if (first.result == Take::Ok) { asked.purse.credit(asked.charge); }
    throw;
  }
}

void Ledger::note_wait(LabelRecord& label, Clock::time_point since, Asked const& asked, Taken const& taken) noexcept {
  label.waited((clock_->now() - since).count());
  if (observed_) { trace(taken.result == Take::Ok ? TraceKind::Grant : TraceKind::GiveUp, &label, asked.charge); }
}

ReservationBlock& Ledger::grant(Asked const& asked, std::int64_t granted, Taken const& taken) {
  ReservationBlock* block = nullptr;
  try {
    block = &make_block(granted, asked.purse, asked.options);
  }
  catch (std::bad_alloc const&) {
    asked.purse.credit(granted);
    throw;
  }
  try {
    Overbooking const overbooking = what_it_took(granted, taken.available);
    if (overbooking.short_for_this_request != 0 || overbooking.tier_deficit != 0) {
      block->make_extras().overbooking = overbooking;
      if (observed_) { trace(TraceKind::Overbook, &block->label_record(), overbooking.tier_deficit, block); }
    }
    if (asked.options.backing == Backing::Preallocated && granted != 0) { block->preallocate(asked.options.fallback); }
    if (overbooking.tier_deficit != 0 || asked.options.overbooking == AllowOverbooking::YES) { tell_of_overbooking(); }
  }
  catch (...) {
    block->close();
    block->release();
    throw;
  }
  return *block;
}

ReservationBlock& Ledger::make_block(std::int64_t granted, BudgetCore& purse, ReservationOptions const& options) {
  ReservationBlock& block = pool_.take(options.label);
  if (call_stacks_ == CallStacks::Record) [[unlikely]] {
    try {
      block.make_extras().reserved_at = CallStack::capture(2);  // before it is in use, when others may look at it
    }
    catch (std::bad_alloc const&) {
      // The reservation matters more than where it was made.
    }
  }
  block.open(granted, purse, options);
  if (observed_) [[unlikely]] { trace(TraceKind::Reserve, &block.label_record(), granted, &block); }
  return block;
}

// -- refusing --------------------------------------------------------------------------------------------------------

void Ledger::refuse(Asked const& asked, Taken const& taken) {
  refuse(asked.bytes, asked.charge, taken, asked.purse, pool_.label(asked.options.label));
}

void Ledger::refuse(std::size_t bytes, std::int64_t charge, Taken const& taken, BudgetCore& purse, LabelRecord& label) {
  std::int64_t const requested =
      charge >= 0 ? charge : static_cast<std::int64_t>(std::min<std::size_t>(bytes, INT64_MAX));
  Room const room = this->room(purse);
  ErrorFields fields = this->fields(requested, room.shortfall(requested));
  fields.live = live_now();
  label.refused();
  if (observed_) { trace(TraceKind::Refuse, &label, requested); }
  if (taken.result == Take::Aborted) { throw ReservationAborted(fields); }
  if (charge < 0 || charge > budget_.limit() || taken.result == Take::Impossible) {
    bool const quota = charge >= 0 && charge <= budget_.limit() && charge > purse.limit();
    fields.setting.assign(quota ? quota_bound : limit_bound);
    throw ImpossibleRequest(fields);
  }
  if (taken.result == Take::Closed) {
    fields.setting.assign("the reservation it stands on, which is closed");
  } else if (taken.result == Take::QuotaShort) {
    fields.setting.assign(quota_bound);
  } else if (taken.result == Take::Queue) {
    fields.setting.assign("others wait: reserve_blocking or async_reserve");
  } else {
    fields.setting.assign(room.bound == limit_bound ? "the adaptor's limit, or AllowOverbooking::YES" : room.bound);
  }
  throw ReservationRefused(fields);
}

Ledger::Room Ledger::room(BudgetCore& purse) noexcept {
  Room least{budget_.available(), limit_bound};
  if (purse.is_consumer()) {
    if (std::int64_t const left = purse.available(); left < least.bytes) { least = {left, quota_bound}; }
  }
  if (lender_ != nullptr) {
    ReservationBlock& lender = lender_->block();
    std::int64_t left = lender.balance();
    if (lender.exhausted() == ExhaustedPolicy::GrowOrOverbook) { left = Budget::max_bytes; }
    if (lender.exhausted() == ExhaustedPolicy::GrowOrRefuse) {
      left += std::max<std::int64_t>(lender.ledger().room(lender.purse()).bytes, 0);
    }
    if (left < least.bytes) { least = {left, "the reservation it stands on"}; }
  }
  return least;
}

// -- allocations without a reservation -------------------------------------------------------------------------------

ReservationBlock::Draw Ledger::draw_unreserved(std::size_t bytes) {
  std::int64_t const charge = this->charge(bytes);
  std::int64_t const requested = charge < 0 ? Budget::max_bytes : charge;
  Taken taken{Take::Short, 0};
  // An allocation cannot wait, so it may pass those who do.
  if (charge >= 0 && unreserved_ == UnreservedPolicy::Count) { taken = budget_.take(charge, Pass::Yes); }
  if (charge >= 0 && unreserved_ == UnreservedPolicy::Unbounded) {
    taken = budget_.take_anyway(charge);
    tell_of_overbooking();
  }
  if (taken.result == Take::Ok) { return {charge, 0}; }
  Room const room = this->room(budget_);
  ErrorFields fields = this->fields(requested, room.shortfall(requested));
  fields.setting.assign(unreserved_ == UnreservedPolicy::Forbid ? "UnreservedPolicy, or allocate from a reservation"
                                                                : room.bound);
  throw ReservationExhausted(fields);
}

void Ledger::count_unreserved(ReservationBlock::Draw const& draw) noexcept {
  unreserved_bytes_.fetch_add(draw.charge, std::memory_order_relaxed);
  unreserved_allocations_.fetch_add(1, std::memory_order_relaxed);
  if (tracks_exactly()) { track(draw.charge); }
  if (observed_) { trace(TraceKind::Allocate, nullptr, draw.charge); }
}

void Ledger::give_back_unreserved(std::size_t bytes) noexcept {
  std::int64_t const charge = this->charge(bytes);
  if (tracks_exactly()) { track(-charge); }
  if (observed_) { trace(TraceKind::Free, nullptr, charge); }
  budget_.credit(charge);
}

void Ledger::fail_unreserved(ReservationBlock::Draw const& draw) {
  budget_.credit(draw.charge);
  rethrow_from_upstream(fields(draw.charge, 0));
}

bool Ledger::wait_for_pending_frees() noexcept {
  if (!order_by_stream_ || !frees_pending_.exchange(false, std::memory_order_acq_rel)) { return false; }
  try {
    events_->synchronize_all();
    return true;
  }
  catch (std::exception const&) {
    return false;  // the device is in trouble; the allocation's own error says more
  }
}

// -- everything else -------------------------------------------------------------------------------------------------

void Ledger::set_limit(std::size_t limit) noexcept {
  budget_.set_limit(Budget::clamp(limit));
  if (observed_) { trace(TraceKind::Limit, nullptr, Budget::clamp(limit)); }
}

void Ledger::shutdown() noexcept { budget_.shut_down(); }

Consumer Ledger::make_consumer(std::string_view name, std::size_t quota) {
  return Consumer{*new ConsumerAccount{*this, name, Budget::clamp(quota)}};
}

void Ledger::add_consumer(ConsumerAccount& consumer) {
  MutexLock lock{consumers_mutex_};
  consumers_.push_back(&consumer);
}

void Ledger::remove_consumer(ConsumerAccount& consumer) noexcept {
  MutexLock lock{consumers_mutex_};
  std::erase(consumers_, &consumer);
}

PressureSubscription Ledger::on_pressure(std::function<void(std::int64_t)> listener) {
  return listeners_.add(std::move(listener));
}

void Ledger::note_peak(std::int64_t live) noexcept {
  if (!tracks_exactly() && live > known_peak_.load(std::memory_order_relaxed)) { raise(known_peak_, live); }
}

void Ledger::track(std::int64_t change) noexcept {
  std::int64_t const live = tracked_live_.fetch_add(change, std::memory_order_relaxed) + change;
  if (change > 0) { raise(known_peak_, live); }
}

void Ledger::tell_of_overbooking() noexcept {
  if (budget_.available() < 0) { pressure_changed(); }
  if (lender_ != nullptr) { lender_->block().ledger().tell_of_overbooking(); }
}

void Ledger::pressure_changed() noexcept {
  if (trace_ != nullptr) {
    std::int64_t const now = budget_.pressure();
    if (traced_pressure_.exchange(now, std::memory_order_relaxed) != now) {
      trace(TraceKind::Pressure, TraceLabel::None, now, nullptr);
    }
  }
  listeners_.tell([this] { return budget_.pressure(); });
}

void Ledger::trace(TraceKind kind, TraceLabel label, std::int64_t bytes, void const* id) noexcept {
  if (trace_ == nullptr) { return; }
  trace_->write({.time = clock_->now(),
                 .kind = kind,
                 .source = traced_as_,
                 .label = label,
                 .id = reinterpret_cast<std::uintptr_t>(id),
                 .bytes = bytes});
}

void Ledger::log_leaks() noexcept {
  if (log_ == nullptr || !log_->takes(LogLevel::Warning)) { return; }
  try {
    std::vector<OutstandingReservation> const left = outstanding();
    if (!left.empty()) { log_->write(LogLevel::Warning, leak_text(to_string(type_), left)); }
  }
  catch (std::bad_alloc const&) {
    log_->write(LogLevel::Warning, "reservations are outstanding, and there is no memory to name them");
  }
}

}  // namespace earmark::detail
