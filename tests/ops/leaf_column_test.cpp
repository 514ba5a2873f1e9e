// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/leaf_column.hpp"

#include <gtest/gtest.h>

#include "earmark/ops/errors.hpp"

namespace earmark::detail {
namespace {

using parquet::ConvertedType;
using parquet::LogicalType;
using parquet::Repetition;
using parquet::SchemaDescriptor;
using parquet::Type;
using parquet::schema::GroupNode;
using parquet::schema::Int32;
using parquet::schema::NodePtr;
using parquet::schema::NodeVector;
using parquet::schema::PrimitiveNode;

SchemaDescriptor descriptor_of(NodeVector const& fields) {
  SchemaDescriptor schema;
  schema.Init(GroupNode::Make("schema", Repetition::REQUIRED, fields));
  return schema;
}

TEST(LeafColumn, DecimalsOfAtMost18DigitsBecomeIntegers) {
  for (int precision = 1; precision <= 38; ++precision) {
    auto const schema = descriptor_of({PrimitiveNode::Make(
        "d", Repetition::OPTIONAL, LogicalType::Decimal(precision, 1), Type::FIXED_LEN_BYTE_ARRAY, 16, 5)});
    auto const leaf = leaf_columns(schema).front();
    auto const output = output_schema(schema);
    auto const expected = precision <= 9 ? Type::INT32 : precision <= 18 ? Type::INT64 : Type::FIXED_LEN_BYTE_ARRAY;
    EXPECT_EQ(leaf.output_type, expected) << precision;
    EXPECT_EQ(leaf.input_type, Type::FIXED_LEN_BYTE_ARRAY);
    EXPECT_EQ(output->Column(0)->physical_type(), expected);
    EXPECT_TRUE(output->Column(0)->logical_type()->Equals(*schema.Column(0)->logical_type()));
    EXPECT_EQ(output->Column(0)->schema_node()->field_id(), 5);
    EXPECT_EQ(output->Column(0)->schema_node()->repetition(), Repetition::OPTIONAL);
  }
}

TEST(LeafColumn, AnythingElseKeepsItsSchema) {
  auto const list =
      GroupNode::Make("l", Repetition::OPTIONAL, {GroupNode::Make("list", Repetition::REPEATED, {Int32("element")})},
                      LogicalType::List(), 3);
  auto const schema = descriptor_of(
      {parquet::schema::Int96("t"), list,
       PrimitiveNode::Make("f", Repetition::REQUIRED, Type::FIXED_LEN_BYTE_ARRAY, ConvertedType::INTERVAL, 12)});
  EXPECT_TRUE(output_schema(schema)->Equals(schema));
}

TEST(LeafColumn, ADecimalDeepInsideChangesNothingAround) {
  auto const decimal = PrimitiveNode::Make("element", Repetition::OPTIONAL, LogicalType::Decimal(7, 2),
                                           Type::FIXED_LEN_BYTE_ARRAY, 4, 9);
  auto const list = GroupNode::Make("l", Repetition::OPTIONAL,
                                    {GroupNode::Make("list", Repetition::REPEATED, {decimal}, ConvertedType::NONE, 8)},
                                    LogicalType::List(), 7);
  auto const schema = descriptor_of(
      {PrimitiveNode::Make("old", Repetition::REPEATED, Type::FIXED_LEN_BYTE_ARRAY, ConvertedType::INTERVAL, 12),
       list});
  auto const output = output_schema(schema);
  EXPECT_TRUE(output->Column(0)->Equals(*schema.Column(0)));
  EXPECT_EQ(output->Column(1)->physical_type(), Type::INT32);
  EXPECT_EQ(output->Column(1)->path()->ToDotString(), "l.list.element");
  EXPECT_EQ(output->Column(1)->max_definition_level(), schema.Column(1)->max_definition_level());
  EXPECT_EQ(output->Column(1)->max_repetition_level(), 1);
  auto const& group = *output->group_node()->field(1);
  EXPECT_EQ(group.field_id(), 7);
  EXPECT_TRUE(group.logical_type()->is_list());
}

TEST(LeafColumn, KnowsTheDefinitionLevelOfAnElementAtEachListDepth) {
  auto const inner =
      GroupNode::Make("inner", Repetition::OPTIONAL, {GroupNode::Make("list", Repetition::REPEATED, {Int32("x")})});
  auto const outer = GroupNode::Make("outer", Repetition::REQUIRED,
                                     {GroupNode::Make("list", Repetition::REPEATED, NodeVector{inner})});
  auto const schema = descriptor_of({outer, Int32("flat")});
  auto const leaves = leaf_columns(schema);
  EXPECT_EQ(leaves[0].definition_of_repetition, (std::vector<std::int16_t>{0, 1, 3}));
  EXPECT_EQ(leaves[1].definition_of_repetition, (std::vector<std::int16_t>{0}));
}

TEST(LeafColumn, NestingBeyondAByteOfLevelsIsRefused) {
  NodePtr node = Int32("x", Repetition::OPTIONAL);
  for (int depth = 0; depth < 300; ++depth) { node = GroupNode::Make("g", Repetition::OPTIONAL, {node}); }
  auto const schema = descriptor_of({node});
  EXPECT_THROW((void)leaf_columns(schema), InputError);
}

}  // namespace
}  // namespace earmark::detail
