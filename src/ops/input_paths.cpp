// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "input_paths.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

bool is_hidden(std::string_view name) { return name.starts_with('.') || name.starts_with('_'); }

bool has_pattern(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

std::string join(std::string const& folder, std::string const& name) {
  if (folder.empty()) { return name; }
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

class Expansion {
 public:
  Expansion(FileSystem& file_system, std::string const& input) : file_system_(file_system), input_(input) {}

  std::vector<InputPath> run() {
    if (input_.empty()) { throw InputError("an input is empty: name a file, a folder or a pattern", input_); }
    if (auto const status = status_of(input_)) {
      add(input_, *status);
      if (found_.empty()) { throw InputError("no *.parquet file below the folder '" + input_ + "'", input_); }
    } else if (has_pattern(input_)) {
      bool const absolute = input_.starts_with('/');
      match(absolute ? "/" : "", std::string_view(input_).substr(absolute ? 1 : 0));
      if (found_.empty()) { throw InputError("nothing matches the pattern '" + input_ + "'", input_); }
    } else {
      throw InputError("no such file or folder: '" + input_ + "'", input_);
    }
    std::sort(found_.begin(), found_.end(), [](auto const& a, auto const& b) { return a.path < b.path; });
    // A pattern with several ** reaches a file on several ways.
    auto const same = [](auto const& a, auto const& b) { return a.path == b.path; };
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    return std::move(found_);
  }

 private:
  // A file system error on the way to an input is bad input, not a failure of the output disk.
  template <class Function>
  auto reading(Function&& function) {
    try {
      return function();
    }
    catch (FileSystemError const& error) {
      throw InputError(error.what(), error.path());
    }
  }
  std::optional<FileStatus> status_of(std::string const& path) {
    return reading([&] { return file_system_.status(path); });
  }
  std::vector<DirectoryEntry> list(std::string const& path) {
    return reading([&] { return file_system_.list(path.empty() ? "." : path); });
  }

  void add(std::string const& path, FileStatus const& status) {
    if (status.kind == FileKind::Directory) {
      add_folder(path);
    } else if (status.kind == FileKind::Regular) {
      found_.push_back({path, status});
    } else {
      throw InputError("not a regular file: '" + path + "' (Parquet is read from its end, so it must be seekable)",
                       path);
    }
  }

  void add_folder(std::string const& folder) {
    for (DirectoryEntry const& entry : list(folder)) {
      if (is_hidden(entry.name)) { continue; }
      std::string const path = join(folder, entry.name);
      if (entry.kind == FileKind::Directory) {
        add_folder(path);
      } else if (entry.name.ends_with(".parquet")) {
        if (auto const status = status_of(path)) { add(path, *status); }
      }
    }
  }

  // Matches the pattern's components one folder at a time; `folder` is what is fixed already.
  void match(std::string const& folder, std::string_view pattern) {
    while (pattern.starts_with('/')) { pattern.remove_prefix(1); }
    auto const slash = pattern.find('/');
    std::string const part(pattern.substr(0, slash));
    bool const last =
        slash == std::string_view::npos || pattern.find_first_not_of('/', slash) == std::string_view::npos;
    std::string_view const rest = last ? std::string_view{} : pattern.substr(slash + 1);
    if (part == "**" && last) {
      if (is_folder(folder)) { add_folder(folder); }
    } else if (part == "**") {
      match_any_depth(folder, rest);
    } else if (!has_pattern(part)) {
      descend(join(folder, part), rest, last);
    } else {
      if (!is_folder(folder)) { return; }
      for (DirectoryEntry const& entry : list(folder)) {
        if (fnmatch(part.c_str(), entry.name.c_str(), FNM_PERIOD) == 0) {
          descend(join(folder, entry.name), rest, last);
        }
      }
    }
  }
  void match_any_depth(std::string const& folder, std::string_view rest) {
    match(folder, rest);
    if (!is_folder(folder)) { return; }
    for (DirectoryEntry const& entry : list(folder)) {
      if (entry.kind == FileKind::Directory && !is_hidden(entry.name)) {
        match_any_depth(join(folder, entry.name), rest);
      }
    }
  }
  void descend(std::string const& path, std::string_view rest, bool last) {
    auto const status = status_of(path);
    if (!status) { return; }
    if (last) {
      if (status->kind != FileKind::Other) { add(path, *status); }
    } else if (status->kind == FileKind::Directory) {
      match(path, rest);
    }
  }
  bool is_folder(std::string const& path) {
    auto const status = status_of(path.empty() ? "." : path);
    return status && status->kind == FileKind::Directory;
  }

  FileSystem& file_system_;
  std::string const& input_;
  std::vector<InputPath> found_;
};

}  // namespace

std::vector<InputPath> expand_inputs(FileSystem& file_system, std::vector<std::string> const& inputs) {
  std::vector<InputPath> all;
  for (std::string const& input : inputs) {
    std::vector<InputPath> found = Expansion(file_system, input).run();
    all.insert(all.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  return all;
}

}  // namespace earmark::detail
