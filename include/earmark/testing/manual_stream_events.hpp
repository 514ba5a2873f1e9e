// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams that run nothing by themselves: work on them is done when the test says so, and it is known at any time which
// stream is ordered behind what. So a test can prove that memory is never handed over without a wait:
//
//   testing::ManualStreamEvents events;
//   auto const free = events.enqueue(a);                 // a's free of a piece is behind all that `a` did with it
//   carved.deallocate(piece, a);
//   void* again = carved.try_allocate(256, 256, b);
//   EXPECT_TRUE(events.is_behind(b, free));              // whatever `b` does now comes after
//
// Streams are told apart by their handles, which may be made up: `ManualStreamEvents::stream(1)`. The per-thread
// default stream is another one in each thread.
//
// Thread safety: any thread. Ownership: marks live in the object.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/stream_events.hpp"

namespace earmark::testing {

class ManualStreamEvents final : public StreamEvents {
 public:
  // A stream as its work sees it: a handle, and the thread for the per-thread default stream.
  using StreamName = std::pair<cudaStream_t, std::uint64_t>;
  // A piece of work: the n-th of its stream.
  struct Work {
    StreamName stream{};
    std::int64_t number{0};
  };

  // Returns: a stream with a made-up handle, the same for the same number.
  [[nodiscard]] static cuda::stream_ref stream(std::uintptr_t number) noexcept {
    return cuda::stream_ref{reinterpret_cast<cudaStream_t>(0x10000 + number)};
  }

  // -- what the test does --------------------------------------------------------------------------------------------

  // Gives work to a stream. Returns: which.
  Work enqueue(cuda::stream_ref stream);
  // Finishes all work that the stream has been given, and what it waits for.
  void complete(cuda::stream_ref stream);
  // From here on, recording on the stream or giving it work is a misuse.
  void destroy(cuda::stream_ref stream);
  // The next `count` records, or waits, throw std::runtime_error.
  void fail_records(int count);
  void fail_waits(int count);

  // -- what the test looks at ----------------------------------------------------------------------------------------

  // Whether what `stream` is given from now on runs after that work.
  [[nodiscard]] bool is_behind(cuda::stream_ref stream, Work const& work) const;
  [[nodiscard]] bool is_done(Work const& work) const;
  [[nodiscard]] std::int64_t records() const;  // marks recorded, and moved
  [[nodiscard]] std::int64_t waits() const;
  [[nodiscard]] std::int64_t synchronizations() const;
  [[nodiscard]] std::int64_t marks() const;  // not released yet
  // Uses of destroyed streams and of marks that do not exist, and marks moved to another stream.
  [[nodiscard]] std::int64_t misuses() const;

  // -- StreamEvents --------------------------------------------------------------------------------------------------

  [[nodiscard]] EventHandle record(cuda::stream_ref stream) override;
  void record_again(EventHandle mark, cuda::stream_ref stream) noexcept override;
  void wait(cuda::stream_ref stream, EventHandle mark) override;
  [[nodiscard]] bool passed(EventHandle mark) override;
  void release(EventHandle mark) noexcept override;
  void synchronize(cuda::stream_ref stream) override;
  void synchronize(EventHandle mark) override;
  void synchronize_all() override;

 private:
  // By stream: up to which of its work.
  using Progress = std::map<StreamName, std::int64_t>;
  struct Stream {
    std::int64_t given{0};
    Progress behind;  // what its later work is behind
    bool destroyed{false};
  };
  struct Mark {
    StreamName stream;
    Progress behind;
  };

  static StreamName name_of(cuda::stream_ref stream);
  static void raise(Progress& progress, Progress const& to);
  static bool covers(Progress const& progress, Work const& work);
  [[nodiscard]] Stream& use(StreamName const& stream) EARMARK_REQUIRES(mutex_);
  [[nodiscard]] Mark* find(EventHandle mark) EARMARK_REQUIRES(mutex_);
  [[nodiscard]] Progress progress_of(StreamName const& stream) EARMARK_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<StreamName, Stream> streams_ EARMARK_GUARDED_BY(mutex_);
  std::map<EventHandle, Mark> marks_ EARMARK_GUARDED_BY(mutex_);
  Progress done_ EARMARK_GUARDED_BY(mutex_);
  std::uintptr_t last_mark_ EARMARK_GUARDED_BY(mutex_){0};
  int records_to_fail_ EARMARK_GUARDED_BY(mutex_){0};
  int waits_to_fail_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t records_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t waits_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t synchronizations_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t misuses_ EARMARK_GUARDED_BY(mutex_){0};
};

}  // namespace earmark::testing
