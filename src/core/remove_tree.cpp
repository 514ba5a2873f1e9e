// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "remove_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "directory_reader.hpp"

namespace earmark::detail {
namespace {

// How often a folder that was emptied and yet is not empty is emptied again: others may be adding to it.
constexpr int passes = 8;

constexpr bool is_gone(int error_number) { return error_number == ENOENT || error_number == ENOTDIR; }

// The name of something in an open folder, and its path for messages.
struct Place {
  int directory;
  std::string name;
  std::string path;
};

class TreeRemover {
 public:
  void remove(Place const& place) {
    auto const folder = open_at(place.directory, place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (folder.valid()) { return remove_folder(place, folder); }
    if (errno == ENOTDIR || errno == ELOOP) { return unlink(place); }
    if (errno == ENOENT) { return; }
    // A folder that may not be read can still be empty.
    auto const error_number = errno;
    if (!remove_empty(place)) { keep(place, error_number); }
  }

  void rethrow_first_error() const {
    if (first_error_) { std::rethrow_exception(first_error_); }
  }

 private:
  void remove_folder(Place const& place, Descriptor const& folder) {
    for (int pass = 0; pass < passes; ++pass) {
      empty(place, folder);
      if (remove_empty(place)) { return; }
      if (errno != ENOTEMPTY && errno != EEXIST) { break; }
      if (first_error_) { return; }  // it is not empty because of what is already reported
    }
    keep(place, errno);
  }

  void empty(Place const& place, Descriptor const& folder) {
    try {
      for (auto const& entry : read_entries(folder, place.path)) {
        Place const child{folder.get(), entry.name, place.path + "/" + entry.name};
        if (entry.type == DT_DIR || entry.type == DT_UNKNOWN) {
          remove(child);
        } else {
          unlink(child);
        }
      }
    }
    catch (FileSystemError const& error) {
      if (!is_gone(error.error_number()) && !first_error_) { first_error_ = std::current_exception(); }
    }
  }

  void unlink(Place const& place) {
    if (::unlinkat(place.directory, place.name.c_str(), 0) == 0 || is_gone(errno)) { return; }
    if (errno == EISDIR || errno == EPERM) {  // became a folder meanwhile; EPERM is POSIX's word for it
      auto const error_number = errno;
      if (!remove_empty(place)) { keep(place, error_number); }
      return;
    }
    keep(place, errno);
  }

  // Returns: whether the folder is gone now; otherwise errno has the cause.
  static bool remove_empty(Place const& place) {
    return ::unlinkat(place.directory, place.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
  }

  void keep(Place const& place, int error_number) {
    if (!first_error_) { first_error_ = std::make_exception_ptr(FileSystemError("remove", place.path, error_number)); }
  }

  std::exception_ptr first_error_;
};

}  // namespace

void remove_tree(std::string const& path) {
  // A trailing slash would make the system follow a link.
  auto const end = path.find_last_not_of('/');
  auto const name = end == std::string::npos ? path : path.substr(0, end + 1);
  TreeRemover remover;
  remover.remove({AT_FDCWD, name, name});
  remover.rethrow_first_error();
}

}  // namespace earmark::detail
