// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "dictionary.hpp"

#include <parquet/statistics.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "scatter.hpp"

namespace earmark::detail {
namespace {

// Integers beyond this many values are as small as deltas; strings pay longer.
constexpr std::size_t max_numbers = 1U << 14;
constexpr std::size_t max_strings = 1U << 16;
constexpr std::size_t max_bytes = 2U << 20;     // of all values: bounds what a dictionary holds outside of the budget
constexpr std::size_t max_numbered = 1U << 20;  // entries of all row groups' dictionaries, 2 bytes each: the same

// A set of strings with insertion numbers; open addressing.
class StringSet {
 public:
  explicit StringSet(std::size_t max_values) : max_values_(max_values), table_(4096, empty) {}

  // Returns: the number of `value`, which is inserted if it is new; nothing when the set is full.
  std::optional<std::uint16_t> insert(std::string_view value) {
    for (std::size_t at = home(value);; at = (at + 1) & (table_.size() - 1)) {
      if (table_[at] == empty) {
        if (values_.size() == max_values_ || bytes_ + value.size() > max_bytes) { return std::nullopt; }
        auto const number = static_cast<std::uint16_t>(values_.size());
        table_[at] = number;
        values_.emplace_back(value);
        bytes_ += value.size();
        if (values_.size() > table_.size() / 2) { grow(); }
        return number;
      }
      if (values_[table_[at]] == value) { return static_cast<std::uint16_t>(table_[at]); }
    }
  }
  [[nodiscard]] std::vector<std::string>& values() noexcept { return values_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::uint32_t empty = 0xffffffff;

  [[nodiscard]] std::size_t home(std::string_view value) const noexcept {
    return std::hash<std::string_view>{}(value) & (table_.size() - 1);
  }
  void grow() {
    table_.assign(table_.size() * 4, empty);
    for (std::uint32_t i = 0; i < values_.size(); ++i) {
      std::size_t at = home(values_[i]);
      while (table_[at] != empty) { at = (at + 1) & (table_.size() - 1); }
      table_[at] = i;
    }
  }

  std::size_t max_values_;
  std::vector<std::uint32_t> table_;  // numbers; a power of two of them, at most half in use
  std::vector<std::string> values_;
  std::size_t bytes_{0};
};

// A dictionary goes into every file: it pays while it is smaller than what it saves.
bool pays(std::size_t entries, std::size_t dictionary_bytes, std::size_t values, std::size_t partitions) {
  if (values == 0) { return true; }
  double const average = static_cast<double>(dictionary_bytes) / static_cast<double>(std::max<std::size_t>(values, 1));
  double const plain = static_cast<double>(entries) * average;
  double const index_bits = std::max(1.0, std::ceil(std::log2(static_cast<double>(values))));
  double const encoded = static_cast<double>(partitions) * static_cast<double>(dictionary_bytes) +
                         static_cast<double>(entries) * index_bits / 8;
  return encoded < plain;
}

// Changes a value from the input's physical type to the output's. Returns: false for a decimal that does not fit.
bool convert(LeafColumn const& leaf, std::string& value) {
  auto const as_integer = [&]<class T>(T number) {
    if (!read_decimal(reinterpret_cast<std::uint8_t const*>(value.data()), value.size(), number)) { return false; }
    value.assign(reinterpret_cast<char const*>(&number), sizeof number);
    return true;
  };
  if (leaf.form == ValueForm::Decimal4) { return as_integer(std::int32_t{}); }
  if (leaf.form == ValueForm::Decimal8) { return as_integer(std::int64_t{}); }
  return true;
}

template <class Type>
auto typed_value(std::string const& value) {
  using T = typename Type::c_type;
  if constexpr (std::is_same_v<T, ::parquet::ByteArray>) {
    return ::parquet::ByteArray(std::string_view(value));
  } else if constexpr (std::is_same_v<T, ::parquet::FixedLenByteArray>) {
    return ::parquet::FixedLenByteArray(reinterpret_cast<std::uint8_t const*>(value.data()));
  } else {
    T number;
    std::memcpy(&number, value.data(), sizeof number);
    return number;
  }
}

template <class Type>
bool is_nan(::parquet::ColumnDescriptor const& descriptor, std::string const& value) {
  if constexpr (std::is_same_v<Type, ::parquet::FloatType> || std::is_same_v<Type, ::parquet::DoubleType>) {
    return std::isnan(typed_value<Type>(value));
  } else {
    if (descriptor.logical_type() && descriptor.logical_type()->is_float16() && value.size() == 2) {
      std::uint16_t half;
      std::memcpy(&half, value.data(), sizeof half);
      return (half & 0x7fffU) > 0x7c00U;
    }
    return false;
  }
}

// Sorts `order` (indices into `values`) as the column sorts. Returns: how many have a rank.
template <class Type>
std::size_t sort_typed(::parquet::ColumnDescriptor const& descriptor, std::vector<std::string> const& values,
                       std::vector<std::uint16_t>& order) {
  if (descriptor.sort_order() == ::parquet::SortOrder::UNKNOWN) { return 0; }
  auto const comparator = ::parquet::MakeComparator<Type>(&descriptor);
  auto const nans = std::stable_partition(order.begin(), order.end(),
                                          [&](std::uint16_t i) { return !is_nan<Type>(descriptor, values[i]); });
  std::sort(order.begin(), nans, [&](std::uint16_t a, std::uint16_t b) {
    return comparator->Compare(typed_value<Type>(values[a]), typed_value<Type>(values[b]));
  });
  return static_cast<std::size_t>(nans - order.begin());
}

std::size_t sort_values(::parquet::ColumnDescriptor const& descriptor, std::vector<std::string> const& values,
                        std::vector<std::uint16_t>& order) {
  switch (descriptor.physical_type()) {
    case ::parquet::Type::INT32: return sort_typed<::parquet::Int32Type>(descriptor, values, order);
    case ::parquet::Type::INT64: return sort_typed<::parquet::Int64Type>(descriptor, values, order);
    case ::parquet::Type::FLOAT: return sort_typed<::parquet::FloatType>(descriptor, values, order);
    case ::parquet::Type::DOUBLE: return sort_typed<::parquet::DoubleType>(descriptor, values, order);
    case ::parquet::Type::BYTE_ARRAY: return sort_typed<::parquet::ByteArrayType>(descriptor, values, order);
    case ::parquet::Type::FIXED_LEN_BYTE_ARRAY: return sort_typed<::parquet::FLBAType>(descriptor, values, order);
    default: return 0;
  }
}

// The numbers that each row group's dictionary entries have in the union, and the union.
struct Union {
  StringSet set;
  std::vector<std::vector<std::uint16_t>> numbers;
};

std::optional<Union> read_union(ParquetInput const& input, LeafColumn const& leaf, std::span<WindowGroup const> window,
                                std::span<DictionaryUse const> uses, Executor& executor, std::size_t workers) {
  bool const is_text = leaf.input_type == ::parquet::Type::BYTE_ARRAY || leaf.form == ValueForm::FixedBytes;
  std::size_t const max_values = is_text ? max_strings : max_numbers;
  Union all{StringSet(max_values), {}};
  all.numbers.resize(window.size());
  // Each worker makes its own union of the row groups that it reads; then the unions are merged.
  std::vector<StringSet> sets(workers, StringSet(max_values));
  std::vector<std::vector<std::size_t>> read_by(workers);
  std::atomic<bool> too_many{false};
  std::atomic<std::size_t> numbered{0};
  parallel_for(executor, workers, window.size(), [&](std::size_t worker, std::size_t i) {
    if (too_many.load(std::memory_order_relaxed) || window[i].group.rows == 0) { return; }
    auto const dictionary =
        input.read_dictionary(window[i].group, leaf.index, uses[i], static_cast<std::int64_t>(max_values),
                              static_cast<std::int64_t>(max_bytes));
    if (!dictionary || numbered.fetch_add(dictionary->values.size()) + dictionary->values.size() > max_numbered) {
      too_many = true;
      return;
    }
    read_by[worker].push_back(i);
    all.numbers[i].reserve(dictionary->values.size());
    for (std::string_view const value : dictionary->values) {
      auto const number = sets[worker].insert(value);
      if (!number) {
        too_many = true;
        return;
      }
      all.numbers[i].push_back(*number);
    }
  });
  if (too_many) { return std::nullopt; }
  for (std::size_t worker = 0; worker < workers; ++worker) {
    std::vector<std::uint16_t> merged;
    for (std::string const& value : sets[worker].values()) {
      auto const number = all.set.insert(value);
      if (!number) { return std::nullopt; }
      merged.push_back(*number);
    }
    for (std::size_t const i : read_by[worker]) {
      for (std::uint16_t& number : all.numbers[i]) { number = merged[number]; }
    }
  }
  return all;
}

// Reads values and looks each up: for chunks whose footer does not let Arrow give out indices.
class LookingUpReader final : public ChunkReader {
 public:
  LookingUpReader(std::unique_ptr<ChunkReader> inner,
                  std::unordered_map<std::string_view, std::uint16_t> const& numbers, LeafColumn const& leaf,
                  ::arrow::MemoryPool* pool, std::function<void()> fail)
      : inner_(std::move(inner)),
        numbers_(numbers),
        leaf_(leaf),
        values_(pool),
        fail_(std::move(fail)),
        recent_(recent_size) {}

  Count read(std::int64_t max_entries, std::int16_t* definition, std::int16_t* repetition, void* indices) override {
    values_.make_room(static_cast<std::size_t>(max_entries) * leaf_.read_width());
    Count const count = inner_->read(max_entries, definition, repetition, values_.data());
    auto* const out = static_cast<std::int32_t*>(indices);
    for (std::int64_t i = 0; i < count.values; ++i) { out[i] = index_of(view(static_cast<std::size_t>(i))); }
    return count;
  }

 private:
  static constexpr std::size_t recent_size = 4096;
  struct Recent {
    char const* data{nullptr};
    std::size_t size{0};
    std::int32_t index{0};
  };

  [[nodiscard]] std::string_view view(std::size_t i) const noexcept {
    if (leaf_.input_type == ::parquet::Type::BYTE_ARRAY) {
      return std::string_view(reinterpret_cast<::parquet::ByteArray const*>(values_.data())[i]);
    }
    if (leaf_.input_type == ::parquet::Type::FIXED_LEN_BYTE_ARRAY) {
      auto const& value = reinterpret_cast<::parquet::FixedLenByteArray const*>(values_.data())[i];
      return {reinterpret_cast<char const*>(value.ptr), static_cast<std::size_t>(leaf_.type_length)};
    }
    return {reinterpret_cast<char const*>(values_.data()) + i * leaf_.read_width(), leaf_.read_width()};
  }

  std::int32_t index_of(std::string_view value) {
    bool const has_pointer =
        leaf_.input_type == ::parquet::Type::BYTE_ARRAY || leaf_.input_type == ::parquet::Type::FIXED_LEN_BYTE_ARRAY;
    if (!has_pointer) { return look_up(value); }
    // Decoded byte arrays point into the chunk's dictionary: the same pointer is the same value.
    auto const address = reinterpret_cast<std::uintptr_t>(value.data());
    Recent& recent = recent_[(address ^ (address >> 12)) % recent_size];
    if (recent.data != value.data() || recent.size != value.size()) {
      recent = {value.data(), value.size(), look_up(value)};
    }
    return recent.index;
  }
  std::int32_t look_up(std::string_view value) const {
    auto const found = numbers_.find(value);
    if (found == numbers_.end()) { fail_(); }
    return found->second;
  }

  std::unique_ptr<ChunkReader> inner_;
  std::unordered_map<std::string_view, std::uint16_t> const& numbers_;
  LeafColumn const& leaf_;
  ReservedArray<std::byte> values_;
  std::function<void()> fail_;
  std::vector<Recent> recent_;
};

}  // namespace

std::optional<Dictionary> Dictionary::unify(ParquetInput const& input, LeafColumn const& leaf,
                                            ::parquet::ColumnDescriptor const& output,
                                            std::span<WindowGroup const> window, std::size_t partitions,
                                            Executor& executor, std::size_t workers) {
  Dictionary dictionary;
  std::int64_t entries = 0;
  bool looks_up = false;
  for (WindowGroup const& group : window) {
    DictionaryUse const use =
        group.group.rows == 0 ? DictionaryUse::AllPages : input.dictionary_use(group.group, leaf.index);
    if (use == DictionaryUse::None) { return std::nullopt; }
    dictionary.uses_.push_back(use);
    looks_up |= use == DictionaryUse::Unknown;
    if (group.group.rows > 0) { entries += input.chunk(group.group, leaf.index)->num_values(); }
  }
  if (entries == 0) { return std::nullopt; }
  auto all = read_union(input, leaf, window, dictionary.uses_, executor, workers);
  if (!all) { return std::nullopt; }
  std::vector<std::string>& values = all->set.values();
  if (!pays(static_cast<std::size_t>(entries), all->set.bytes() + 4 * values.size(), values.size(), partitions)) {
    return std::nullopt;
  }
  if (looks_up) { dictionary.input_values_ = values; }
  for (std::string& value : values) {
    if (!convert(leaf, value)) { return std::nullopt; }  // reported when the values themselves are read
  }
  std::vector<std::uint16_t> order(values.size());
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  dictionary.ranked_ = sort_values(output, values, order);
  std::vector<std::uint16_t> rank(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = static_cast<std::uint16_t>(i);
    std::string const& value = values[order[i]];
    if (leaf.output_type == ::parquet::Type::BYTE_ARRAY) {
      auto const length = static_cast<std::uint32_t>(value.size());
      dictionary.page_.append(reinterpret_cast<char const*>(&length), sizeof length);
    }
    dictionary.page_ += value;
  }
  for (std::uint16_t const i : order) { dictionary.values_.push_back(std::move(values[i])); }
  for (std::size_t i = 0; i < dictionary.input_values_.size(); ++i) {
    dictionary.numbers_.emplace(dictionary.input_values_[i], rank[i]);
  }
  dictionary.remap_ = std::move(all->numbers);
  for (std::size_t group = 0; group < dictionary.remap_.size(); ++group) {
    auto& remap = dictionary.remap_[group];
    if (dictionary.uses_[group] == DictionaryUse::Unknown) {  // looked up: already an output index
      remap.resize(rank.size());
      std::iota(remap.begin(), remap.end(), std::uint16_t{0});
    } else {
      for (std::uint16_t& number : remap) { number = rank[number]; }
    }
  }
  return dictionary;
}

std::unique_ptr<ChunkReader> Dictionary::open_chunk(ParquetInput const& input, LeafColumn const& leaf,
                                                    std::span<WindowGroup const> window, std::size_t group_in_window,
                                                    std::int64_t buffer_bytes, ::arrow::MemoryPool* pool) const {
  RowGroupRef const& group = window[group_in_window].group;
  if (uses_[group_in_window] == DictionaryUse::AllPages) {
    return input.open_chunk(group, leaf.index, ReadAs::DictionaryIndices, buffer_bytes);
  }
  return std::make_unique<LookingUpReader>(
      input.open_chunk(group, leaf.index, ReadAs::Values, buffer_bytes), numbers_, leaf, pool,
      [&input, group, column = leaf.index] { input.fail(group, column, "it changed while it was read"); });
}

}  // namespace earmark::detail
