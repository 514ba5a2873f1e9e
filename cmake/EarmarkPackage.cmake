# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` puts in place beside headers and libraries: a CMake package with one component per floor.
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/earmark")
get_property(components GLOBAL PROPERTY EARMARK_COMPONENTS)

# One targets file per component, so that a consumer of `memory` need not have what `ops` needs.
set(needs "")
foreach(component IN LISTS components)
  install(EXPORT earmark_${component} NAMESPACE earmark:: DESTINATION "${package_folder}"
          FILE earmark-${component}-targets.cmake)
  get_property(component_needs GLOBAL PROPERTY EARMARK_COMPONENT_${component}_NEEDS)
  string(APPEND needs "set(earmark_needs_${component} \"${component_needs}\")\n")
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/earmarkConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/earmarkConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/earmarkConfigVersion.cmake" COMPATIBILITY SameMinorVersion)

install(FILES "${PROJECT_BINARY_DIR}/earmarkConfig.cmake" "${PROJECT_BINARY_DIR}/earmarkConfigVersion.cmake"
        DESTINATION "${package_folder}")
foreach(part IN LISTS EARMARK_FOREIGN_PARTS)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/foreign/${part}.cmake" DESTINATION "${package_folder}/foreign")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
