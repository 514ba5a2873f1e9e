// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A file system that passes everything on to another one and fails where a test wants: the n-th write, every rename of
// a path, all writes once the disk is full. It also counts operations and remembers what it made and nobody removed,
// so that a test can walk through every failure of a job and see that each left nothing behind:
//
//   for (std::int64_t n = 0;; ++n) {
//     testing::FaultyFileSystem disk(real);
//     disk.fail({.operations = FileOperation::Write, .after = n, .error_number = EIO});
//     bool const failed = !run_job(disk);
//     if (disk.faults() == 0) { break; }
//     EXPECT_TRUE(failed && disk.left_behind().empty());
//   }
//
// Ownership: keeps a reference to the other file system; the files it opens and the locks it gives keep a reference to
// it. Thread safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "earmark/core/file_system.hpp"
#include "earmark/core/thread_annotations.hpp"

namespace earmark::testing {

// Operations of a file system and its files; a set of them is their `|`.
enum class FileOperation : std::uint32_t {
  OpenForReading = 1U << 0,
  OpenForWriting = 1U << 1,
  Create = 1U << 2,
  CreateDirectory = 1U << 3,
  CreateDirectories = 1U << 4,
  List = 1U << 5,
  Status = 1U << 6,
  Canonical = 1U << 7,
  Rename = 1U << 8,
  Exchange = 1U << 9,
  Remove = 1U << 10,
  RemoveAll = 1U << 11,
  Lock = 1U << 12,
  Read = 1U << 13,
  Write = 1U << 14,
  Size = 1U << 15,
  Truncate = 1U << 16,
  Close = 1U << 17,
};

[[nodiscard]] constexpr FileOperation operator|(FileOperation a, FileOperation b) noexcept {
  return static_cast<FileOperation>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr bool contains(FileOperation set, FileOperation operation) noexcept {
  return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(operation)) != 0;
}
inline constexpr FileOperation every_file_operation{(1U << 18) - 1};

enum class FaultRepeat { Once, Forever };
// Fail: throw, before anything is done; a write first writes half. Shorten: a read returns half of what it read.
enum class FaultEffect { Fail, Shorten };

struct Fault {
  FileOperation operations{every_file_operation};
  std::string path_contains{};  // of a rename or exchange: in either path
  std::int64_t after{0};        // matching operations that go well first
  FaultRepeat repeat{FaultRepeat::Once};
  FaultEffect effect{FaultEffect::Fail};
  int error_number{5};  // EIO
};

class FaultyFileSystem final : public FileSystem {
 public:
  using Observer = std::function<void(FileOperation, std::string const& path)>;

  explicit FaultyFileSystem(FileSystem& base);
  FaultyFileSystem(FaultyFileSystem const&) = delete;
  FaultyFileSystem& operator=(FaultyFileSystem const&) = delete;
  ~FaultyFileSystem() override;

  // Adds a fault. Several may be armed; the first that matches and is due strikes.
  void fail(Fault fault) EARMARK_EXCLUDES(mutex_);
  // From now on the disk takes `bytes` more bytes of writes; what goes beyond fails with ENOSPC after writing what
  // fits.
  void set_free_bytes(std::int64_t bytes) EARMARK_EXCLUDES(mutex_);
  // Files whose path contains this seem to end after `size` bytes.
  void cut_files(std::string path_contains, std::int64_t size) EARMARK_EXCLUDES(mutex_);
  // Calls `observer` before each operation, under no lock: it may do anything, also use the other file system.
  void observe(Observer observer) EARMARK_EXCLUDES(mutex_);
  // Removes faults, limits and the observer; counts and what is left behind stay.
  void heal() EARMARK_EXCLUDES(mutex_);

  // Returns: operations of these kinds so far, those that failed included.
  [[nodiscard]] std::int64_t count(FileOperation operations) const EARMARK_EXCLUDES(mutex_);
  // Returns: how often a fault struck or the disk was full.
  [[nodiscard]] std::int64_t faults() const EARMARK_EXCLUDES(mutex_);
  // Returns: bytes that were written.
  [[nodiscard]] std::int64_t written_bytes() const EARMARK_EXCLUDES(mutex_);
  // Returns: files open and locks held now.
  [[nodiscard]] std::int64_t open_handles() const EARMARK_EXCLUDES(mutex_);
  // Returns: what was created through this file system and neither removed nor renamed away, by its present path,
  // sorted.
  [[nodiscard]] std::vector<std::string> left_behind() const EARMARK_EXCLUDES(mutex_);

  [[nodiscard]] std::unique_ptr<File> open_for_reading(std::string const& path) override;
  [[nodiscard]] std::unique_ptr<File> open_for_writing(std::string const& path) override;
  [[nodiscard]] std::unique_ptr<File> create(std::string const& path, unsigned mode) override;
  void create_directory(std::string const& path, unsigned mode) override;
  void create_directories(std::string const& path, unsigned mode) override;
  [[nodiscard]] std::vector<DirectoryEntry> list(std::string const& path) override;
  [[nodiscard]] std::optional<FileStatus> status(std::string const& path) override;
  [[nodiscard]] std::string canonical(std::string const& path) override;
  void rename(std::string const& from, std::string const& to, IfTargetExists if_target_exists) override;
  void exchange(std::string const& a, std::string const& b) override;
  void remove(std::string const& path) override;
  void remove_all(std::string const& path) override;
  [[nodiscard]] std::unique_ptr<DirectoryLock> try_lock(std::string const& directory) override;

 private:
  class FaultyFile;
  class FaultyLock;

  struct Armed {
    Fault fault;
    std::int64_t seen{0};
    bool spent{false};
  };
  struct Cut {
    std::string path_contains;
    std::int64_t size;
  };

  // Counts an operation and lets the observer know. Returns: the fault that strikes it.
  std::optional<Fault> begin(FileOperation operation, std::string const& path, std::string const& other_path = {})
      EARMARK_EXCLUDES(mutex_);
  // As above, and throws when the fault's effect is to fail. `doing` is the operation's name for the message.
  void begin_or_throw(FileOperation operation, std::string const& doing, std::string const& path,
                      std::string const& other_path = {}) EARMARK_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Fault> strike(FileOperation operation, std::string const& path,
                                            std::string const& other_path) EARMARK_REQUIRES(mutex_);
  // Returns: how many of `bytes` the disk has room for; they count as written.
  std::int64_t take_room(std::int64_t bytes) EARMARK_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<std::int64_t> cut_of(std::string const& path) const EARMARK_EXCLUDES(mutex_);
  void change_open_handles(std::int64_t by) EARMARK_EXCLUDES(mutex_);
  void remember(std::string const& path) EARMARK_EXCLUDES(mutex_);
  void forget(std::string const& path) EARMARK_EXCLUDES(mutex_);
  void forget_tree(std::string const& path) EARMARK_EXCLUDES(mutex_);
  void move_trees(std::string const& from, std::string const& to) EARMARK_EXCLUDES(mutex_);
  void exchange_trees(std::string const& a, std::string const& b) EARMARK_EXCLUDES(mutex_);

  FileSystem& base_;
  mutable Mutex mutex_;
  std::vector<Armed> faults_ EARMARK_GUARDED_BY(mutex_);
  std::vector<Cut> cuts_ EARMARK_GUARDED_BY(mutex_);
  std::optional<std::int64_t> free_bytes_ EARMARK_GUARDED_BY(mutex_);
  std::shared_ptr<Observer const> observer_ EARMARK_GUARDED_BY(mutex_);
  std::map<FileOperation, std::int64_t> counts_ EARMARK_GUARDED_BY(mutex_);
  std::set<std::string> made_ EARMARK_GUARDED_BY(mutex_);
  std::int64_t struck_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t written_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t open_handles_ EARMARK_GUARDED_BY(mutex_){0};
};

}  // namespace earmark::testing
