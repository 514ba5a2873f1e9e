// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "canonical_path.hpp"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "earmark/core/file_system.hpp"

namespace earmark::detail {
namespace {

constexpr int most_links = 40;  // as Linux follows in one path

struct Free {
  void operator()(char* text) const noexcept { std::free(text); }
};

std::string_view without_trailing_slashes(std::string_view path) {
  auto const end = path.find_last_not_of('/');
  return end == std::string_view::npos ? path.substr(0, 1) : path.substr(0, end + 1);
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string joined(std::string const& folder, std::string_view name) {
  return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

// Returns: where the link `path` leads, or nothing when it is no link.
std::optional<std::string> link_target(std::string const& path) {
  std::string target(PATH_MAX, '\0');
  auto const size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) { return std::nullopt; }
  target.resize(static_cast<std::size_t>(size));
  return target;
}

std::string resolve(std::string const& path, int links_left) {
  std::unique_ptr<char, Free> const existing(::realpath(path.c_str(), nullptr));
  if (existing) { return existing.get(); }
  if (errno != ENOENT && errno != ENOTDIR) { throw FileSystemError("resolve", path, errno); }
  auto const name = last_part(without_trailing_slashes(path));
  if (name.empty()) { throw FileSystemError("resolve", path, ENOENT); }  // "": its parent would be "." for ever
  auto const folder = resolve(parent_of(path), links_left);
  if (name == ".") { return folder; }
  if (name == "..") { return parent_of(folder); }
  auto const place = joined(folder, name);
  auto const target = link_target(place);
  if (!target) { return place; }
  if (links_left == 0) { throw FileSystemError("resolve", path, ELOOP); }
  return resolve(target->starts_with('/') ? *target : joined(folder, *target), links_left - 1);
}

}  // namespace

std::string parent_of(std::string const& path) {
  auto const name = without_trailing_slashes(path);
  auto const slash = name.rfind('/');
  if (slash == std::string_view::npos) { return "."; }
  return std::string(without_trailing_slashes(name.substr(0, slash + 1)));
}

std::string canonical_path(std::string const& path) { return resolve(path, most_links); }

}  // namespace earmark::detail
