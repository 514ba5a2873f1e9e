// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/manual_stream_events.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace earmark::testing {

namespace {

std::uint64_t this_thread_number() {
  static std::atomic<std::uint64_t> last{0};
  thread_local std::uint64_t const number = ++last;
  return number;
}

}  // namespace

ManualStreamEvents::Work ManualStreamEvents::enqueue(cuda::stream_ref stream) {
  MutexLock const lock(mutex_);
  StreamName const name = name_of(stream);
  return {name, ++use(name).given};
}

void ManualStreamEvents::complete(cuda::stream_ref stream) {
  MutexLock const lock(mutex_);
  raise(done_, progress_of(name_of(stream)));
}

void ManualStreamEvents::destroy(cuda::stream_ref stream) {
  MutexLock const lock(mutex_);
  streams_[name_of(stream)].destroyed = true;
}

void ManualStreamEvents::fail_records(int count) {
  MutexLock const lock(mutex_);
  records_to_fail_ = count;
}

void ManualStreamEvents::fail_waits(int count) {
  MutexLock const lock(mutex_);
  waits_to_fail_ = count;
}

bool ManualStreamEvents::is_behind(cuda::stream_ref stream, Work const& work) const {
  MutexLock const lock(mutex_);
  StreamName const name = name_of(stream);
  auto const found = streams_.find(name);
  return name == work.stream || covers(done_, work) || (found != streams_.end() && covers(found->second.behind, work));
}

bool ManualStreamEvents::is_done(Work const& work) const {
  MutexLock const lock(mutex_);
  return covers(done_, work);
}

std::int64_t ManualStreamEvents::records() const {
  MutexLock const lock(mutex_);
  return records_;
}
std::int64_t ManualStreamEvents::waits() const {
  MutexLock const lock(mutex_);
  return waits_;
}
std::int64_t ManualStreamEvents::synchronizations() const {
  MutexLock const lock(mutex_);
  return synchronizations_;
}
std::int64_t ManualStreamEvents::marks() const {
  MutexLock const lock(mutex_);
  return static_cast<std::int64_t>(marks_.size());
}
std::int64_t ManualStreamEvents::misuses() const {
  MutexLock const lock(mutex_);
  return misuses_;
}

EventHandle ManualStreamEvents::record(cuda::stream_ref stream) {
  MutexLock const lock(mutex_);
  if (records_to_fail_ > 0) {
    --records_to_fail_;
    throw std::runtime_error("recording a mark was made to fail");
  }
  StreamName const name = name_of(stream);
  EventHandle const handle{++last_mark_};
  (void)use(name);
  marks_.emplace(handle, Mark{name, progress_of(name)});
  ++records_;
  return handle;
}

void ManualStreamEvents::record_again(EventHandle mark, cuda::stream_ref stream) noexcept {
  MutexLock const lock(mutex_);
  Mark* const found = find(mark);
  StreamName const name = name_of(stream);
  (void)use(name);
  ++records_;
  if (found == nullptr) { return; }
  if (found->stream != name) { ++misuses_; }
  found->behind = progress_of(name);
}

void ManualStreamEvents::wait(cuda::stream_ref stream, EventHandle mark) {
  MutexLock const lock(mutex_);
  if (waits_to_fail_ > 0) {
    --waits_to_fail_;
    throw std::runtime_error("waiting for a mark was made to fail");
  }
  ++waits_;
  if (Mark const* const found = find(mark)) { raise(use(name_of(stream)).behind, found->behind); }
}

bool ManualStreamEvents::passed(EventHandle mark) {
  MutexLock const lock(mutex_);
  Mark const* const found = find(mark);
  if (found == nullptr) { return true; }
  for (auto const& [stream, number] : found->behind) {
    if (!covers(done_, {stream, number})) { return false; }
  }
  return true;
}

void ManualStreamEvents::release(EventHandle mark) noexcept {
  MutexLock const lock(mutex_);
  if (find(mark) != nullptr) { marks_.erase(mark); }
}

void ManualStreamEvents::synchronize(cuda::stream_ref stream) {
  MutexLock const lock(mutex_);
  ++synchronizations_;
  (void)use(name_of(stream));
  raise(done_, progress_of(name_of(stream)));
}

void ManualStreamEvents::synchronize(EventHandle mark) {
  MutexLock const lock(mutex_);
  ++synchronizations_;
  if (Mark const* const found = find(mark)) { raise(done_, found->behind); }
}

void ManualStreamEvents::synchronize_all() {
  MutexLock const lock(mutex_);
  ++synchronizations_;
  for (auto const& [name, stream] : streams_) { raise(done_, {{name, stream.given}}); }
}

ManualStreamEvents::StreamName ManualStreamEvents::name_of(cuda::stream_ref stream) {
  return {stream.get(), stream.get() == cudaStreamPerThread ? this_thread_number() : 0};
}

void ManualStreamEvents::raise(Progress& progress, Progress const& to) {
  for (auto const& [stream, number] : to) {
    std::int64_t& reached = progress[stream];
    reached = std::max(reached, number);
  }
}

bool ManualStreamEvents::covers(Progress const& progress, Work const& work) {
  auto const found = progress.find(work.stream);
  return work.number == 0 || (found != progress.end() && found->second >= work.number);
}

ManualStreamEvents::Stream& ManualStreamEvents::use(StreamName const& stream) {
  Stream& used = streams_[stream];
  if (used.destroyed) { ++misuses_; }
  return used;
}

ManualStreamEvents::Mark* ManualStreamEvents::find(EventHandle mark) {
  auto const found = marks_.find(mark);
  if (found != marks_.end()) { return &found->second; }
  ++misuses_;
  return nullptr;
}

ManualStreamEvents::Progress ManualStreamEvents::progress_of(StreamName const& stream) {
  Stream const& of = streams_[stream];
  Progress progress = of.behind;
  progress[stream] = of.given;
  return progress;
}

}  // namespace earmark::testing
