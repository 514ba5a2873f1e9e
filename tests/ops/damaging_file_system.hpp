// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A disk that does not keep what it is given: each write passes through a function that may change its bytes, before it
// goes to the real disk. Nothing fails. Thread safety: as the function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "earmark/core/posix_file_system.hpp"

namespace earmark {

class DamagingFileSystem final : public FileSystem {
 public:
  // Gets the path, the offset in the file, and the bytes to be written.
  using Damage = std::function<void(std::string const& path, std::int64_t offset, std::span<std::byte> bytes)>;

  explicit DamagingFileSystem(Damage damage) : damage_(std::move(damage)) {}

  std::unique_ptr<File> open_for_reading(std::string const& path) override { return real_.open_for_reading(path); }
  std::unique_ptr<File> open_for_writing(std::string const& path) override {
    return std::make_unique<DamagedFile>(real_.open_for_writing(path), damage_);
  }
  std::unique_ptr<File> create(std::string const& path, unsigned mode) override {
    return std::make_unique<DamagedFile>(real_.create(path, mode), damage_);
  }
  void create_directory(std::string const& path, unsigned mode) override { real_.create_directory(path, mode); }
  void create_directories(std::string const& path, unsigned mode) override { real_.create_directories(path, mode); }
  std::vector<DirectoryEntry> list(std::string const& path) override { return real_.list(path); }
  std::optional<FileStatus> status(std::string const& path) override { return real_.status(path); }
  std::string canonical(std::string const& path) override { return real_.canonical(path); }
  void rename(std::string const& from, std::string const& to, IfTargetExists if_target_exists) override {
    real_.rename(from, to, if_target_exists);
  }
  void exchange(std::string const& a, std::string const& b) override { real_.exchange(a, b); }
  void remove(std::string const& path) override { real_.remove(path); }
  void remove_all(std::string const& path) override { real_.remove_all(path); }
  std::unique_ptr<DirectoryLock> try_lock(std::string const& directory) override { return real_.try_lock(directory); }

 private:
  class DamagedFile final : public File {
   public:
    DamagedFile(std::unique_ptr<File> file, Damage const& damage) : file_(std::move(file)), damage_(damage) {}
    std::size_t read_at(std::span<std::byte> out, std::int64_t offset) override { return file_->read_at(out, offset); }
    void write_at(std::span<std::byte const> bytes, std::int64_t offset) override {
      std::vector<std::byte> copy(bytes.begin(), bytes.end());
      damage_(file_->path(), offset, copy);
      file_->write_at(copy, offset);
    }
    std::int64_t size() const override { return file_->size(); }
    void truncate(std::int64_t size) override { file_->truncate(size); }
    void will_need(std::int64_t offset, std::int64_t length) noexcept override { file_->will_need(offset, length); }
    void close() override { file_->close(); }
    std::string const& path() const noexcept override { return file_->path(); }

   private:
    std::unique_ptr<File> file_;
    Damage const& damage_;
  };

  Damage damage_;
  PosixFileSystem real_;
};

}  // namespace earmark
