// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What every Earmark error can say beyond a sentence. Catch the concrete types for decisions; catch `EarmarkError`
// to read the numbers of whatever was thrown:
//
//   try { buffer.resize(n); }
//   catch (earmark::EarmarkError const& error) { log(error.fields().shortfall); }
//
// `EarmarkError` is a mixin beside the standard exception hierarchy, not part of it: a type such as
// `ReservationExhausted` is an `rmm::out_of_memory` and an `EarmarkError`, and `catch (std::exception const&)` must
// stay unambiguous. Thread safety: values are immutable once thrown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace earmark {

// Text of bounded length inside the object, so that building an error never allocates. Longer text is cut.
template <std::size_t Capacity>
class FixedText {
 public:
  constexpr FixedText() noexcept = default;
  constexpr FixedText(std::string_view text) noexcept { assign(text); }  // NOLINT: a value type of text

  constexpr void assign(std::string_view text) noexcept {
    size_ = text.size() < Capacity ? text.size() : Capacity;
    for (std::size_t i = 0; i < size_; ++i) { text_[i] = text[i]; }
    text_[size_] = '\0';
  }
  [[nodiscard]] constexpr std::string_view view() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] constexpr char const* c_str() const noexcept { return text_.data(); }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }

 private:
  std::array<char, Capacity + 1> text_{};
  std::size_t size_{0};
};

// One of the largest reservations at the time of an error.
struct Holder {
  FixedText<47> label;
  std::int64_t granted_bytes{0};
};

// The numbers behind an error. All byte counts are charges (rounded up to the allocation granularity); a field that
// does not apply is 0 or empty.
struct ErrorFields {
  FixedText<15> tier;               // "device", "pinned", "host", "disk"
  std::int64_t limit{0};            // most bytes that may be committed
  std::int64_t committed{0};        // bytes committed when the request was judged
  std::int64_t live{0};             // bytes allocated now (of the reservation, or of the tier for a refused reserve)
  std::int64_t requested{0};        // bytes asked for
  std::int64_t shortfall{0};        // bytes missing
  std::int64_t spillable{0};        // bytes that spilling could free
  std::int64_t largest_hole{0};     // of a preallocated reservation that has enough left, but in smaller pieces
  std::array<Holder, 3> holders{};  // the largest reservations, largest first
  FixedText<63> setting;            // what to change so that the outcome changes, e.g. "--memory"
};

// Mixin of every error that Earmark throws.
class EarmarkError {
 public:
  EarmarkError() noexcept = default;
  EarmarkError(EarmarkError const&) noexcept = default;
  EarmarkError& operator=(EarmarkError const&) noexcept = default;
  virtual ~EarmarkError() = default;

  // The numbers behind the error; fields that do not apply are 0 or empty.
  [[nodiscard]] virtual ErrorFields const& fields() const noexcept = 0;
};

}  // namespace earmark
