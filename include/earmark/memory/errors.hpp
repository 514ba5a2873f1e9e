// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How asking for memory can fail. Each of these is an `rmm::out_of_memory` (so also `std::bad_alloc`) and an
// `EarmarkError`: code written for RMM catches them unchanged, and code that wants numbers asks `fields()`.
//
//   try { rmm::device_buffer b{n, stream, reservation}; }
//   catch (ReservationExhausted const& e) { log(e.fields().requested, e.fields().shortfall); }
//
// Catch the most specific type that changes what you do; types and fields are API, text is not. Fields and text lie
// inside the exception (only RMM's base keeps a string of its own), so an error about memory needs next to none.
// Thread safety: immutable once thrown.
#pragma once

#include <cstdint>
#include <rmm/error.hpp>
#include <stdexcept>
#include <string>

#include "earmark/core/error.hpp"

namespace earmark {

// Base of the errors below: what they have in common. Not thrown itself.
class MemoryError : public rmm::out_of_memory, public EarmarkError {
 public:
  [[nodiscard]] char const* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 protected:
  // `summary` opens the text; the values of `fields` and then `cause` (may be empty) end it.
  MemoryError(std::string_view summary, ErrorFields const& fields, std::string_view cause = {});

 private:
  ErrorFields fields_;
  FixedText<639> text_;  // the longest labels, setting and numbers fit
};

// A reservation was not made: what is available does not cover it, and overbooking was not allowed.
class ReservationRefused : public MemoryError {
 public:
  explicit ReservationRefused(ErrorFields const& fields) : ReservationRefused("reservation refused", fields) {}

 protected:
  ReservationRefused(std::string_view summary, ErrorFields const& fields) : MemoryError(summary, fields) {}
};

// A reservation that can never be made: larger than the whole limit, or than any limit can be.
class ImpossibleRequest : public ReservationRefused {
 public:
  explicit ImpossibleRequest(ErrorFields const& fields)
      : ReservationRefused("reservation can never be granted", fields) {}
};

// An allocation is larger than what is left of its reservation (and its exhausted policy did not get more).
class ReservationExhausted : public MemoryError {
 public:
  explicit ReservationExhausted(ErrorFields const& fields) : MemoryError("reservation exhausted", fields) {}
};

// An allocation came after the reservation was closed.
class ReservationClosed : public MemoryError {
 public:
  explicit ReservationClosed(ErrorFields const& fields) : MemoryError("reservation closed", fields) {}
};

// The upstream could not allocate although the ledger had granted it: fragmented, or used by someone else as well.
class UpstreamOutOfMemory : public MemoryError {
 public:
  UpstreamOutOfMemory(ErrorFields const& fields, std::string_view cause)
      : MemoryError("upstream out of memory", fields, cause) {}
};

// A wait for memory was ended by somebody: the consumer was aborted, a stop was requested, or the adaptor shut down. Or
// an allocation would have let a reservation of an aborted consumer grow. Not a lack of memory.
class ReservationAborted : public std::runtime_error, public EarmarkError {
 public:
  explicit ReservationAborted(ErrorFields const& fields);
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 private:
  ErrorFields fields_;
};

// Reservations that cannot be used together (of different adaptors or consumers), or not in this way (a preallocated
// one with live allocations). A mistake of the caller, not a lack of memory.
class ReservationMismatch : public std::invalid_argument, public EarmarkError {
 public:
  ReservationMismatch(ErrorFields const& fields, char const* what) : std::invalid_argument(what), fields_(fields) {}
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 private:
  ErrorFields fields_;
};

namespace detail {

// For handlers, when bytes that the ledger had granted were asked of the upstream. Throws: UpstreamOutOfMemory with
// `fields` where a std::bad_alloc is being handled, else what is.
[[noreturn]] void rethrow_from_upstream(ErrorFields fields);

}  // namespace detail
}  // namespace earmark
