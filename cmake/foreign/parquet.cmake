# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# earmark::parquet: Arrow's Parquet library from the pyarrow wheel. Needs EARMARK_WHEELS.
include("${CMAKE_CURRENT_LIST_DIR}/arrow.cmake")
if(NOT TARGET earmark::parquet)
  find_library(EARMARK_PARQUET_LIBRARY NAMES libparquet.so.${EARMARK_ARROW_SO} PATHS "${EARMARK_WHEELS}/pyarrow"
               REQUIRED NO_CACHE NO_DEFAULT_PATH DOC "libparquet (wheel pyarrow)")
  add_library(earmark::parquet SHARED IMPORTED)
  set_target_properties(earmark::parquet PROPERTIES
    IMPORTED_LOCATION "${EARMARK_PARQUET_LIBRARY}"
    INTERFACE_LINK_LIBRARIES earmark::arrow)
endif()
