// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/table/partition.hpp"

namespace earmark {

template <class T>
void hash_values(std::span<T const> values, std::span<std::uint32_t> hashes) noexcept {
  assert(values.size() == hashes.size());
  for (std::size_t i = 0; i < values.size(); ++i) { hashes[i] = hash_value(values[i]); }
}

void combine_hashes(std::span<std::uint32_t> row_hashes, std::span<std::uint32_t const> column_hashes) noexcept {
  assert(row_hashes.size() == column_hashes.size());
  for (std::size_t i = 0; i < row_hashes.size(); ++i) {
    row_hashes[i] = combine_hashes(row_hashes[i], column_hashes[i]);
  }
}

template <class Id>
void assign_partitions(PartitionFunction const& function, std::span<std::uint32_t const> row_hashes,
                       std::span<Id> partitions) noexcept {
  assert(row_hashes.size() == partitions.size() && function.partitions() - 1 <= std::numeric_limits<Id>::max());
  auto const in = function;  // a copy that stores to `partitions` cannot change
  for (std::size_t i = 0; i < row_hashes.size(); ++i) { partitions[i] = static_cast<Id>(in(row_hashes[i])); }
}

#define EARMARK_INSTANTIATE_HASH_VALUES(T) \
  template void hash_values<T>(std::span<T const>, std::span<std::uint32_t>) noexcept;
EARMARK_INSTANTIATE_HASH_VALUES(bool)
EARMARK_INSTANTIATE_HASH_VALUES(std::int8_t)
EARMARK_INSTANTIATE_HASH_VALUES(std::int16_t)
EARMARK_INSTANTIATE_HASH_VALUES(std::int32_t)
EARMARK_INSTANTIATE_HASH_VALUES(std::int64_t)
EARMARK_INSTANTIATE_HASH_VALUES(std::uint8_t)
EARMARK_INSTANTIATE_HASH_VALUES(std::uint16_t)
EARMARK_INSTANTIATE_HASH_VALUES(std::uint32_t)
EARMARK_INSTANTIATE_HASH_VALUES(std::uint64_t)
EARMARK_INSTANTIATE_HASH_VALUES(float)
EARMARK_INSTANTIATE_HASH_VALUES(double)
EARMARK_INSTANTIATE_HASH_VALUES(Int128)
EARMARK_INSTANTIATE_HASH_VALUES(Int256)
EARMARK_INSTANTIATE_HASH_VALUES(std::string_view)
#undef EARMARK_INSTANTIATE_HASH_VALUES

template void assign_partitions<std::uint8_t>(PartitionFunction const&, std::span<std::uint32_t const>,
                                              std::span<std::uint8_t>) noexcept;
template void assign_partitions<std::uint16_t>(PartitionFunction const&, std::span<std::uint32_t const>,
                                               std::span<std::uint16_t>) noexcept;
template void assign_partitions<std::uint32_t>(PartitionFunction const&, std::span<std::uint32_t const>,
                                               std::span<std::uint32_t>) noexcept;

}  // namespace earmark
