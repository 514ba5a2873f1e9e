// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The door to CCCL's memory resource vocabulary: the one header that includes it, and the names of ours built on it.
// Thread safety: types only.
#pragma once

#include <concepts>
#include <cstddef>
#include <cuda/memory_resource>

#if !_CCCL_HAS_CTK()
#error "earmark needs the CUDA runtime headers (a toolkit, or their wheels): without them CCCL hides cuda::mr"
#endif
#if CCCL_VERSION < 3005000
#error "earmark needs CCCL 3.5 or newer"
#endif

#include "earmark/memory/memory_type.hpp"

namespace earmark {

using cuda::mr::device_accessible;
using cuda::mr::host_accessible;

namespace detail {

template <class T, class... List>
inline constexpr bool contains_v = (std::same_as<T, List> || ...);

// Q... names only properties that P... has, and at least one.
template <class... Q>
struct SubsetOf {
  template <class... P>
  static constexpr bool value = sizeof...(Q) > 0 && (contains_v<Q, P...> && ...);
};

template <class... P>
inline constexpr MemoryType memory_type_of = !contains_v<device_accessible, P...> ? MemoryType::Host
                                             : contains_v<host_accessible, P...>  ? MemoryType::Pinned
                                                                                  : MemoryType::Device;

// The stream that stands for "none" where a synchronous call must name one.
inline cuda::stream_ref no_stream() noexcept { return cuda::stream_ref{cudaStream_t{}}; }

}  // namespace detail
}  // namespace earmark
