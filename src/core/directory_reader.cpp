// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "directory_reader.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace earmark::detail {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};

}  // namespace

std::vector<RawEntry> read_entries(Descriptor const& directory, std::string const& path) {
  // A description of its own: the stream closes what it is given and starts where the descriptor stands.
  auto own = open_at(directory.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!own.valid()) { throw FileSystemError("list", path, errno); }
  std::unique_ptr<DIR, CloseDirectory> const stream(::fdopendir(own.get()));
  if (!stream) { throw FileSystemError("list", path, errno); }
  (void)own.release();
  std::vector<RawEntry> entries;
  for (;;) {
    errno = 0;
    auto const* entry = ::readdir(stream.get());
    if (entry == nullptr) { break; }
    std::string_view const name(entry->d_name);
    if (name != "." && name != "..") { entries.push_back({std::string(name), entry->d_type}); }
  }
  if (errno != 0 && errno != ENOENT) { throw FileSystemError("list", path, errno); }  // ENOENT: removed meanwhile
  return entries;
}

}  // namespace earmark::detail
