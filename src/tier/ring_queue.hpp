// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A queue whose transfers the kernel does, through an io_uring. Private to tier; ring_queue.cpp is the one door to
// liburing. Thread safety: as `SpillQueue`.
#pragma once

#include <cstddef>
#include <memory>

#include "earmark/core/spill_disk.hpp"

namespace earmark::detail {

// Whether the kernel lets this process use rings, and can read and write by them.
[[nodiscard]] bool rings_work() noexcept;
// Returns: nothing where the kernel gives no ring (any more).
[[nodiscard]] std::unique_ptr<SpillQueue> try_open_ring_queue(std::size_t depth);

}  // namespace earmark::detail
