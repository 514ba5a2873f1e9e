// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels that tests run on a device, behind plain functions, so that the tests need no CUDA compiler. Each only
// enqueues work, and throws std::runtime_error where even that fails.
#pragma once

#include <driver_types.h>

#include <cstddef>

namespace earmark::testing {

// Writes `value` to each of `count` integers.
void enqueue_fill(int* values, std::size_t count, int value, cudaStream_t stream);
// Adds to `*wrong` how many of `count` integers are not `value`. `wrong` is anything that the device can write.
void enqueue_compare(int const* values, std::size_t count, int value, unsigned long long* wrong, cudaStream_t stream);
// Keeps the stream busy until `*open` is not 0. Gives up after `most_cycles` of the device's clock and sets `*expired`.
// Both are pinned host memory.
void enqueue_wait(int const volatile* open, int volatile* expired, long long most_cycles, cudaStream_t stream);
// Loads them all now: loading one at its first launch may wait for others that run.
void load_kernels();

}  // namespace earmark::testing
