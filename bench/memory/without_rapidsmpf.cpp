// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/rapidsmpf_peer.hpp"

namespace earmark::bench {

void enter_rapidsmpf_pairs(measuring::Race&) {}
void enter_rapidsmpf_reserves(measuring::Race&) {}

}  // namespace earmark::bench
