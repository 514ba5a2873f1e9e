# Copyright (c) 2026 The Earmark authors
# SPDX-License-Identifier: Apache-2.0
#
# What holds for every target of this build: language level, warnings, sanitizers, compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(THREADS_PREFER_PTHREAD_FLAG ON)
include(GNUInstallDirs)

find_program(EARMARK_CCACHE ccache DOC "Compiler cache; none: compile always")
mark_as_advanced(EARMARK_CCACHE)
if(EARMARK_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # The two kinds of sloppiness are what ccache needs to cache units with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  "${EARMARK_CCACHE}")
endif()

# Sets what Earmark's own code is compiled with. Foreign headers come in as system headers and are not judged.
function(earmark_compile_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(EARMARK_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache can only see through a precompiled header that the preprocessor names.
    target_compile_options(${target} PRIVATE -fpch-preprocess)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms on std::string's operator+ (GCC PR 105651)
    endif()
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # A resource says its properties by friends that are only named, never called.
    target_compile_options(${target} PRIVATE -Wthread-safety -Wno-unneeded-internal-declaration)
  endif()
  if(EARMARK_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The checks that are woven in make GCC guess wrongly, here about CCCL's any_resource.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  if(EARMARK_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  elseif(EARMARK_SANITIZE STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread -fno-omit-frame-pointer)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-tsan)  # fences in system headers, which TSan does not model
    endif()
    target_link_options(${target} PUBLIC -fsanitize=thread)
  elseif(EARMARK_SANITIZE)
    message(FATAL_ERROR "EARMARK_SANITIZE is '${EARMARK_SANITIZE}'; it can be empty, address or thread")
  endif()
endfunction()

# What a test's environment needs so that the sanitizers judge Earmark's code and not the prebuilt libraries.
if(EARMARK_SANITIZE STREQUAL "address")
  set(EARMARK_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1"
                               "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")
elseif(EARMARK_SANITIZE STREQUAL "thread")
  set(EARMARK_TEST_ENVIRONMENT "TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1")
else()
  set(EARMARK_TEST_ENVIRONMENT "")
endif()
