// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/log_sink.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace earmark {
namespace {

iovec part(std::string_view text) noexcept { return {const_cast<char*>(text.data()), text.size()}; }

// Takes the first `written` bytes off the parts.
template <std::size_t N>
void drop(std::array<iovec, N>& parts, std::size_t written) noexcept {
  for (iovec& part : parts) {
    std::size_t const here = written < part.iov_len ? written : part.iov_len;
    part.iov_base = static_cast<char*>(part.iov_base) + here;
    part.iov_len -= here;
    written -= here;
  }
}

template <std::size_t N>
std::size_t left(std::array<iovec, N> const& parts) noexcept {
  std::size_t bytes = 0;
  for (iovec const& part : parts) { bytes += part.iov_len; }
  return bytes;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::Debug: return "debug";
    case LogLevel::Info: return "info";
    case LogLevel::Warning: return "warning";
    case LogLevel::Error: return "error";
    case LogLevel::Off: return "off";
  }
  return "unknown";
}

void StandardErrorLog::do_write(LogLevel level, std::string_view text) noexcept {
  int const errno_before = errno;
  std::array<iovec, 5> parts{part("earmark: "), part(to_string(level)), part(": "), part(text), part("\n")};
  // A pipe may take a part of it, and a signal may come first; anything else cannot be mended here.
  while (left(parts) != 0) {
    ssize_t const written = ::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size()));
    if (written >= 0) {
      drop(parts, static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      break;
    }
  }
  errno = errno_before;
}

}  // namespace earmark
