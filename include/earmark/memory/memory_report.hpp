// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// An adaptor explained to a person: who holds the memory, who waits for it, and what would change that. Ask for one
// when a request failed and what the exception says (`EarmarkError::fields`) is not enough, or at any time to look.
//
//   catch (ReservationRefused const& error) {
//     MemoryReport report = adaptor.report();
//     report.failed = failed_request(error);      // opens with why, and advises accordingly
//     log.write(LogLevel::Error, report.to_text());
//   }
//
// Fields are API, text is not. When not to use: in a hot path (it copies every label and reservation), or to decide:
// adaptors answer `available()`, `snapshot()` and `pressure()` without it.
// Thread safety: plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "earmark/core/error.hpp"
#include "earmark/memory/reservation_options.hpp"

namespace earmark {

// All reservations that ever had one label.
struct LabelCounters {
  std::string label{};
  std::int64_t granted{0};             // bytes held now: of open reservations, and live in closed ones
  std::int64_t live{0};                // bytes allocated now
  std::int64_t peak{0};                // the most live bytes that one reservation of it had at once
  std::int64_t reserved_total{0};      // reservations ever granted
  std::int64_t allocation_count{0};    // allocations ever made
  std::int64_t total_allocated{0};     // bytes ever allocated
  std::int64_t waits{0};               // requests that had to wait
  std::chrono::nanoseconds waited{0};  // how long they waited together, those of now included
  std::int64_t refusals{0};            // requests that were refused
};

// A request in the wait queue.
struct WaitingRequest {
  std::string label{};
  std::int64_t bytes{0};
  int priority{0};
  std::int64_t net_memory_delta{0};
  std::int64_t overtaken{0};  // times that a later request was granted before it
  std::chrono::nanoseconds waited{0};
};

// A group of reservations with a quota.
struct ConsumerUsage {
  std::string name{};
  std::int64_t quota{0};
  std::int64_t used{0};
};

// Why a request got nothing.
enum class FailureCause : std::uint8_t {
  LimitReached,          // what is available does not cover it
  NeverFits,             // it is above the limit
  ReservationExhausted,  // its reservation has too little left, whatever the adaptor has
  Fragmented,            // its preallocated reservation has enough left, but in pieces that are too small
  UpstreamOutOfMemory,   // granted, but the upstream could not allocate it
};

struct FailedRequest {
  FailureCause cause{FailureCause::LimitReached};
  std::int64_t requested{0};
  std::int64_t shortfall{0};
  std::int64_t largest_hole{0};  // of its preallocated reservation
  std::string setting{};         // what the error says to change; may be empty
};

// Returns: what `error` says about the request that it ended; of an error that is no lack of memory, the numbers alone.
[[nodiscard]] FailedRequest failed_request(EarmarkError const& error);

// `limit` and `committed` are of one instant; the parts are read one after the other, as those of `AdaptorSnapshot`.
struct MemoryReport {
  std::string tier{};  // "device", "pinned", "host", "disk"
  std::int64_t limit{0};
  std::int64_t committed{0};
  std::int64_t live{0};
  std::int64_t available{0};  // limit - committed; negative: overbooked
  std::int64_t peak_committed{0};
  std::int64_t pressure{0};                            // bytes that the queue's head still misses
  std::int64_t spillable{0};                           // bytes that spilling could free
  std::optional<std::int64_t> largest_hole{};          // over all preallocated reservations, if there are any
  std::vector<LabelCounters> labels{};                 // in any order
  std::vector<OutstandingReservation> reservations{};  // in any order
  std::vector<WaitingRequest> waiting{};               // in the queue's order
  std::vector<ConsumerUsage> consumers{};              // those with a quota
  std::string setting{};                               // what sets the limit, e.g. "--memory"; empty: "the limit"
  std::optional<FailedRequest> failed{};               // the request that this report is about, if any

  // What to change, most telling first, deduced from the numbers. Empty when nothing failed, waits or is overbooked.
  [[nodiscard]] std::vector<std::string> advice() const;

  // Aligned tables of the whole, bytes both plain and for people; the ten largest of each kind. Ends in a line end.
  [[nodiscard]] std::string to_text() const;
};

// What to log when an adaptor ends, or a test, and something still holds memory.
// Returns: each reservation with its label, its bytes and, where it was recorded, who made it, without the last line
// end; empty when nothing is outstanding.
[[nodiscard]] std::string leak_text(std::string_view tier, std::span<OutstandingReservation const> outstanding);

}  // namespace earmark
