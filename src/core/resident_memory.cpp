// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/resident_memory.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "earmark/core/file_system.hpp"
#include "posix_file.hpp"

namespace earmark {
namespace {

constexpr auto pages_path = "/proc/self/statm";    // "size resident shared ...", in pages
constexpr auto status_path = "/proc/self/status";  // lines such as "VmHWM:     1234 kB"

detail::Descriptor open_or_throw(char const* path) {
  auto descriptor = detail::open_at(AT_FDCWD, path, O_RDONLY);
  if (!descriptor.valid()) { throw FileSystemError("open", path, errno); }
  return descriptor;
}

// Returns: the number that `text` begins with after blanks.
std::int64_t leading_number(std::string_view text, char const* path) {
  auto const begin = text.find_first_not_of(" \t");
  std::int64_t number = 0;
  if (begin != std::string_view::npos) {
    auto const result = std::from_chars(text.data() + begin, text.data() + text.size(), number);
    if (result.ec == std::errc{}) { return number; }
  }
  throw FileSystemError("make sense of", path, EPROTO);
}

}  // namespace

struct ProcResidentMemory::State {
  detail::Descriptor pages{open_or_throw(pages_path)};
  detail::Descriptor status{open_or_throw(status_path)};
  std::int64_t page_bytes{::sysconf(_SC_PAGESIZE)};
};

namespace {

// Reads the start of a file of /proc in one go: such a file is made anew for each read at its start.
template <std::size_t Size>
std::string_view read_start(detail::Descriptor const& file, std::array<char, Size>& buffer, char const* path) {
  auto size = ::pread(file.get(), buffer.data(), buffer.size(), 0);
  while (size < 0 && errno == EINTR) { size = ::pread(file.get(), buffer.data(), buffer.size(), 0); }
  if (size < 0) { throw FileSystemError("read from", path, errno); }
  return {buffer.data(), static_cast<std::size_t>(size)};
}

}  // namespace

ProcResidentMemory::ProcResidentMemory() : state_(std::make_unique<State>()) {}

ProcResidentMemory::~ProcResidentMemory() = default;

std::int64_t ProcResidentMemory::current_bytes() {
  std::array<char, 256> buffer;
  auto text = read_start(state_->pages, buffer, pages_path);
  text.remove_prefix(std::min(text.find(' '), text.size()));
  return leading_number(text, pages_path) * state_->page_bytes;
}

std::int64_t ProcResidentMemory::peak_bytes() {
  std::array<char, 4096> buffer;
  auto text = read_start(state_->status, buffer, status_path);
  constexpr std::string_view key = "VmHWM:";
  auto const at = text.find(key);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + key.size());
  return leading_number(text, status_path) * 1024;
}

}  // namespace earmark
