// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "leaf_column.hpp"

#include <fmt/format.h>

#include <numeric>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

using ::parquet::Type;
using ::parquet::schema::GroupNode;
using ::parquet::schema::Node;
using ::parquet::schema::NodePtr;
using ::parquet::schema::PrimitiveNode;

constexpr int max_int32_digits = 9;
constexpr int max_int64_digits = 18;

// Returns: digits of a decimal leaf, 0 for any other.
int decimal_precision(PrimitiveNode const& node) {
  auto const& logical = node.logical_type();
  if (!logical || !logical->is_decimal()) { return 0; }
  return static_cast<::parquet::DecimalLogicalType const&>(*logical).precision();
}

Type::type output_type(PrimitiveNode const& node) {
  int const precision = decimal_precision(node);
  if (node.physical_type() != Type::FIXED_LEN_BYTE_ARRAY || precision == 0 || precision > max_int64_digits) {
    return node.physical_type();
  }
  return precision <= max_int32_digits ? Type::INT32 : Type::INT64;
}

ValueForm form_of(Type::type input, Type::type output) {
  switch (input) {
    case Type::BOOLEAN: return ValueForm::Copy1;
    case Type::INT32:
    case Type::FLOAT: return ValueForm::Copy4;
    case Type::INT64:
    case Type::DOUBLE: return ValueForm::Copy8;
    case Type::INT96: return ValueForm::Copy12;
    case Type::FIXED_LEN_BYTE_ARRAY:
      return output == Type::INT32   ? ValueForm::Decimal4
             : output == Type::INT64 ? ValueForm::Decimal8
                                     : ValueForm::FixedBytes;
    default: return ValueForm::Bytes;
  }
}

std::vector<std::int16_t> definition_of_repetition(Node const& leaf) {
  std::vector<Node const*> path;  // without the root, which has no level
  for (Node const* node = &leaf; node->parent() != nullptr; node = node->parent()) { path.push_back(node); }
  std::vector<std::int16_t> result{0};
  std::int16_t definition = 0;
  for (auto node = path.rbegin(); node != path.rend(); ++node) {
    if (!(*node)->is_required()) { ++definition; }
    if ((*node)->is_repeated()) { result.push_back(definition); }
  }
  return result;
}

bool has_changed_leaf(::parquet::SchemaDescriptor const& schema) {
  for (int i = 0; i < schema.num_columns(); ++i) {
    auto const& node = static_cast<PrimitiveNode const&>(*schema.Column(i)->schema_node());
    if (output_type(node) != node.physical_type()) { return true; }
  }
  return false;
}

bool has_logical_type(Node const& node) {
  auto const& logical = node.logical_type();
  return logical && logical->is_valid() && !logical->is_none();
}

NodePtr rebuild_group(GroupNode const& node, ::parquet::schema::NodeVector const& fields) {
  return has_logical_type(node)
             ? GroupNode::Make(node.name(), node.repetition(), fields, node.logical_type(), node.field_id())
             : GroupNode::Make(node.name(), node.repetition(), fields, node.converted_type(), node.field_id());
}

NodePtr rebuild(Node const& node) {
  if (node.is_group()) {
    auto const& group = static_cast<GroupNode const&>(node);
    ::parquet::schema::NodeVector fields;
    for (int i = 0; i < group.field_count(); ++i) { fields.push_back(rebuild(*group.field(i))); }
    return rebuild_group(group, fields);
  }
  auto const& leaf = static_cast<PrimitiveNode const&>(node);
  Type::type const type = output_type(leaf);
  int const length = type == Type::FIXED_LEN_BYTE_ARRAY ? leaf.type_length() : -1;
  if (has_logical_type(node)) {
    return PrimitiveNode::Make(node.name(), node.repetition(), node.logical_type(), type, length, node.field_id());
  }
  return PrimitiveNode::Make(node.name(), node.repetition(), type, node.converted_type(), length,
                             leaf.decimal_metadata().precision, leaf.decimal_metadata().scale, node.field_id());
}

}  // namespace

std::size_t LeafColumn::read_width() const noexcept {
  switch (input_type) {
    case Type::BOOLEAN: return sizeof(bool);
    case Type::INT32:
    case Type::FLOAT: return 4;
    case Type::INT64:
    case Type::DOUBLE: return 8;
    case Type::INT96: return sizeof(::parquet::Int96);
    case Type::FIXED_LEN_BYTE_ARRAY: return sizeof(::parquet::FixedLenByteArray);
    default: return sizeof(::parquet::ByteArray);
  }
}

std::size_t LeafColumn::staged_width(ValueForm form, int type_length) noexcept {
  switch (form) {
    case ValueForm::Copy1:
    case ValueForm::Index1: return 1;
    case ValueForm::Index2: return 2;
    case ValueForm::Copy4:
    case ValueForm::Decimal4: return 4;
    case ValueForm::Copy8:
    case ValueForm::Decimal8: return 8;
    case ValueForm::Copy12: return 12;
    case ValueForm::FixedBytes: return static_cast<std::size_t>(type_length);
    case ValueForm::Bytes: break;
  }
  return 0;
}

std::vector<LeafColumn> leaf_columns(::parquet::SchemaDescriptor const& input) {
  constexpr int max_level = 255;  // staging keeps a level in a byte
  std::vector<LeafColumn> leaves;
  for (int i = 0; i < input.num_columns(); ++i) {
    auto const* const descriptor = input.Column(i);
    LeafColumn leaf;
    leaf.index = i;
    leaf.name = descriptor->path()->ToDotString();
    leaf.input_type = descriptor->physical_type();
    leaf.output_type = output_type(static_cast<PrimitiveNode const&>(*descriptor->schema_node()));
    leaf.type_length = descriptor->type_length();
    leaf.max_definition = descriptor->max_definition_level();
    leaf.max_repetition = descriptor->max_repetition_level();
    leaf.definition_of_repetition = definition_of_repetition(*descriptor->schema_node());
    leaf.form = form_of(leaf.input_type, leaf.output_type);
    if (leaf.max_definition > max_level || leaf.max_repetition > max_level) {
      throw InputError(fmt::format("column '{}' is nested deeper than {} levels", leaf.name, max_level), {}, leaf.name);
    }
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

std::shared_ptr<::parquet::SchemaDescriptor const> output_schema(::parquet::SchemaDescriptor const& input) {
  std::vector<int> all(static_cast<std::size_t>(input.group_node()->field_count()));
  std::iota(all.begin(), all.end(), 0);
  return output_schema(input, all);
}

std::shared_ptr<::parquet::SchemaDescriptor const> output_schema(::parquet::SchemaDescriptor const& input,
                                                                 std::vector<int> const& top_level_columns) {
  auto schema = std::make_shared<::parquet::SchemaDescriptor>();
  GroupNode const& root = *input.group_node();
  if (static_cast<int>(top_level_columns.size()) == root.field_count() && !has_changed_leaf(input)) {
    schema->Init(input.schema_root());
    return schema;
  }
  ::parquet::schema::NodeVector fields;
  for (int const column : top_level_columns) { fields.push_back(rebuild(*root.field(column))); }
  schema->Init(rebuild_group(root, fields));
  return schema;
}

}  // namespace earmark::detail
