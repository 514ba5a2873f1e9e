// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// RapidsMPF's BufferResource as a contestant, in programs that are built with it (`./dev bench memory --peers`).
#pragma once

#include "measuring/race.hpp"

namespace earmark::bench {

// Names of its contestants.
inline constexpr char const* rapidsmpf_device_mr = "RapidsMPF device_mr";
inline constexpr char const* rapidsmpf_reserve = "RapidsMPF reserve";
// The same with the text of an error that it formats at every release, and does not use, left empty.
inline constexpr char const* rapidsmpf_reserve_stubbed = "RapidsMPF reserve, no text";

// Enters pairs of allocate and deallocate of 1 KiB through its resource; nothing in a program built without it.
void enter_rapidsmpf_pairs(measuring::Race& race);
// Enters reserve(1 MiB) + drop, twice; nothing in a program built without it.
void enter_rapidsmpf_reserves(measuring::Race& race);

}  // namespace earmark::bench
