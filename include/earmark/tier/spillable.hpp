// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What a `SpillManager` may ask to let go of memory: derive from it to make objects of your own spillable. For bytes in
// one piece there is `SpillableBuffer`.
// Thread safety: every function may be called from any thread, at any time, and under none of the manager's locks.
#pragma once

#include <cstdint>
#include <optional>

#include "earmark/core/clock.hpp"
#include "earmark/memory/memory_type.hpp"

namespace earmark {

class Spillable {
 public:
  Spillable() = default;
  Spillable(Spillable const&) = delete;
  Spillable& operator=(Spillable const&) = delete;
  virtual ~Spillable() = default;

  // Returns: what `spill(tier)` would free there now; 0 while it is used, or has nothing there.
  [[nodiscard]] virtual std::int64_t spillable_bytes(MemoryType tier) const noexcept = 0;
  // Lets go of what it has in `tier`, keeping the contents somewhere below. May allocate and free anywhere but in
  // `tier`, and must not wait for memory. What it frees may be granted at once, on this thread, to a callback that uses
  // this very object: free last, and under no lock of the object. Returns: bytes that came back to the tier; 0 if it is
  // in use after all. Throws: what prevented it; then nothing changed. Blocks: until the bytes are free.
  virtual std::int64_t spill(MemoryType tier) = 0;
  // Gives up a copy below that is kept only to make the next spill cheap. Returns: bytes that came back there.
  virtual std::int64_t drop_copy() noexcept { return 0; }
  // When it last came back, if it ever did.
  [[nodiscard]] virtual std::optional<Clock::time_point> restored_at() const noexcept { return std::nullopt; }
};

}  // namespace earmark
