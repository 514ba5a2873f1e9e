// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Requests that wait, in both ways, for tests: `Asked` without a thread, `Blocked` with one of its own. Both say what
// became of the request; nothing here sleeps or looks at a real clock.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "earmark/memory/errors.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"

namespace earmark {

enum class Outcome { Waits, Granted, Refused, Impossible, Aborted, Closed, OutOfMemory, Other };

// Returns: what `get` (of a reservation) came to.
template <class Get>
Outcome outcome_of(Get const& get, std::optional<ErrorFields>& fields) {
  try {
    get();
    return Outcome::Granted;
  }
  catch (ImpossibleRequest const& error) {
    fields = error.fields();
    return Outcome::Impossible;
  }
  catch (ReservationRefused const& error) {
    fields = error.fields();
    return Outcome::Refused;
  }
  catch (ReservationAborted const& error) {
    fields = error.fields();
    return Outcome::Aborted;
  }
  catch (ReservationClosed const& error) {
    fields = error.fields();
    return Outcome::Closed;
  }
  catch (std::bad_alloc const&) {
    return Outcome::OutOfMemory;
  }
  catch (...) {
    return Outcome::Other;
  }
}

// A request by `async_reserve`.
class Asked {
 public:
  Asked(HostReservationAwareResourceAdaptor adaptor, std::size_t bytes, ReservationOptions const& options = {},
        WaitOptions const& wait = {})
      : state_(std::make_shared<State>()) {
    adaptor.async_reserve(
        bytes,
        [state = state_](ReservationResult<HostMemoryReservation> result) {
          Outcome const outcome = outcome_of([&] { state->reservation = result.take(); }, state->fields);
          state->calls.fetch_add(1);
          state->thread = std::this_thread::get_id();
          state->outcome.store(outcome, std::memory_order_release);
        },
        options, wait);
  }

  [[nodiscard]] Outcome outcome() const { return state_->outcome.load(std::memory_order_acquire); }
  [[nodiscard]] int calls() const { return state_->calls; }
  // Requires of these: the request was told.
  [[nodiscard]] HostMemoryReservation& reservation() { return state_->reservation; }
  [[nodiscard]] ErrorFields const& fields() const { return *state_->fields; }
  [[nodiscard]] std::thread::id thread() const { return state_->thread; }
  // Lets go of what was granted.
  void drop() { state_->reservation = {}; }

 private:
  struct State {
    std::atomic<Outcome> outcome{Outcome::Waits};
    std::atomic<int> calls{0};
    HostMemoryReservation reservation;
    std::optional<ErrorFields> fields;
    std::thread::id thread;
  };
  std::shared_ptr<State> state_;  // shared with the callback, which may outlive this
};

// How many requests wait.
inline std::size_t waiting(HostReservationAwareResourceAdaptor const& adaptor) {
  return adaptor.report().waiting.size();
}
// Blocks: until `count` requests wait.
inline void await_waiting(HostReservationAwareResourceAdaptor const& adaptor, std::size_t count) {
  while (waiting(adaptor) != count) { std::this_thread::yield(); }
}

// A request by `reserve_blocking`, on a thread of its own.
class Blocked {
 public:
  Blocked(HostReservationAwareResourceAdaptor adaptor, std::size_t bytes, ReservationOptions const& options = {},
          WaitOptions const& wait = {})
      : thread_([this, adaptor = std::move(adaptor), bytes, options, wait]() mutable {
          outcome_ = outcome_of([&] { reservation_ = adaptor.reserve_blocking(bytes, options, wait); }, fields_);
        }) {}
  Blocked(Blocked const&) = delete;
  Blocked& operator=(Blocked const&) = delete;
  ~Blocked() {
    if (thread_.joinable()) { thread_.join(); }
  }

  // Blocks: until the request was decided.
  [[nodiscard]] Outcome outcome() {
    if (thread_.joinable()) { thread_.join(); }
    return outcome_;
  }
  // Requires of these: `outcome` was called.
  [[nodiscard]] HostMemoryReservation& reservation() { return reservation_; }
  [[nodiscard]] ErrorFields const& fields() const { return *fields_; }

 private:
  Outcome outcome_{Outcome::Waits};
  HostMemoryReservation reservation_;
  std::optional<ErrorFields> fields_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace earmark
