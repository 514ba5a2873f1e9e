// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/errors.hpp"

namespace earmark {

SpillPlaceRefused::SpillPlaceRefused(std::string const& folder, std::string const& file_system)
    : std::runtime_error("will not spill to '" + folder + "': its file system (" + file_system +
                         ") keeps files in memory") {
  fields_.tier.assign("disk");
  fields_.setting.assign("the spill directory, or SpillToMemory::Allow");
}

SpilledDataCorrupted::SpilledDataCorrupted(std::string const& folder, std::int64_t first, std::int64_t bytes)
    : std::runtime_error("spilled data in '" + folder + "' changed on disk: checksum of " + std::to_string(bytes) +
                         " bytes at " + std::to_string(first)) {
  fields_.tier.assign("disk");
  fields_.requested = bytes;
}

}  // namespace earmark
