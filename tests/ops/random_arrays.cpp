// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "random_arrays.hpp"

#include <arrow/api.h>
#include <arrow/util/decimal.h>
#include <arrow/visit_type_inline.h>

#include <array>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace earmark {
namespace {

void check(arrow::Status const& status) {
  if (!status.ok()) { throw std::runtime_error(status.ToString()); }
}

template <class T>
T take(arrow::Result<T> result) {
  check(result.status());
  return result.MoveValueUnsafe();
}

}  // namespace

struct RandomArrays::Visitor {
  RandomArrays& random;
  arrow::Field const& field;
  std::int64_t length;
  Variety variety;
  std::shared_ptr<arrow::Array> result{};

  bool is_null() { return field.nullable() && random.below(5) == 0; }
  std::uint64_t bits() {
    return variety == Variety::FewValues ? random.below(12) * 0x1357'9bdf'0246'8aceU : random.random_();
  }

  template <class Type, class Next>
  arrow::Status fill(Type const& type, Next next) {
    std::unique_ptr<arrow::ArrayBuilder> any;
    ARROW_RETURN_NOT_OK(arrow::MakeBuilder(arrow::default_memory_pool(), type.GetSharedPtr(), &any));
    auto& builder = static_cast<typename arrow::TypeTraits<Type>::BuilderType&>(*any);
    for (std::int64_t i = 0; i < length; ++i) {
      if (is_null()) {
        ARROW_RETURN_NOT_OK(builder.AppendNull());
      } else {
        ARROW_RETURN_NOT_OK(builder.Append(next()));
      }
    }
    return builder.Finish(&result);
  }

  arrow::Status Visit(arrow::NullType const&) {
    result = std::make_shared<arrow::NullArray>(length);
    return arrow::Status::OK();
  }
  arrow::Status Visit(arrow::BooleanType const& type) {
    return fill(type, [&] { return (bits() & 1) != 0; });
  }
  template <class Type>
    requires(arrow::is_integer_type<Type>::value)
  arrow::Status Visit(Type const& type) {
    return fill(type, [&] { return static_cast<typename Type::c_type>(bits()); });
  }
  arrow::Status Visit(arrow::HalfFloatType const& type) {
    return fill(type, [&] {
      constexpr std::array<std::uint16_t, 6> special{0x0000, 0x8000, 0x7e00, 0x7c00, 0xfc00, 0x0001};
      auto const bits = this->bits();
      return bits % 8 == 0 ? special[random.below(special.size())] : static_cast<std::uint16_t>(bits);
    });
  }
  template <class Type>
    requires(std::is_same_v<Type, arrow::FloatType> || std::is_same_v<Type, arrow::DoubleType>)
  arrow::Status Visit(Type const& type) {
    using T = typename Type::c_type;
    return fill(type, [&] {
      using Limits = std::numeric_limits<T>;
      std::array const special{
          T{0}, -T{0}, Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), -Limits::quiet_NaN()};
      auto const bits = this->bits();
      return bits % 8 == 0 ? special[random.below(special.size())]
                           : static_cast<T>(static_cast<std::int64_t>(bits)) / T{3};
    });
  }
  template <class Type>
    requires(arrow::is_base_binary_type<Type>::value || arrow::is_binary_view_like_type<Type>::value)
  arrow::Status Visit(Type const& type) {
    return fill(type, [&] {
      auto const bits = this->bits();
      if (bits % 16 == 0) { return std::string(); }
      std::string text = "v" + std::to_string(bits % 100'003);
      if (bits % 16 == 1) { text.append(bits % 97, 'x'); }
      return text;
    });
  }
  arrow::Status Visit(arrow::FixedSizeBinaryType const& type) {
    return fill(type, [&] {
      auto const bits = this->bits();
      std::string text(static_cast<std::size_t>(type.byte_width()), static_cast<char>(bits >> 32));
      std::memcpy(text.data(), &bits, std::min(text.size(), sizeof bits));
      return text;
    });
  }
  template <class Type>
    requires(arrow::is_decimal_type<Type>::value)
  arrow::Status Visit(Type const& type) {
    using Value = typename arrow::TypeTraits<Type>::CType;
    return fill(type, [&] {
      auto const digits = 1 + bits() % static_cast<std::uint64_t>(type.precision());
      Value value(0);
      auto const seed = bits();
      for (std::uint64_t i = 0; i < digits; ++i) {
        value = value * Value(10) + Value(static_cast<std::int64_t>((seed >> (i % 59)) % 10));
      }
      return (seed & 1) != 0 ? Value(-value) : value;
    });
  }
  arrow::Status Visit(arrow::Date64Type const& type) {
    return fill(type, [&] { return static_cast<std::int64_t>(bits() % 40'000) * 86'400'000 - 86'400'000LL * 20'000; });
  }
  arrow::Status Visit(arrow::TimestampType const& type) {
    // Within what nanoseconds and INT96 can say.
    constexpr std::array<std::int64_t, 4> per_second{1, 1'000, 1'000'000, 1'000'000'000};
    auto const most = 9'000'000'000 * per_second[static_cast<std::size_t>(type.unit())];
    return fill(type,
                [&, most] { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(most)) - most / 2; });
  }
  arrow::Status Visit(arrow::Time32Type const& type) {
    return fill(type, [&] { return static_cast<std::int32_t>(bits() % 86'400); });
  }
  template <class Type>
    requires(std::is_same_v<Type, arrow::Date32Type> || std::is_same_v<Type, arrow::Time64Type> ||
             std::is_same_v<Type, arrow::DurationType>)
  arrow::Status Visit(Type const& type) {
    return fill(type, [&] { return static_cast<typename Type::c_type>(bits() % 86'400'000'000); });
  }

  std::shared_ptr<arrow::Buffer> validity() {
    if (!field.nullable()) { return nullptr; }
    arrow::TypedBufferBuilder<bool> builder;
    for (std::int64_t i = 0; i < length; ++i) { check(builder.Append(!is_null())); }
    return take(builder.Finish());
  }
  static bool is_set(std::shared_ptr<arrow::Buffer> const& validity, std::int64_t i) {
    return validity == nullptr || (validity->data()[i / 8] >> (i % 8) & 1) != 0;
  }
  template <class Offset>
  std::shared_ptr<arrow::Buffer> offsets(std::shared_ptr<arrow::Buffer> const& validity, std::int64_t& total) {
    arrow::TypedBufferBuilder<Offset> builder;
    total = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      check(builder.Append(static_cast<Offset>(total)));
      if (is_set(validity, i)) { total += static_cast<std::int64_t>(random.below(3) == 0 ? 0 : random.below(6)); }
    }
    check(builder.Append(static_cast<Offset>(total)));
    return take(builder.Finish());
  }
  template <class Type>
    requires(std::is_same_v<Type, arrow::ListType> || std::is_same_v<Type, arrow::LargeListType>)
  arrow::Status Visit(Type const& type) {
    auto const valid = validity();
    std::int64_t total = 0;
    auto const ends = offsets<typename Type::offset_type>(valid, total);
    auto const values = random.array(*type.value_field(), total, variety);
    result = std::make_shared<typename arrow::TypeTraits<Type>::ArrayType>(field.type(), length, ends, values, valid);
    return arrow::Status::OK();
  }
  arrow::Status Visit(arrow::MapType const& type) {
    auto const valid = validity();
    std::int64_t total = 0;
    auto const ends = offsets<std::int32_t>(valid, total);
    auto const keys = random.array(*type.key_field(), total, variety);
    auto const items = random.array(*type.item_field(), total, variety);
    result = std::make_shared<arrow::MapArray>(field.type(), length, ends, keys, items, valid);
    return arrow::Status::OK();
  }
  arrow::Status Visit(arrow::FixedSizeListType const& type) {
    auto const values = random.array(*type.value_field(), length * type.list_size(), variety);
    result = std::make_shared<arrow::FixedSizeListArray>(field.type(), length, values);
    return arrow::Status::OK();
  }
  arrow::Status Visit(arrow::StructType const& type) {
    std::vector<std::shared_ptr<arrow::Array>> children;
    for (auto const& child : type.fields()) { children.push_back(random.array(*child, length, variety)); }
    result = std::make_shared<arrow::StructArray>(field.type(), length, children, validity());
    return arrow::Status::OK();
  }
  arrow::Status Visit(arrow::DictionaryType const& type) {
    constexpr std::int64_t values = 40;
    auto const dictionary = random.array(arrow::Field("", type.value_type(), false), values, Variety::ManyValues);
    arrow::Int32Builder builder;
    for (std::int64_t i = 0; i < length; ++i) {
      check(is_null() ? builder.AppendNull() : builder.Append(static_cast<std::int32_t>(random.below(values))));
    }
    result = take(arrow::DictionaryArray::FromArrays(field.type(), take(builder.Finish()), dictionary));
    return arrow::Status::OK();
  }
  arrow::Status Visit(arrow::DataType const& type) { return arrow::Status::NotImplemented("random ", type.ToString()); }
};

std::uint64_t RandomArrays::below(std::uint64_t end) { return random_() % end; }

std::shared_ptr<arrow::Array> RandomArrays::array(arrow::Field const& field, std::int64_t length, Variety variety) {
  Visitor visitor{*this, field, length, variety};
  check(arrow::VisitTypeInline(*field.type(), &visitor));
  return visitor.result;
}

std::shared_ptr<arrow::Table> RandomArrays::table(std::shared_ptr<arrow::Schema> const& schema, std::int64_t rows) {
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (auto const& field : schema->fields()) {
    columns.push_back(array(*field, rows, columns.size() % 2 == 0 ? Variety::FewValues : Variety::ManyValues));
  }
  return arrow::Table::Make(schema, columns, rows);
}

}  // namespace earmark
