// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What a wait without a thread came to: a reservation, or why there is none.
//
//   adaptor.async_reserve(64_MiB, [](ReservationResult<MemoryReservation> result) {
//     if (result) { use(result.take()); } else { log(result.error()); }
//   });
//
// Thread safety: a value, for one thread at a time. Ownership: owns the reservation until it is taken.
#pragma once

#include <exception>
#include <optional>
#include <utility>

namespace earmark {

template <class Reservation>
class [[nodiscard]] ReservationResult {
 public:
  explicit ReservationResult(Reservation reservation) noexcept : reservation_(std::move(reservation)) {}
  explicit ReservationResult(std::exception_ptr error) noexcept : error_(std::move(error)) {}

  // Whether there is a reservation.
  [[nodiscard]] explicit operator bool() const noexcept { return error_ == nullptr; }
  // Returns: the reservation; empty the second time. Throws: the error, if there is one.
  [[nodiscard]] Reservation take() {
    if (error_ != nullptr) { std::rethrow_exception(error_); }
    return std::move(reservation_);
  }
  // ReservationRefused (at the deadline), ReservationAborted, ImpossibleRequest, std::bad_alloc; null: none.
  [[nodiscard]] std::exception_ptr const& error() const noexcept { return error_; }

 private:
  Reservation reservation_;
  std::exception_ptr error_;
};

}  // namespace earmark
