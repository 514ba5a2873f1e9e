// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "kernel_features.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

namespace earmark::cli {
namespace {

constexpr unsigned file_mode = 0600;

[[nodiscard]] std::string answer(bool is_possible, int error_number) {
  if (is_possible) { return "yes"; }
  return fmt::format("no ({})", std::generic_category().message(error_number));
}

[[nodiscard]] std::string can_open(std::string const& path, int flags) {
  int const file = ::open(path.c_str(), flags | O_CLOEXEC, file_mode);
  int const error_number = errno;
  if (file >= 0) { ::close(file); }
  return answer(file >= 0, error_number);
}

// A folder of our own inside another one; goes with all that is named in it.
class Workplace {
 public:
  explicit Workplace(std::string const& folder) : path_(folder + "/.earmark-info-XXXXXX") {
    is_there_ = ::mkdtemp(path_.data()) != nullptr;
    error_number_ = is_there_ ? 0 : errno;
  }
  Workplace(Workplace const&) = delete;
  Workplace& operator=(Workplace const&) = delete;
  ~Workplace() {
    if (!is_there_) { return; }
    ::unlink(in("a").c_str());
    ::unlink(in("b").c_str());
    ::rmdir(path_.c_str());
  }

  [[nodiscard]] bool is_there() const noexcept { return is_there_; }
  [[nodiscard]] int error_number() const noexcept { return error_number_; }
  [[nodiscard]] std::string in(char const* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool is_there_{false};
  int error_number_{0};
};

}  // namespace

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "unknown";
}

std::string io_uring_allowed() {
  io_uring_params parameters{};
  auto const ring = ::syscall(SYS_io_uring_setup, 1, &parameters);
  int const error_number = errno;
  if (ring >= 0) { ::close(static_cast<int>(ring)); }
  return answer(ring >= 0, error_number);
}

std::string direct_io_in(std::string const& folder) {
  Workplace const place{folder};
  if (!place.is_there()) { return answer(false, place.error_number()); }
  return can_open(place.in("a"), O_RDWR | O_CREAT | O_EXCL | O_DIRECT);
}

std::string unnamed_files_in(std::string const& folder) { return can_open(folder, O_RDWR | O_TMPFILE); }

std::string exchange_in(std::string const& folder) {
  Workplace const place{folder};
  if (!place.is_there()) { return answer(false, place.error_number()); }
  for (char const* const name : {"a", "b"}) {
    if (auto made = can_open(place.in(name), O_RDWR | O_CREAT | O_EXCL); made != "yes") { return made; }
  }
  bool const done = ::renameat2(AT_FDCWD, place.in("a").c_str(), AT_FDCWD, place.in("b").c_str(), RENAME_EXCHANGE) == 0;
  return answer(done, errno);
}

std::string may_write_folder(std::string const& folder) {
  bool const may = ::access(folder.c_str(), W_OK | X_OK) == 0;
  return answer(may, errno);
}

}  // namespace earmark::cli
