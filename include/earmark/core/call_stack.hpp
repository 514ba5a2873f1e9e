// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Who called: the return addresses of a thread at one moment, kept as numbers and turned into names only when somebody
// reads them. For diagnostics that are switched on (where a reservation was made that was never given back).
//
//   CallStack const here = CallStack::capture();
//   log.write(LogLevel::Warning, here.to_text());
//
//    0: earmark::scan(std::string_view)+0x1f (engine+0x4a1f)
//    1: main+0x60 (engine+0x2060)
//
// Names come from the symbol tables of the program's own files, read when the text is made, without starting another
// process: a file that was not stripped gives all its functions, static ones too; a stripped one only what it exports
// (`-rdynamic`); else a line is module+offset, which `addr2line -Cfie MODULE OFFSET` reads where the debug information
// is. Offsets are those of the calls, not of the instructions behind them. Functions that were inlined, and those that
// ended in a tail call, are not there.
//
// Cost: some 300 ns a frame to capture, nothing allocated; up to milliseconds for a text (it reads files).
// Thread safety: values. Ownership: holds addresses; a text is right while the same modules are loaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace earmark {

class CallStack {
 public:
  static constexpr std::size_t most_frames = 31;

  CallStack() noexcept = default;

  // The calling thread's frames, the caller of `capture` first, without the first `skip` of them; at most
  // `most_frames`. Allocates nothing. Not for signal handlers.
  [[nodiscard]] static CallStack capture(std::size_t skip = 0) noexcept;

  // Return addresses, innermost first.
  [[nodiscard]] std::span<void* const> frames() const noexcept { return {frames_.data(), size_}; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  // Returns: a line for each frame, each with its line end. Throws: std::bad_alloc.
  [[nodiscard]] std::string to_text() const;

  // Equal: the same calls, from the same places.
  [[nodiscard]] friend bool operator==(CallStack const& a, CallStack const& b) noexcept = default;

 private:
  std::array<void*, most_frames> frames_{};
  std::size_t size_{0};
};

static_assert(sizeof(CallStack) == 256);

}  // namespace earmark
