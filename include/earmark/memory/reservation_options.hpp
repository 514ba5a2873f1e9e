// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What one can ask of a reservation and of an adaptor, and what they report. Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "earmark/core/call_stack.hpp"
#include "earmark/core/clock.hpp"

namespace earmark {

class Consumer;
class Executor;
class LogSink;
class StreamEvents;
class TraceRing;

// Whether a reservation may pass the limit. Spelled as the field spells it.
enum class AllowOverbooking : std::uint8_t { NO, YES };

// What happens when an allocation finds too little left in its reservation. A preallocated one is one block and does
// not grow by itself: only Refuse. Growth for an aborted consumer ends with ReservationAborted.
enum class ExhaustedPolicy : std::uint8_t {
  Refuse,          // throw ReservationExhausted
  GrowOrRefuse,    // take what is missing from the adaptor's budget, also ahead of those who wait, else throw
  GrowOrOverbook,  // take it even past the limit
};

// When a reservation's unspent bytes go back.
enum class RefundPolicy : std::uint8_t {
  AtClose,          // when its owner closes or drops it
  AtLastReference,  // when the last buffer or resource made from it is gone too (an explicit close still closes)
};

// Where a reservation's allocations come from.
enum class Backing : std::uint8_t {
  OnDemand,      // from the upstream, one by one
  Preallocated,  // from one block that the upstream gives when the reservation is made: no upstream call afterwards
};

// What happens when no hole of a preallocated reservation is large enough, although its balance is.
enum class FallbackPolicy : std::uint8_t {
  Refuse,    // throw ReservationExhausted, which names the largest hole
  Upstream,  // allocate from the upstream, charged to the adaptor's budget beside the reservation
};

struct ReservationOptions {
  // Names the kind of work, for errors and reports; cut at 47 characters. Labels are kept while the adaptor lives, so
  // there should be a bounded number of different ones.
  std::string_view label{};
  ExhaustedPolicy exhausted{ExhaustedPolicy::Refuse};
  RefundPolicy refund{RefundPolicy::AtClose};
  AllowOverbooking overbooking{AllowOverbooking::NO};
  Backing backing{Backing::OnDemand};
  FallbackPolicy fallback{FallbackPolicy::Refuse};
  // On whose quota, or null. Made by the same adaptor.
  Consumer const* consumer{nullptr};
};

// What a request that waits does at its deadline.
enum class AfterDeadline : std::uint8_t {
  Refuse,    // fails with ReservationRefused
  Overbook,  // is granted past the limit
};

// How to wait for memory. Order: higher priority, then smaller net_memory_delta, then arrival; and nobody is overtaken
// more often than the adaptor's `overtakes_allowed`.
struct WaitOptions {
  int priority{0};
  // How many bytes more (or, negative, fewer) will be in use once the work that waits is done. Work that frees memory
  // goes first; if it frees more than it asks for, also ahead of those who wait already.
  std::int64_t net_memory_delta{0};
  std::optional<Clock::time_point> deadline{};  // by the adaptor's clock
  AfterDeadline after_deadline{AfterDeadline::Refuse};
  std::stop_token stop{};  // ends the wait with ReservationAborted
  // Of `async_reserve`: where the callback runs, and what keeps its deadline; without one it runs on the thread that
  // brought the memory back, and a deadline is refused.
  Executor* executor{nullptr};
};

// What granting a reservation took.
struct Overbooking {
  std::int64_t granted{0};                 // bytes given
  std::int64_t short_for_this_request{0};  // how many of them were not available
  std::int64_t tier_deficit{0};  // by how much the adaptor was above its limit afterwards, for whatever reason
};

// What allocations straight through an adaptor, without a reservation, may do.
enum class UnreservedPolicy : std::uint8_t {
  Count,      // bounded by the limit like a reservation
  Forbid,     // always refused
  Unbounded,  // counted, never refused; may push the adaptor above its limit
};

// Whether reservations remember where they were made, for `outstanding()`.
enum class CallStacks : std::uint8_t { Off, Record };

// How exactly an adaptor knows the peak of live bytes over all its reservations.
enum class Tracking : std::uint8_t {
  PerReservation,  // each reservation's own peak is exact; see `peak_allocated`
  Exact,           // exact over all, for one more atomic, shared by all threads, per allocation and free
};

struct AdaptorOptions {
  std::size_t granularity{0};  // every allocation is charged in multiples of this power of two; 0: 64 host, 256 device
  UnreservedPolicy unreserved{UnreservedPolicy::Count};
  Tracking tracking{Tracking::PerReservation};
  std::int32_t overtakes_allowed{16};  // how many later requests may be put before one that waits
  CallStacks call_stacks{CallStacks::Off};
  // What follows is borrowed and must outlive the adaptor and all that was made from it. Null: none.
  Clock const* clock{nullptr};    // for deadlines and times waited; null: the machine's steady clock
  StreamEvents* events{nullptr};  // orders memory between streams; null: host memory, where nothing is pending
  TraceRing* trace{nullptr};      // gets every reservation, wait, allocation and free
  LogSink* log{nullptr};          // told what is still out when the last handle to the adaptor goes
};

// An adaptor at one look. `limit` and `committed` are of one instant; what is summed over reservations is not: each
// part is exact when it is read, and they are read one after the other.
struct AdaptorSnapshot {
  std::int64_t limit{0};
  std::int64_t committed{0};
  std::int64_t peak_committed{0};
  std::int64_t reserved{0};          // sum over open reservations
  std::int64_t allocated{0};         // sum of live bytes
  std::int64_t peak_allocated{0};    // see the adaptor's `peak_allocated`
  std::int64_t total_allocated{0};   // bytes ever allocated
  std::int64_t allocation_count{0};  // allocations ever made
  std::int64_t open_reservations{0};
};

// A reservation that still holds bytes.
struct OutstandingReservation {
  std::string label;
  std::int64_t granted{0};  // of a closed one: what is live
  std::int64_t live{0};
  enum class State : std::uint8_t { Open, Closed } state{State::Open};
  std::optional<CallStack> reserved_at{};  // with CallStacks::Record
};

}  // namespace earmark
