// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "output_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

constexpr unsigned folder_mode = 0777;  // cut by the umask: the result belongs to whoever runs the job
constexpr std::string_view success_marker = "_SUCCESS";
constexpr std::string_view lost_and_found = "lost+found";  // the file system's own, at the root of a mount

bool is_within(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && (folder.ends_with('/') || path[folder.size()] == '/'));
}

std::pair<std::string, std::string> split(std::string const& path) {
  auto const slash = path.rfind('/');
  if (slash == std::string::npos) { return {".", path}; }
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char const c : text) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3; }
  return hash;
}

// The hidden folder's name is longer than the target's, and names end at 255 bytes.
// Returns: `name`, or its beginning (of whole characters, as some file systems want UTF-8) and a hash of all of it.
std::string shortened(std::string const& name) {
  constexpr std::size_t most_bytes = 200;
  if (name.size() <= most_bytes) { return name; }
  std::size_t cut = most_bytes;
  while (cut > most_bytes - 3 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) { --cut; }
  return fmt::format("{}~{:016x}", std::string_view(name).substr(0, cut), hash_of(name));
}

std::string part_name(std::size_t partition) { return fmt::format("part-{:05}.parquet", partition); }

// Returns: the partition whose file has that name, if any.
std::optional<std::size_t> partition_named(std::string_view name) {
  constexpr std::string_view before_number = "part-";
  if (!name.starts_with(before_number)) { return std::nullopt; }
  std::size_t partition = 0;
  std::from_chars(name.data() + before_number.size(), name.data() + name.size(), partition);
  if (part_name(partition) != name) { return std::nullopt; }
  return partition;
}

}  // namespace

OutputFolder::OutputFolder(CheckOnly, FileSystem& file_system, std::string const& target, Overwrite overwrite)
    : file_system_(file_system), target_(file_system.canonical(target)), overwrite_(overwrite) {
  std::tie(parent_, name_) = split(target_);
  if (name_.empty()) { throw OutputError("the output cannot be the root folder: name a folder below it"); }
}

OutputFolder::OutputFolder(FileSystem& file_system, std::string const& target, Overwrite overwrite,
                           std::vector<InputPath> const& inputs, std::vector<std::string> const& named_inputs)
    : OutputFolder(CheckOnly{}, file_system, target, overwrite) {
  check_target(inputs, named_inputs);
  remove_stale_folders();
  make_hidden_folder();
}

void OutputFolder::check(FileSystem& file_system, std::string const& target, Overwrite overwrite,
                         std::vector<InputPath> const& inputs, std::vector<std::string> const& named_inputs) {
  OutputFolder(CheckOnly{}, file_system, target, overwrite).check_target(inputs, named_inputs);
}

OutputFolder::~OutputFolder() {
  try {
    if (!hidden_.empty()) { file_system_.remove_all(hidden_); }
    lock_.reset();
    // A parent that someone else filled meanwhile stays: remove() refuses it.
    for (auto parent = made_parents_.rbegin(); parent != made_parents_.rend(); ++parent) {
      file_system_.remove(*parent);
    }
  }
  catch (FileSystemError const&) {
    // The disk that failed us may refuse the clean-up too; the next job with this target removes what is left.
  }
}

void OutputFolder::check_target(std::vector<InputPath> const& inputs, std::vector<std::string> const& named_inputs) {
  for (InputPath const& input : inputs) {
    std::string const path = file_system_.canonical(input.path);
    if (is_within(path, target_)) {
      throw OutputError(
          fmt::format("the output folder '{}' holds the input '{}': choose another output", target_, input.path));
    }
    if (is_within(target_, path)) {
      throw OutputError(
          fmt::format("the output '{}' is below the input file '{}': choose another output", target_, input.path));
    }
  }
  for (std::string const& name : named_inputs) {
    // The next run over the same folder would read this output as input.
    auto const status = file_system_.status(name);
    if (status && status->kind == FileKind::Directory && is_within(target_, file_system_.canonical(name))) {
      throw OutputError(
          fmt::format("the output '{}' is inside the input folder '{}': choose another output", target_, name));
    }
  }
  auto const status = file_system_.status(target_);
  if (!status) { return; }
  if (status->kind != FileKind::Directory) {
    throw OutputError(fmt::format("the output '{}' exists and is no folder", target_));
  }
  auto const parent_status = file_system_.status(parent_);
  is_mount_point_ = parent_status && parent_status->device != status->device;
  if (overwrite_ == Overwrite::No && !entries_of_target().empty()) {
    throw OutputError(
        fmt::format("the output folder '{}' is not empty: remove it, choose another, or pass --overwrite", target_));
  }
}

std::vector<std::string> OutputFolder::entries_of_target() {
  std::vector<std::string> names;
  for (DirectoryEntry const& entry : file_system_.list(target_)) {
    if (!entry.name.starts_with(hidden_prefix()) && entry.name != lost_and_found) { names.push_back(entry.name); }
  }
  return names;
}

std::string OutputFolder::hidden_prefix() const { return fmt::format(".{}.earmark-", shortened(name_)); }

void OutputFolder::remove_stale_folders() {
  std::string const& place = hidden_parent();
  if (!file_system_.status(place)) { return; }
  for (DirectoryEntry const& entry : file_system_.list(place)) {
    if (entry.kind != FileKind::Directory || !entry.name.starts_with(hidden_prefix())) { continue; }
    std::string const path = place + "/" + entry.name;
    if (auto const lock = file_system_.try_lock(path)) { file_system_.remove_all(path); }
  }
}

void OutputFolder::make_hidden_folder() {
  std::vector<std::string> missing;
  for (std::string at = parent_; !file_system_.status(at); at = split(at).first) { missing.push_back(at); }
  for (auto parent = missing.rbegin(); parent != missing.rend(); ++parent) {
    try {
      file_system_.create_directory(*parent, folder_mode);
      made_parents_.push_back(*parent);
    }
    catch (FileSystemError const& error) {
      if (error.error_number() != EEXIST) { throw; }  // someone else made it meanwhile: theirs to remove
    }
  }
  constexpr unsigned most_attempts = 1000;
  for (unsigned attempt = 0;; ++attempt) {
    std::string const path = fmt::format("{}/{}{}-{}", hidden_parent(), hidden_prefix(), ::getpid(), attempt);
    try {
      file_system_.create_directory(path, folder_mode);
    }
    catch (FileSystemError const& error) {
      if (error.error_number() == EEXIST && attempt < most_attempts) { continue; }
      throw;
    }
    hidden_ = path;
    // Between making and locking, another job may have taken the folder for a dead one's; then it is gone: make
    // another.
    if ((lock_ = file_system_.try_lock(path))) { return; }
    if (attempt == most_attempts) { throw FileSystemError("lock", path, EWOULDBLOCK); }
    hidden_.clear();
  }
}

std::string OutputFolder::part_path(std::int64_t partition) const {
  auto const index = static_cast<std::size_t>(partition);
  handed_out_.resize(std::max(handed_out_.size(), index + 1));
  handed_out_[index] = true;
  return fmt::format("{}/{}", hidden_, part_name(index));
}

// Whoever cleans up beside the target may have met a file that nothing looks at any more once it is closed.
void OutputFolder::check_files() {
  std::vector<bool> missing = handed_out_;
  for (DirectoryEntry const& entry : file_system_.list(hidden_)) {
    auto const partition = partition_named(entry.name);
    if (!partition || *partition >= missing.size() || !missing[*partition] || entry.kind != FileKind::Regular) {
      throw FileSystemError("publish the output with the foreign", hidden_ + "/" + entry.name, EEXIST);
    }
    missing[*partition] = false;
  }
  auto const first = std::find(missing.begin(), missing.end(), true);
  if (first != missing.end()) {
    auto const partition = static_cast<std::size_t>(first - missing.begin());
    throw FileSystemError("publish", fmt::format("{}/{}", hidden_, part_name(partition)), ENOENT);
  }
}

// An exchange takes whatever stands there, and the clean-up would remove it.
void OutputFolder::check_target_is_no_file() {
  auto const status = file_system_.status(target_);
  if (status && status->kind != FileKind::Directory) {
    throw OutputError(fmt::format("the output '{}' became something else than a folder meanwhile", target_));
  }
}

void OutputFolder::publish() {
  check_files();
  check_target_is_no_file();
  if (is_mount_point_) {
    publish_into_mount_point();
    return;
  }
  try {
    if (overwrite_ == Overwrite::Yes && file_system_.status(target_)) {
      // From here on the result stands; what was there before is in the hidden folder now and goes with it.
      file_system_.exchange(hidden_, target_);
    } else {
      file_system_.rename(hidden_, target_, IfTargetExists::Fail);
      hidden_.clear();
    }
  }
  catch (FileSystemError const& error) {
    if (error.error_number() == EEXIST || error.error_number() == ENOTEMPTY) {
      throw OutputError(fmt::format("the output folder '{}' was filled by someone else meanwhile", target_));
    }
    throw;
  }
  made_parents_.clear();
}

// A mount point cannot be renamed over: its files are replaced one by one, the marker last.
void OutputFolder::publish_into_mount_point() {
  std::vector<std::string> const before = entries_of_target();
  if (overwrite_ == Overwrite::No && !before.empty()) {
    throw OutputError(fmt::format("the output folder '{}' was filled by someone else meanwhile", target_));
  }
  // The marker goes first, so that it never stands beside half a result.
  file_system_.remove_all(target_ + "/" + std::string(success_marker));
  for (std::string const& name : before) { file_system_.remove_all(target_ + "/" + name); }
  for (DirectoryEntry const& entry : file_system_.list(hidden_)) {
    file_system_.rename(hidden_ + "/" + entry.name, target_ + "/" + entry.name, IfTargetExists::Replace);
  }
  file_system_.create(target_ + "/" + std::string(success_marker), 0666)->close();
}

}  // namespace earmark::detail
