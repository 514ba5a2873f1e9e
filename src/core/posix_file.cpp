// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "posix_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace earmark::detail {
namespace {

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

// Calls a function of the system again while a signal interrupts it.
template <class Call>
auto uninterrupted(Call call) noexcept {
  auto result = call();
  while (result < 0 && errno == EINTR) { result = call(); }
  return result;
}

class PosixFile final : public File {
 public:
  PosixFile(Descriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  std::size_t read_at(std::span<std::byte> out, std::int64_t offset) override {
    std::size_t done = 0;
    while (done < out.size()) {
      auto const rest = out.subspan(done);
      auto const n = uninterrupted([&] { return ::pread(fd(), rest.data(), rest.size(), position(offset, done)); });
      if (n < 0) { throw error("read " + bytes_text(rest.size()) + " from", errno, rest.size()); }
      if (n == 0) { break; }
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  void write_at(std::span<std::byte const> bytes, std::int64_t offset) override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      auto const rest = bytes.subspan(done);
      auto const n = uninterrupted([&] { return ::pwrite(fd(), rest.data(), rest.size(), position(offset, done)); });
      // Nothing written without an error would repeat for ever.
      if (n <= 0) { throw error("write " + bytes_text(rest.size()) + " to", n < 0 ? errno : EIO, rest.size()); }
      done += static_cast<std::size_t>(n);
    }
  }

  [[nodiscard]] std::int64_t size() const override {
    struct stat status{};
    if (::fstat(fd(), &status) != 0) { throw error("look at", errno); }
    return status.st_size;
  }

  void truncate(std::int64_t size) override {
    if (uninterrupted([&] { return ::ftruncate(fd(), size); }) != 0) { throw error("truncate", errno); }
  }

  void will_need(std::int64_t offset, std::int64_t length) noexcept override {
    (void)::posix_fadvise(fd(), offset, length, POSIX_FADV_WILLNEED);
  }

  void close() override {
    // The descriptor is gone whatever close(2) says, so an interruption is no failure and there is no second attempt.
    if (::close(descriptor_.release()) != 0 && errno != EINTR) { throw error("close", errno); }
  }

  [[nodiscard]] std::string const& path() const noexcept override { return path_; }

 private:
  [[nodiscard]] int fd() const noexcept { return descriptor_.get(); }
  [[nodiscard]] static off_t position(std::int64_t offset, std::size_t done) noexcept {
    return offset + static_cast<off_t>(done);
  }
  [[nodiscard]] FileSystemError error(std::string const& operation, int error_number, std::size_t bytes = 0) const {
    return {operation, path_, error_number, static_cast<std::int64_t>(bytes)};
  }

  Descriptor descriptor_;
  std::string path_;
};

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    Descriptor const old(release());
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (valid()) { ::close(fd_); }
}

int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

Descriptor open_at(int directory, char const* path, int flags, unsigned mode) noexcept {
  return Descriptor(uninterrupted([&] { return ::openat(directory, path, flags | O_CLOEXEC, mode); }));
}

std::unique_ptr<File> open_posix_file(std::string const& operation, std::string const& path, int flags, unsigned mode) {
  auto descriptor = open_at(AT_FDCWD, path.c_str(), flags, mode);
  if (!descriptor.valid()) { throw FileSystemError(operation, path, errno); }
  return std::make_unique<PosixFile>(std::move(descriptor), path);
}

}  // namespace earmark::detail
