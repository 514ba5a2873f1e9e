// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/faulty_file_system.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace earmark::testing {
namespace {

bool has(std::string const& path, std::string const& part) { return path.find(part) != std::string::npos; }

bool is_at_or_below(std::string const& path, std::string const& folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Takes everything at or below `folder` out of `paths`. Returns: what was taken, as the rest after `folder`.
std::vector<std::string> take_tree(std::set<std::string>& paths, std::string const& folder) {
  std::vector<std::string> rests;
  for (auto it = paths.begin(); it != paths.end();) {
    if (is_at_or_below(*it, folder)) {
      rests.push_back(it->substr(folder.size()));
      it = paths.erase(it);
    } else {
      ++it;
    }
  }
  return rests;
}

}  // namespace

class FaultyFileSystem::FaultyFile final : public File {
 public:
  FaultyFile(FaultyFileSystem& disk, std::unique_ptr<File> base) : disk_(disk), base_(std::move(base)) {
    disk_.change_open_handles(1);
  }
  ~FaultyFile() override {
    if (!closed_) { disk_.change_open_handles(-1); }
  }

  std::size_t read_at(std::span<std::byte> out, std::int64_t offset) override {
    auto const fault = disk_.begin(FileOperation::Read, path());
    if (fault && fault->effect == FaultEffect::Fail) { throw error("read from", fault->error_number, out.size()); }
    if (auto const end = disk_.cut_of(path())) {
      out = out.first(std::min(out.size(), static_cast<std::size_t>(std::max<std::int64_t>(*end - offset, 0))));
    }
    auto const size = base_->read_at(out, offset);
    return fault ? size / 2 : size;
  }

  void write_at(std::span<std::byte const> bytes, std::int64_t offset) override {
    auto const fault = disk_.begin(FileOperation::Write, path());
    auto const wanted = fault ? bytes.size() / 2 : bytes.size();
    auto const room = static_cast<std::size_t>(disk_.take_room(static_cast<std::int64_t>(wanted)));
    if (room > 0) { base_->write_at(bytes.first(room), offset); }
    if (fault) { throw error("write to", fault->error_number, bytes.size()); }
    if (room < wanted) { throw error("write to", ENOSPC, bytes.size()); }
  }

  [[nodiscard]] std::int64_t size() const override {
    disk_.begin_or_throw(FileOperation::Size, "look at", path());
    return std::min(base_->size(), disk_.cut_of(path()).value_or(INT64_MAX));
  }

  void truncate(std::int64_t size) override {
    disk_.begin_or_throw(FileOperation::Truncate, "truncate", path());
    base_->truncate(size);
  }

  void will_need(std::int64_t offset, std::int64_t length) noexcept override { base_->will_need(offset, length); }

  void close() override {
    auto const fault = disk_.begin(FileOperation::Close, path());
    base_->close();  // also when it fails: a descriptor is gone after close(2)
    closed_ = true;
    disk_.change_open_handles(-1);
    if (fault) { throw error("close", fault->error_number, 0); }
  }

  [[nodiscard]] std::string const& path() const noexcept override { return base_->path(); }

 private:
  [[nodiscard]] FileSystemError error(std::string const& operation, int error_number, std::size_t bytes) const {
    return {operation, path(), error_number, static_cast<std::int64_t>(bytes)};
  }

  FaultyFileSystem& disk_;
  std::unique_ptr<File> base_;
  bool closed_{false};
};

class FaultyFileSystem::FaultyLock final : public DirectoryLock {
 public:
  FaultyLock(FaultyFileSystem& disk, std::unique_ptr<DirectoryLock> base) : disk_(disk), base_(std::move(base)) {
    disk_.change_open_handles(1);
  }
  ~FaultyLock() override { disk_.change_open_handles(-1); }

 private:
  FaultyFileSystem& disk_;
  std::unique_ptr<DirectoryLock> base_;
};

FaultyFileSystem::FaultyFileSystem(FileSystem& base) : base_(base) {}

FaultyFileSystem::~FaultyFileSystem() = default;

void FaultyFileSystem::fail(Fault fault) {
  MutexLock const lock(mutex_);
  faults_.push_back({std::move(fault)});
}

void FaultyFileSystem::set_free_bytes(std::int64_t bytes) {
  MutexLock const lock(mutex_);
  free_bytes_ = bytes;
}

void FaultyFileSystem::cut_files(std::string path_contains, std::int64_t size) {
  MutexLock const lock(mutex_);
  cuts_.push_back({std::move(path_contains), size});
}

void FaultyFileSystem::observe(Observer observer) {
  auto shared = std::make_shared<Observer const>(std::move(observer));
  MutexLock const lock(mutex_);
  observer_.swap(shared);
}

void FaultyFileSystem::heal() {
  std::shared_ptr<Observer const> observer;
  MutexLock const lock(mutex_);
  faults_.clear();
  cuts_.clear();
  free_bytes_.reset();
  observer_.swap(observer);
}

std::int64_t FaultyFileSystem::count(FileOperation operations) const {
  MutexLock const lock(mutex_);
  std::int64_t sum = 0;
  for (auto const& [operation, number] : counts_) {
    if (contains(operations, operation)) { sum += number; }
  }
  return sum;
}

std::int64_t FaultyFileSystem::faults() const {
  MutexLock const lock(mutex_);
  return struck_;
}

std::int64_t FaultyFileSystem::written_bytes() const {
  MutexLock const lock(mutex_);
  return written_;
}

std::int64_t FaultyFileSystem::open_handles() const {
  MutexLock const lock(mutex_);
  return open_handles_;
}

std::vector<std::string> FaultyFileSystem::left_behind() const {
  MutexLock const lock(mutex_);
  return {made_.begin(), made_.end()};
}

std::unique_ptr<File> FaultyFileSystem::open_for_reading(std::string const& path) {
  begin_or_throw(FileOperation::OpenForReading, "open", path);
  return std::make_unique<FaultyFile>(*this, base_.open_for_reading(path));
}

std::unique_ptr<File> FaultyFileSystem::open_for_writing(std::string const& path) {
  begin_or_throw(FileOperation::OpenForWriting, "open for writing", path);
  return std::make_unique<FaultyFile>(*this, base_.open_for_writing(path));
}

std::unique_ptr<File> FaultyFileSystem::create(std::string const& path, unsigned mode) {
  begin_or_throw(FileOperation::Create, "create", path);
  auto file = base_.create(path, mode);
  remember(path);
  return std::make_unique<FaultyFile>(*this, std::move(file));
}

void FaultyFileSystem::create_directory(std::string const& path, unsigned mode) {
  begin_or_throw(FileOperation::CreateDirectory, "create folder", path);
  base_.create_directory(path, mode);
  remember(path);
}

void FaultyFileSystem::create_directories(std::string const& path, unsigned mode) {
  begin_or_throw(FileOperation::CreateDirectories, "create folder", path);
  // Parents are made one by one so that each that is new is remembered.
  std::vector<std::string> missing;
  for (auto at = path; !at.empty() && !base_.status(at);
       at.resize(at.rfind('/') == std::string::npos ? 0 : at.rfind('/'))) {
    missing.push_back(at);
  }
  base_.create_directories(path, mode);
  for (auto const& folder : missing) { remember(folder); }
}

std::vector<DirectoryEntry> FaultyFileSystem::list(std::string const& path) {
  begin_or_throw(FileOperation::List, "list", path);
  return base_.list(path);
}

std::optional<FileStatus> FaultyFileSystem::status(std::string const& path) {
  begin_or_throw(FileOperation::Status, "look at", path);
  auto found = base_.status(path);
  auto const end = cut_of(path);
  if (found && end && found->kind == FileKind::Regular) { found->size = std::min(found->size, *end); }
  return found;
}

std::string FaultyFileSystem::canonical(std::string const& path) {
  begin_or_throw(FileOperation::Canonical, "resolve", path);
  return base_.canonical(path);
}

void FaultyFileSystem::rename(std::string const& from, std::string const& to, IfTargetExists if_target_exists) {
  begin_or_throw(FileOperation::Rename, "rename '" + from + "' to", to, from);
  base_.rename(from, to, if_target_exists);
  move_trees(from, to);
}

void FaultyFileSystem::exchange(std::string const& a, std::string const& b) {
  begin_or_throw(FileOperation::Exchange, "exchange '" + a + "' with", b, a);
  base_.exchange(a, b);
  exchange_trees(a, b);
}

void FaultyFileSystem::remove(std::string const& path) {
  begin_or_throw(FileOperation::Remove, "remove", path);
  base_.remove(path);
  forget(path);
}

void FaultyFileSystem::remove_all(std::string const& path) {
  begin_or_throw(FileOperation::RemoveAll, "remove", path);
  base_.remove_all(path);
  forget_tree(path);
}

std::unique_ptr<DirectoryLock> FaultyFileSystem::try_lock(std::string const& directory) {
  begin_or_throw(FileOperation::Lock, "lock", directory);
  auto lock = base_.try_lock(directory);
  return lock ? std::make_unique<FaultyLock>(*this, std::move(lock)) : nullptr;
}

std::optional<Fault> FaultyFileSystem::begin(FileOperation operation, std::string const& path,
                                             std::string const& other_path) {
  std::optional<Fault> fault;
  std::shared_ptr<Observer const> observer;
  {
    MutexLock const lock(mutex_);
    ++counts_[operation];
    fault = strike(operation, path, other_path);
    observer = observer_;
  }
  if (observer && *observer) { (*observer)(operation, path); }
  return fault;
}

void FaultyFileSystem::begin_or_throw(FileOperation operation, std::string const& doing, std::string const& path,
                                      std::string const& other_path) {
  if (auto const fault = begin(operation, path, other_path)) {
    throw FileSystemError(doing, path, fault->error_number);
  }
}

std::optional<Fault> FaultyFileSystem::strike(FileOperation operation, std::string const& path,
                                              std::string const& other_path) {
  std::optional<Fault> struck;
  for (auto& armed : faults_) {
    auto const& fault = armed.fault;
    bool const matches = contains(fault.operations, operation) &&
                         (has(path, fault.path_contains) || has(other_path, fault.path_contains));
    bool const is_due = matches && armed.seen++ >= fault.after && !armed.spent;
    if (!is_due || struck || (fault.effect == FaultEffect::Shorten && operation != FileOperation::Read)) { continue; }
    armed.spent = fault.repeat == FaultRepeat::Once;
    ++struck_;
    struck = fault;
  }
  return struck;
}

std::int64_t FaultyFileSystem::take_room(std::int64_t bytes) {
  MutexLock const lock(mutex_);
  auto const room = std::min(bytes, free_bytes_.value_or(bytes));
  if (free_bytes_) { *free_bytes_ -= room; }
  if (room < bytes) { ++struck_; }
  written_ += room;
  return room;
}

std::optional<std::int64_t> FaultyFileSystem::cut_of(std::string const& path) const {
  MutexLock const lock(mutex_);
  std::optional<std::int64_t> end;
  for (auto const& cut : cuts_) {
    if (has(path, cut.path_contains)) { end = std::min(end.value_or(cut.size), cut.size); }
  }
  return end;
}

void FaultyFileSystem::change_open_handles(std::int64_t by) {
  MutexLock const lock(mutex_);
  open_handles_ += by;
}

void FaultyFileSystem::remember(std::string const& path) {
  MutexLock const lock(mutex_);
  made_.insert(path);
}

void FaultyFileSystem::forget(std::string const& path) {
  MutexLock const lock(mutex_);
  made_.erase(path);
}

void FaultyFileSystem::forget_tree(std::string const& path) {
  MutexLock const lock(mutex_);
  take_tree(made_, path);
}

void FaultyFileSystem::move_trees(std::string const& from, std::string const& to) {
  MutexLock const lock(mutex_);
  take_tree(made_, to);  // what was replaced
  for (auto const& rest : take_tree(made_, from)) { made_.insert(to + rest); }
}

void FaultyFileSystem::exchange_trees(std::string const& a, std::string const& b) {
  MutexLock const lock(mutex_);
  auto const from_a = take_tree(made_, a);
  auto const from_b = take_tree(made_, b);
  for (auto const& rest : from_a) { made_.insert(b + rest); }
  for (auto const& rest : from_b) { made_.insert(a + rest); }
}

}  // namespace earmark::testing
