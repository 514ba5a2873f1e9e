// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Wraps any CCCL or RMM memory resource with a limit, and hands out reservations that are memory resources themselves.
// Nothing is ever committed above the limit unless someone asks to overbook, and then the deficit is a number.
//
//   ReservationAwareResourceAdaptor adaptor{upstream, 1_GiB};
//   MemoryReservation r = adaptor.reserve(64_MiB, {.label = "scan"});     // throws ReservationRefused
//   if (auto t = adaptor.try_reserve(64_MiB)) { ... }                      // expected outcome: no exception
//   ReservationAwareResourceAdaptor task{r, 32_MiB};                       // nested: never more than r has
//
// The adaptor is a copyable handle and a resource: allocations straight through it, without a reservation, are bounded
// by the same limit (`UnreservedPolicy`).
// Thread safety: any thread. Ownership: shared by all copies, reservations and buffers; the upstream lives as long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "earmark/memory/memory_report.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory/pressure.hpp"
#include "earmark/memory/reservation_options.hpp"
#include "earmark/memory/reservation_resource.hpp"
#include "earmark/memory/reservation_result.hpp"

namespace earmark {

template <class... Properties>
class BasicReservationAwareResourceAdaptor {
 public:
  using Reservation = BasicMemoryReservation<Properties...>;
  using Resource = BasicReservationResource<Properties...>;
  using Upstream = cuda::mr::any_resource<Properties...>;
  using default_queries = cuda::mr::properties_list<Properties...>;

  // `upstream`: anything convertible to an owning resource with these properties. `limit` is clamped to
  // `Budget::max_bytes`. Throws: std::invalid_argument for a granularity that is no power of two up to 1 GiB.
  BasicReservationAwareResourceAdaptor(Upstream upstream, std::size_t limit, AdaptorOptions const& options = {})
      : BasicReservationAwareResourceAdaptor(*new Ledger{std::move(upstream), limit, options, nullptr}) {}
  BasicReservationAwareResourceAdaptor(Upstream upstream, std::size_t limit, std::size_t granularity)
      : BasicReservationAwareResourceAdaptor(std::move(upstream), limit, AdaptorOptions{granularity}) {}

  // Nested: reservations made here take their bytes from `parent` (by its exhausted policy) and give them back there;
  // the limit is a quota beside that. Charged by the parent's granularity or a coarser one. To the parent, what was
  // reserved here is spent; allocations made here are added to its adaptor's totals when this one ends.
  // Throws: std::invalid_argument if `parent` is preallocated: its resource can be an upstream instead.
  BasicReservationAwareResourceAdaptor(Reservation const& parent, std::size_t limit, AdaptorOptions const& options = {})
      : BasicReservationAwareResourceAdaptor(parent.resource(), limit, options) {}
  BasicReservationAwareResourceAdaptor(Reservation&& parent, std::size_t limit,
                                       AdaptorOptions const& options = {}) = delete;  // a temporary would close at once
  BasicReservationAwareResourceAdaptor(Resource const& parent, std::size_t limit, AdaptorOptions const& options = {})
      : BasicReservationAwareResourceAdaptor(*new Ledger{parent.upstream(), limit, options, parent.block_}) {}

  BasicReservationAwareResourceAdaptor(BasicReservationAwareResourceAdaptor const& other) noexcept
      : BasicReservationAwareResourceAdaptor(*other.ledger_) {}
  // Copies: CCCL may go on using a resource that was moved from.
  BasicReservationAwareResourceAdaptor(BasicReservationAwareResourceAdaptor&& other) noexcept
      : BasicReservationAwareResourceAdaptor(*other.ledger_) {}
  BasicReservationAwareResourceAdaptor& operator=(BasicReservationAwareResourceAdaptor other) noexcept {
    std::swap(ledger_, other.ledger_);
    return *this;
  }
  ~BasicReservationAwareResourceAdaptor() { ledger_->release(); }

  // Sets bytes aside. Throws: ReservationRefused when they are not available and overbooking is not allowed, its child
  // ImpossibleRequest when they are more than the limit; then nothing is kept.
  [[nodiscard]] Reservation reserve(std::size_t bytes, AllowOverbooking overbooking = AllowOverbooking::NO) {
    return reserve(bytes, ReservationOptions{.overbooking = overbooking});
  }
  [[nodiscard]] Reservation reserve(std::size_t bytes, ReservationOptions const& options) {
    return Reservation{ledger_->reserve(bytes, options)};
  }
  // Returns: nothing when the bytes are not available, whatever their number. Throws: UpstreamOutOfMemory for a
  // preallocated one whose bytes the budget had and the upstream did not: that is no expected outcome. (All the other
  // ways to reserve throw it, too.)
  [[nodiscard]] std::optional<Reservation> try_reserve(std::size_t bytes, ReservationOptions const& options = {}) {
    detail::ReservationBlock* const block = ledger_->try_reserve(bytes, options);
    return block == nullptr ? std::nullopt : std::optional<Reservation>{Reservation{*block}};
  }
  // Sets aside as much of `bytes` as is available, but not less than `at_least`; `granted()` says how much. While
  // others wait nothing is. Throws: ReservationRefused, ImpossibleRequest when not even `at_least` is (0 always is).
  [[nodiscard]] Reservation reserve_up_to(std::size_t bytes, std::size_t at_least,
                                          ReservationOptions const& options = {}) {
    return Reservation{ledger_->reserve_up_to(bytes, at_least, options)};
  }

  // As `reserve`, waiting for its turn when the bytes are not available: the waiting queue is served in order, by
  // whoever brings memory back, and nobody polls. Blocks: until granted, or the deadline. Throws: ReservationRefused at
  // the deadline, ImpossibleRequest at once when the limit (now or lowered meanwhile) can never hold it,
  // ReservationAborted when stopped, aborted or shut down.
  [[nodiscard]] Reservation reserve_blocking(std::size_t bytes, ReservationOptions const& options = {},
                                             WaitOptions const& wait = {}) {
    return Reservation{ledger_->reserve_blocking(bytes, options, wait)};
  }
  // The same with an adaptor that waits for a while and then takes what is not there.
  [[nodiscard]] Reservation reserve_blocking_or_overbook(std::size_t bytes, Clock::time_point deadline,
                                                         ReservationOptions const& options = {}) {
    WaitOptions wait;
    wait.deadline = deadline;
    wait.after_deadline = AfterDeadline::Overbook;
    return reserve_blocking(bytes, options, wait);
  }
  [[nodiscard]] Reservation reserve_blocking_or_fail(std::size_t bytes, Clock::time_point deadline,
                                                     ReservationOptions const& options = {}) {
    WaitOptions wait;
    wait.deadline = deadline;
    return reserve_blocking(bytes, options, wait);
  }
  // The same without a thread: calls `callback` once with a `ReservationResult`, on the executor of `wait` if there is
  // one, else before this returns or on the thread that brought the memory back. An executor that drops its tasks drops
  // the call, and what was granted goes back. It must not throw; what it captures is kept until then, and so is the
  // adaptor.
  // Those of one adaptor that memory is brought to are called, or given to their executors, one after another on that
  // thread: what a callback gives back may serve thousands whose callbacks give back what they got. So it must not wait
  // until another one was called. It may `reserve_blocking` from the same adaptor, or one nested on that, since whom it
  // served are called first; from no other.
  // Throws: std::bad_alloc, ReservationMismatch, std::invalid_argument for a deadline without an executor; then it is
  // not called.
  template <class Callback>
  void async_reserve(std::size_t bytes, Callback callback, ReservationOptions const& options = {},
                     WaitOptions const& wait = {}) {
    ledger_->async_reserve(bytes, options, wait,
                           [call = std::make_shared<Callback>(std::move(callback))](detail::ReservationBlock* block,
                                                                                    std::exception_ptr error) {
                             if (error != nullptr) { return (*call)(ReservationResult<Reservation>{std::move(error)}); }
                             (*call)(ReservationResult<Reservation>{Reservation{*block}});
                           });
  }
  // Ends all waiting, now and later, with ReservationAborted. Reservations and allocations go on.
  void shutdown() noexcept { ledger_->shutdown(); }
  // Somebody with a quota of his own over all his reservations (none: as much as there is).
  [[nodiscard]] Consumer make_consumer(std::string_view name, std::size_t quota = SIZE_MAX) {
    return ledger_->make_consumer(name, quota);
  }

  // Bytes that must come back for the first who waits to be served, or for a deficit to end; else 0.
  [[nodiscard]] std::int64_t pressure() const noexcept { return ledger_->budget().pressure(); }
  // Calls `listener` with `pressure()` whenever that changes: see `PressureSubscription`.
  [[nodiscard]] PressureSubscription on_pressure(std::function<void(std::int64_t)> listener) {
    return ledger_->on_pressure(std::move(listener));
  }

  [[nodiscard]] std::int64_t limit() const noexcept { return ledger_->budget().limit(); }
  // Changes the limit at once. Below what is committed is allowed: nothing is taken back, new requests are refused or
  // wait until enough came back, and those that wait for more than the new limit fail. Raising it serves who waits.
  void set_limit(std::size_t limit) noexcept { ledger_->set_limit(limit); }
  // Limit minus committed; negative while above the limit.
  [[nodiscard]] std::int64_t available() const noexcept { return ledger_->budget().available(); }
  // Granted to open reservations + live in closed ones + live without reservation. Exact.
  [[nodiscard]] std::int64_t committed() const noexcept { return ledger_->budget().read().committed; }
  // See `Budget::peak_committed`.
  [[nodiscard]] std::int64_t peak_committed() const noexcept { return ledger_->budget().peak(); }
  // Sums over reservations, read one by one; see `AdaptorSnapshot`.
  [[nodiscard]] std::int64_t total_reserved() const noexcept { return snapshot().reserved; }
  [[nodiscard]] std::int64_t current_allocated() const noexcept { return snapshot().allocated; }
  [[nodiscard]] std::int64_t total_allocated() const noexcept { return snapshot().total_allocated; }
  [[nodiscard]] std::int64_t allocation_count() const noexcept { return snapshot().allocation_count; }
  // With Tracking::Exact the peak of live bytes; else a peak that was certainly reached: the largest of every single
  // reservation's peak and every sum that anyone looked at (`peak_committed` bounds it from above).
  [[nodiscard]] std::int64_t peak_allocated() const noexcept { return snapshot().peak_allocated; }
  [[nodiscard]] AdaptorSnapshot snapshot() const noexcept { return ledger_->snapshot(); }
  // Every open reservation, and every closed one with live bytes, by label.
  [[nodiscard]] std::vector<OutstandingReservation> outstanding() const { return ledger_->outstanding(); }
  // What was counted per label, over all its reservations that ever were.
  [[nodiscard]] std::vector<LabelCounters> label_counters() const { return ledger_->label_counters(); }
  // Everything a person would want to know: who holds, who waits, what would change it.
  [[nodiscard]] MemoryReport report() const { return ledger_->report(); }

  // Returns: what an allocation of `bytes` costs; -1 if no limit could ever hold it.
  [[nodiscard]] std::int64_t charge(std::size_t bytes) const noexcept { return ledger_->charge(bytes); }
  [[nodiscard]] std::size_t granularity() const noexcept { return ledger_->granularity(); }
  [[nodiscard]] MemoryType memory_type() const noexcept { return ledger_->memory_type(); }

  // Allocation without a reservation. Throws: ReservationExhausted, UpstreamOutOfMemory.
  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes,
                               std::size_t alignment = alignof(std::max_align_t)) {
    return draw_and([&] { return ledger_->allocate_upstream(stream, bytes, alignment); }, bytes);
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t bytes,
                  std::size_t alignment = alignof(std::max_align_t)) noexcept {
    if (bytes == 0) { return; }
    ledger_->deallocate_upstream(stream, pointer, bytes, alignment);
    ledger_->give_back_unreserved(bytes);
  }
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    return draw_and([&] { return ledger_->allocate_upstream_sync(bytes, alignment); }, bytes);
  }
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    if (bytes == 0) { return; }
    ledger_->deallocate_upstream_sync(pointer, bytes, alignment);
    ledger_->give_back_unreserved(bytes);
  }

  // Equal: copies of one adaptor.
  [[nodiscard]] friend bool operator==(BasicReservationAwareResourceAdaptor const& a,
                                       BasicReservationAwareResourceAdaptor const& b) noexcept {
    return a.ledger_ == b.ledger_;
  }
  template <class Property>
    requires detail::contains_v<Property, Properties...>
  friend constexpr void get_property(BasicReservationAwareResourceAdaptor const&, Property) noexcept {}

 private:
  using Ledger = detail::UpstreamLedger<Properties...>;
  friend class BasicReservationResource<Properties...>;
  explicit BasicReservationAwareResourceAdaptor(Ledger& ledger) noexcept : ledger_(&ledger) { ledger.retain(); }

  template <class Allocate>
  [[nodiscard]] void* draw_and(Allocate const& allocate_upstream, std::size_t bytes) {
    if (bytes == 0) { return nullptr; }
    detail::ReservationBlock::Draw const draw = ledger_->draw_unreserved(bytes);
    void* pointer = nullptr;
    try {
      pointer = allocate_upstream();
    }
    catch (...) {
      ledger_->fail_unreserved(draw);
    }
    ledger_->count_unreserved(draw);
    return pointer;
  }

  Ledger* ledger_;
};

template <class... Properties>
BasicReservationAwareResourceAdaptor<Properties...> BasicReservationResource<Properties...>::adaptor() const noexcept {
  return BasicReservationAwareResourceAdaptor<Properties...>{ledger()};
}

using ReservationAwareResourceAdaptor = BasicReservationAwareResourceAdaptor<device_accessible>;
using PinnedReservationAwareResourceAdaptor = BasicReservationAwareResourceAdaptor<host_accessible, device_accessible>;
using HostReservationAwareResourceAdaptor = BasicReservationAwareResourceAdaptor<host_accessible>;

// The contract, proved where it is made.
static_assert(sizeof(MemoryReservation) == sizeof(void*) && sizeof(MemoryReservation::Resource) == sizeof(void*));
static_assert(!std::is_copy_constructible_v<MemoryReservation> &&
              std::is_nothrow_move_constructible_v<MemoryReservation>);
static_assert(cuda::mr::resource_with<MemoryReservation::Resource, device_accessible>);
static_assert(cuda::mr::resource_with<PinnedMemoryReservation::Resource, host_accessible, device_accessible>);
static_assert(cuda::mr::resource_with<HostMemoryReservation::Resource, host_accessible>);
static_assert(!cuda::mr::resource_with<MemoryReservation::Resource, host_accessible>);
static_assert(cuda::mr::resource_with<ReservationAwareResourceAdaptor, device_accessible>);

}  // namespace earmark
