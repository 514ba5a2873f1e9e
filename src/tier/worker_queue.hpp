// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A queue whose transfers are blocking calls on an executor's threads, and on the thread that waits for them. Private
// to tier. Thread safety: as `SpillQueue`. Ownership: borrows the executor; tasks that come late find nothing to do.
#pragma once

#include <memory>

#include "earmark/core/executor.hpp"
#include "earmark/core/spill_disk.hpp"

namespace earmark::detail {

[[nodiscard]] std::unique_ptr<SpillQueue> open_worker_queue(Executor& executor, std::size_t depth);

}  // namespace earmark::detail
