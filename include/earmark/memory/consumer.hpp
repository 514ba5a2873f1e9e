// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Somebody who may hold only so much of an adaptor's memory, over all the reservations made in his name: a query, a
// tenant, an operator. Splitting a reservation does not enlarge the quota, and nobody else is refused because of it.
//
//   Consumer query = adaptor.make_consumer("query 7", 256_MiB);
//   MemoryReservation r = adaptor.reserve(64_MiB, {.consumer = &query});
//   query.abort();                    // all it waits for, and every later reservation, throws ReservationAborted
//
// Thread safety: any thread. Ownership: a copyable handle; its copies, its reservations and their buffers share one
// quota, and it keeps the adaptor's ledger alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace earmark {

namespace detail {
class Ledger;
class ConsumerAccount;
}  // namespace detail

class Consumer {
 public:
  [[nodiscard]] std::string_view name() const noexcept;
  [[nodiscard]] std::int64_t quota() const noexcept;
  // Changes the quota at once, like an adaptor's `set_limit`.
  void set_quota(std::size_t bytes) noexcept;
  // Bytes granted to its reservations and not given back.
  [[nodiscard]] std::int64_t used() const noexcept;
  // The most that `used` ever was.
  [[nodiscard]] std::int64_t peak_used() const noexcept;
  // Makes everything it waits for, and every later reservation, throw ReservationAborted. Sticky. What it holds stays.
  void abort() noexcept;
  [[nodiscard]] bool aborted() const noexcept;

  Consumer(Consumer const& other) noexcept;
  Consumer& operator=(Consumer other) noexcept {
    std::swap(account_, other.account_);
    return *this;
  }
  ~Consumer();

  // Equal: copies of one consumer.
  [[nodiscard]] friend bool operator==(Consumer const& a, Consumer const& b) noexcept {
    return a.account_ == b.account_;
  }

 private:
  friend class detail::Ledger;
  // Takes over one reference.
  explicit Consumer(detail::ConsumerAccount& account) noexcept : account_(&account) {}

  detail::ConsumerAccount* account_;
};

}  // namespace earmark
