// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What one can ask of a reservation and of an adaptor, and what they report. Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace earmark {

// Whether a reservation may pass the limit. Spelled as the field spells it.
enum class AllowOverbooking : std::uint8_t { NO, YES };

// What happens when an allocation finds too little left in its reservation.
enum class ExhaustedPolicy : std::uint8_t {
  Refuse,          // throw ReservationExhausted
  GrowOrRefuse,    // take what is missing from the adaptor's budget, else throw
  GrowOrOverbook,  // take it even past the limit
};

// When a reservation's unspent bytes go back.
enum class RefundPolicy : std::uint8_t {
  AtClose,          // when its owner closes or drops it
  AtLastReference,  // when the last buffer or resource made from it is gone too (an explicit close still closes)
};

struct ReservationOptions {
  // Names the kind of work, for errors and reports; cut at 47 characters. Labels are kept while the adaptor lives, so
  // there should be a bounded number of different ones.
  std::string_view label{};
  ExhaustedPolicy exhausted{ExhaustedPolicy::Refuse};
  RefundPolicy refund{RefundPolicy::AtClose};
  AllowOverbooking overbooking{AllowOverbooking::NO};
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

// How exactly an adaptor knows the peak of live bytes over all its reservations.
enum class Tracking : std::uint8_t {
  PerReservation,  // each reservation's own peak is exact; see `peak_allocated`
  Exact,           // exact over all, for one more atomic, shared by all threads, per allocation and free
};

struct AdaptorOptions {
  std::size_t granularity{0};  // every allocation is charged in multiples of this power of two; 0: 64 host, 256 device
  UnreservedPolicy unreserved{UnreservedPolicy::Count};
  Tracking tracking{Tracking::PerReservation};
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
};

}  // namespace earmark
