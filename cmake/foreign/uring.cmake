# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# earmark::uring: liburing, from the system's packages.
if(NOT TARGET earmark::uring)
  find_path(EARMARK_URING_INCLUDE liburing.h REQUIRED DOC "liburing's header (package liburing-dev)")
  find_library(EARMARK_URING_LIBRARY uring REQUIRED DOC "liburing (package liburing-dev)")
  mark_as_advanced(EARMARK_URING_INCLUDE EARMARK_URING_LIBRARY)
  add_library(earmark::uring UNKNOWN IMPORTED)
  set_target_properties(earmark::uring PROPERTIES IMPORTED_LOCATION "${EARMARK_URING_LIBRARY}"
                                                  INTERFACE_INCLUDE_DIRECTORIES "${EARMARK_URING_INCLUDE}")
endif()
