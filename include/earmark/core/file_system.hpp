// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The disk, as an interface: everything below the roof opens, writes, renames and removes through a `FileSystem`, so
// that tests can make any of these fail (`testing::FaultyFileSystem`). `PosixFileSystem` is the real one.
// Thread safety: a `FileSystem` and a `File`'s positioned reads and writes may be used from any thread; opening,
// truncating and closing one `File` are for one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "earmark/core/error.hpp"

namespace earmark {

// A failure of the file system. `what()` has operation, path and cause, e.g.
// "cannot write 65536 bytes to 'out/part-00001.parquet': No space left on device".
class FileSystemError : public std::runtime_error, public EarmarkError {
 public:
  // `operation` as it reads after "cannot ": "write 4096 bytes to", "open", "rename". `error_number` is an errno.
  FileSystemError(std::string const& operation, std::string path, int error_number, std::int64_t bytes = 0);

  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  [[nodiscard]] int error_number() const noexcept { return error_number_; }
  // Bytes that the failed operation was about; 0 where that has no meaning.
  [[nodiscard]] std::int64_t bytes() const noexcept { return fields_.requested; }
  [[nodiscard]] ErrorFields const& fields() const noexcept override { return fields_; }

 private:
  std::string path_;
  int error_number_;
  ErrorFields fields_;
};

// An open file with positioned reads and writes. Destroying it closes it and swallows errors: call `close()` after
// writing to see them.
class File {
 public:
  virtual ~File() = default;
  // Returns: bytes read; fewer than asked only at the end of the file. Throws: FileSystemError.
  virtual std::size_t read_at(std::span<std::byte> out, std::int64_t offset) = 0;
  // Writes all of `bytes`. Throws: FileSystemError; then an unknown part of them is written.
  virtual void write_at(std::span<std::byte const> bytes, std::int64_t offset) = 0;
  // Returns: the file's length in bytes. Throws: FileSystemError.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  virtual void truncate(std::int64_t size) = 0;
  // Tells the system that a range will be read soon. A hint: never fails, never blocks.
  virtual void will_need(std::int64_t offset, std::int64_t length) noexcept = 0;
  // Closes the file; further calls but the destructor are a defect. Throws: FileSystemError for a late write error.
  virtual void close() = 0;
  [[nodiscard]] virtual std::string const& path() const noexcept = 0;
};

enum class FileKind { Regular, Directory, Other };

struct FileStatus {
  FileKind kind{FileKind::Other};
  std::int64_t size{0};
  std::uint64_t device{0};  // (device, inode) names the file whatever path led to it
  std::uint64_t inode{0};
  std::int64_t modified_ns{0};  // last modification, nanoseconds since the epoch
};

struct DirectoryEntry {
  std::string name;                // without its folder
  FileKind kind{FileKind::Other};  // symbolic links are followed
};

// An advisory lock on a folder, held while this lives and by no other process or lock object at the same time.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

enum class IfTargetExists { Fail, Replace };

// All paths are as the operating system takes them. Every function throws FileSystemError unless it says otherwise.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  [[nodiscard]] virtual std::unique_ptr<File> open_for_reading(std::string const& path) = 0;
  // Opens an existing file for positioned writes; its contents stay.
  [[nodiscard]] virtual std::unique_ptr<File> open_for_writing(std::string const& path) = 0;
  // Creates a file that must not exist yet, open for reading and writing. `mode` as in open(2), cut by the umask.
  [[nodiscard]] virtual std::unique_ptr<File> create(std::string const& path, unsigned mode) = 0;
  // Creates one folder that must not exist yet (EEXIST otherwise).
  virtual void create_directory(std::string const& path, unsigned mode) = 0;
  // Creates a folder and its missing parents; an existing folder is fine.
  virtual void create_directories(std::string const& path, unsigned mode) = 0;
  // Returns: the entries of a folder but "." and "..", sorted by name.
  [[nodiscard]] virtual std::vector<DirectoryEntry> list(std::string const& path) = 0;
  // Returns: what the path leads to (links followed), or nothing when there is no such thing.
  [[nodiscard]] virtual std::optional<FileStatus> status(std::string const& path) = 0;
  // Returns: the path with links, "." and ".." resolved; the last parts may not exist.
  [[nodiscard]] virtual std::string canonical(std::string const& path) = 0;
  // Renames a file or folder. With Fail, an existing target is refused (EEXIST), except that an empty folder may be
  // replaced by a folder.
  virtual void rename(std::string const& from, std::string const& to, IfTargetExists if_target_exists) = 0;
  // Exchanges two paths in one step.
  virtual void exchange(std::string const& a, std::string const& b) = 0;
  // Removes a file or an empty folder; one that does not exist is fine.
  virtual void remove(std::string const& path) = 0;
  // Removes a folder with all that is in it, never following links; one that does not exist is fine.
  virtual void remove_all(std::string const& path) = 0;
  // Returns: a lock on the folder, or nothing when someone else holds it or the folder is gone.
  [[nodiscard]] virtual std::unique_ptr<DirectoryLock> try_lock(std::string const& directory) = 0;
};

}  // namespace earmark
