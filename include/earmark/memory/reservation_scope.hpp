// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Hidden temporaries: lets code that was not told of a reservation draw on one. Libraries built on RMM take scratch
// memory from RMM's current device resource; inside a scope, on the scope's thread, that resource is the reservation.
//
//   ScopeDispatcher const dispatcher = install_scope_dispatcher(rmm::cuda_device_id{0});   // once, in main
//   {
//     ReservationScope scope{reservation};
//     result = library::sort(table, stream);       // its temporaries and its result come from the reservation,
//   }                                              // or it throws ReservationExhausted
//
// When to use: for a call whose interface takes no memory resource, or that ignores the one it takes. When not: if a
// resource can be passed, pass the reservation; that is cheaper and reaches every thread of the library.
// What is installed is RMM's resource of the device, which is process-wide: the one piece of global state in Earmark,
// hence explicit and removable. Allocations outside any scope go to the resource that was there before, untouched.
//
// Rules of a scope. It is of one thread: threads started inside it are not in it. Scopes nest; the innermost counts.
// They end in reverse order on the thread that they began on, or the program ends with a message; so a scope never
// spans a `co_await` (`in_reservation_scope()` lets a scheduler test for that). While a reservation asks its upstream,
// no scope counts, so the adaptor may stand on the current device resource itself.
// Rules of blocks. A block finds the reservation that it came from by its address, whoever frees it, on any thread, in
// or out of a scope, also after the dispatcher is removed, as long as it is freed through a copy of the resource, which
// is what RMM's containers keep. Code that keeps a bare `resource_ref` of a replaced resource dangles, with or without
// Earmark. Zero bytes are the former resource's business, in a scope too.
// Cost: a scoped allocation and its free are two short locks and one small allocation above the reservation's own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <rmm/cuda_device.hpp>
#include <stdexcept>

#include "earmark/core/error.hpp"
#include "earmark/memory/memory_reservation.hpp"

namespace earmark {

namespace detail {
class DispatchState;
}

// A scope was opened although no dispatcher is installed: it would have had no effect.
class NoScopeDispatcher : public std::logic_error, public EarmarkError {
 public:
  NoScopeDispatcher();
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 private:
  ErrorFields fields_;
};

// An installed dispatcher. Thread safety: one thread at a time. Ownership: removes it when it ends.
class [[nodiscard]] ScopeDispatcher {
 public:
  ScopeDispatcher(ScopeDispatcher&& other) noexcept;
  ScopeDispatcher& operator=(ScopeDispatcher&& other) noexcept;
  ~ScopeDispatcher();

  // Puts the former resource back and stops: from now on no allocation is drawn on a scope's reservation, not even
  // through a copy that someone kept. If another resource was installed on top meanwhile, that one stays. Idempotent.
  // Requires: nobody sets RMM's resource of the device at the same time.
  void remove() noexcept;

  [[nodiscard]] rmm::cuda_device_id device() const noexcept { return device_; }
  // Blocks drawn on scopes' reservations and not freed yet; 0 once removed.
  [[nodiscard]] std::int64_t live_blocks() const noexcept;

 private:
  friend ScopeDispatcher install_scope_dispatcher(rmm::cuda_device_id device);
  using Former = cuda::mr::any_resource<device_accessible>;
  ScopeDispatcher(rmm::cuda_device_id device, std::shared_ptr<detail::DispatchState> state, Former former) noexcept;

  rmm::cuda_device_id device_;
  std::shared_ptr<detail::DispatchState> state_;  // shared with every copy of the resource, in buffers that live longer
  std::optional<Former> former_;                  // a copy made beforehand, so that removing cannot fail
};

// Makes scopes count for `device`: replaces RMM's resource of it by one that asks the thread's innermost scope first.
// Requires: nobody sets RMM's resource of the device at the same time. Throws: std::bad_alloc.
[[nodiscard]] ScopeDispatcher install_scope_dispatcher(rmm::cuda_device_id device);

class [[nodiscard]] ReservationScope {
 public:
  using Resource = MemoryReservation::Resource;

  // Throws: NoScopeDispatcher if none is installed, on whatever device.
  explicit ReservationScope(MemoryReservation const& reservation) : ReservationScope(reservation.resource()) {}
  explicit ReservationScope(Resource resource);
  explicit ReservationScope(MemoryReservation&&) = delete;  // it would close before the first allocation
  // Ends the program, with a message, if this is another thread or an inner scope has not ended.
  ~ReservationScope();

  // Bound to a thread, so to a block of code.
  ReservationScope(ReservationScope const&) = delete;
  ReservationScope& operator=(ReservationScope const&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

  [[nodiscard]] Resource const& resource() const noexcept { return resource_; }

 private:
  Resource resource_;
  ReservationScope const* outer_;
  ReservationScope const** home_;  // the thread's own place for its innermost scope: tells threads apart
};

// Whether the calling thread is inside a scope. For schedulers: a task that suspends must not be.
[[nodiscard]] bool in_reservation_scope() noexcept;

static_assert(!std::is_move_constructible_v<ReservationScope>);
static_assert(std::is_nothrow_move_constructible_v<ScopeDispatcher> && !std::is_copy_constructible_v<ScopeDispatcher>);

}  // namespace earmark
