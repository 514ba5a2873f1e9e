// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Where log lines go. Code below the roof that has something to say to a person (a reservation that was never given
// back, a limit that was lowered below what is committed) is handed a `LogSink` and writes to it; with none it is
// silent. There is no global sink: whoever builds an adaptor or a context names one.
//
//   StandardErrorLog log{LogLevel::Info};
//   if (log.takes(LogLevel::Debug)) { log.write(LogLevel::Debug, costly_text()); }
//
// When not to use: errors throw, and what a program reads comes from counters, reports and traces.
// Thread safety: all implementations may be called from any thread. Ownership: the sink outlives what writes to it.
#pragma once

#include <cstdint>
#include <string_view>

namespace earmark {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error, Off };

// Returns: "debug", "info", "warning", "error", "off".
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

class LogSink {
 public:
  // Takes lines of `least` and above; `Off` takes none.
  explicit LogSink(LogLevel least) noexcept : least_(least) {}
  LogSink(LogSink const&) = delete;
  LogSink& operator=(LogSink const&) = delete;
  virtual ~LogSink() = default;

  // Whether a line of this level would be kept: ask before building a costly text.
  [[nodiscard]] bool takes(LogLevel level) const noexcept { return level >= least_ && level != LogLevel::Off; }

  // Keeps `text` (one line or several, without the last line end), unless its level is below what the sink takes.
  // Never throws, so that destructors may log: what cannot be written is lost.
  void write(LogLevel level, std::string_view text) noexcept {
    if (takes(level)) { do_write(level, text); }
  }

 private:
  virtual void do_write(LogLevel level, std::string_view text) noexcept = 0;

  LogLevel least_;
};

// Writes "earmark: warning: TEXT" to the standard error stream, past stdio, in one system call a message, so that
// messages of several threads do not mix, nothing is allocated, and it works during process exit. Keeps `errno`.
// Blocks: as long as the standard error stream does.
class StandardErrorLog final : public LogSink {
 public:
  explicit StandardErrorLog(LogLevel least = LogLevel::Warning) noexcept : LogSink(least) {}

 private:
  void do_write(LogLevel level, std::string_view text) noexcept override;
};

}  // namespace earmark
