# cprof_module(collect/perf DEPS event object base LIBS dep::z [DIRS x86_64 aarch64])
# makes the library cprof_collect_perf from every .cc and .c of src/collect/perf (and DIRS below it), and one
# test program cprof_collect_perf_tests from its *_test.cc. Files are found, not listed: adding one edits nothing.

# GCC 12 sees overflows inside its own std::string that are not there (its bugs 105329 and 105651).
set(CPROF_WARNINGS -Wall -Wextra -Wshadow -Werror
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)

add_library(cprof_flags INTERFACE)
target_include_directories(cprof_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
# libstdc++ 12 uses what it deprecates itself (get_temporary_buffer in stable_sort); GCC knows, Clang does not.
target_compile_options(cprof_flags INTERFACE ${CPROF_WARNINGS} -fdata-sections -ffunction-sections
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_compile_definitions(cprof_flags INTERFACE CPROF_VERSION="${PROJECT_VERSION}" _GNU_SOURCE)
target_link_options(cprof_flags INTERFACE -Wl,--gc-sections)

# The standard headers that nearly every file includes, parsed once a build: a third of all compile time. Off in the clang
# preset, so that a file which forgets its own includes is found there.
option(CPROF_PCH "Precompile common headers" ON)
set(CPROF_COMMON_HEADERS <algorithm> <expected> <functional> <map> <memory> <optional> <span> <string> <string_view>
  <unordered_map> <variant> <vector> <fmt/format.h>)

function(cprof_precompile target first)
  if(NOT CPROF_PCH)
    return()
  endif()
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${CPROF_COMMON_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# Several files in one compilation: a whole build takes half the time. OFF compiles each file alone, which finds the file that
# forgets its own includes (the clang preset) and is the faster for one changed file (dev). ON leaves out the modules of
# libcprof, whose archives a linker is to take file by file; ALL is every module.
set(CPROF_UNITY OFF CACHE STRING "Compile several files at once: OFF, ON or ALL")
set(CPROF_LIBRARY_MODULES base base/signal_safe object profile unwind/core unwind/cfi symbolize analyze timeline format
  collect/inproc embed)
set(CPROF_FILES_AT_ONCE 6)

function(cprof_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CPROF_FILES_AT_ONCE})
  # GCC takes a file that is included for a header, in which a local type of a member would be wrong.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# cprof_compile_alone(FILE...): files whose local names are also those of others in their module.
function(cprof_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Seconds. Instrumented code is up to twenty times slower.
set(CPROF_TEST_TIMEOUT 120)
set(CPROF_SANITIZED OFF)
if("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_DEBUG}" MATCHES "fsanitize")
  set(CPROF_TEST_TIMEOUT 1200)
  set(CPROF_SANITIZED ON)
  target_compile_definitions(cprof_flags INTERFACE CPROF_SANITIZED)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/sanitizer_ignorelist.txt)
  endif()
endif()

# Modules whose archive may need nothing from outside, not even libc (tools/check_freestanding.py).
set(CPROF_FREESTANDING unwind/core base/signal_safe)

function(cprof_module path)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;DIRS;TEST_DEPS;TEST_LIBS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  set(root ${CMAKE_SOURCE_DIR}/src/${path})
  set(globs ${root}/*.cc ${root}/*.c)
  foreach(dir ${ARG_DIRS})
    list(APPEND globs ${root}/${dir}/*.cc ${root}/${dir}/*.c)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$|\\.bpf\\.c$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  set(links "")
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "_" dep ${dep})
    list(APPEND links cprof_${dep})
  endforeach()
  if(sources)
    add_library(cprof_${name} STATIC ${sources})
    target_link_libraries(cprof_${name} PUBLIC cprof_flags ${links} ${ARG_LIBS})
    if(path IN_LIST CPROF_FREESTANDING)
      target_compile_options(cprof_${name} PRIVATE -ffreestanding -fno-stack-protector)
    elseif(path STREQUAL cli)
      cprof_precompile(cprof_cli cprof_cli <CLI/App.hpp> <CLI/Config.hpp> <CLI/Formatter.hpp>)
    else()
      cprof_precompile(cprof_${name} cprof_base)
    endif()
    if(CPROF_UNITY STREQUAL "ALL" OR (CPROF_UNITY AND NOT path IN_LIST CPROF_LIBRARY_MODULES))
      cprof_unity(cprof_${name})
    endif()
  else()
    add_library(cprof_${name} INTERFACE)
    target_link_libraries(cprof_${name} INTERFACE cprof_flags ${links} ${ARG_LIBS})
  endif()

  if(CPROF_TESTS AND tests)
    set(test_links "")
    foreach(dep ${ARG_TEST_DEPS})
      string(REPLACE "/" "_" dep ${dep})
      list(APPEND test_links cprof_${dep})
    endforeach()
    cprof_test(cprof_${name}_tests LABEL unit SOURCES ${tests} LIBS cprof_${name} ${test_links} ${ARG_TEST_LIBS})
  endif()
endfunction()

# All that a sanitizer build needs: every program with the label unit.
add_custom_target(cprof_unit_tests)

# cprof_test(name LABEL unit SOURCES ... LIBS ...): a GoogleTest program whose tests ctest runs one by one.
function(cprof_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE cprof_flags ${ARG_LIBS} GTest::gtest GTest::gtest_main Threads::Threads)
  # Optimising the tests themselves was half the time of compiling them; what they test is optimised.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  target_compile_definitions(${name} PRIVATE CPROF_SOURCE_DIR="${CMAKE_SOURCE_DIR}" CPROF_BINARY_DIR="${CMAKE_BINARY_DIR}")
  if(ARG_LABEL STREQUAL "unit" AND TARGET cprof_base_tests)
    cprof_precompile(${name} cprof_base_tests <gtest/gtest.h>)
  endif()
  if(CPROF_UNITY)
    cprof_unity(${name})
  endif()
  if(ARG_LABEL STREQUAL "unit")
    add_dependencies(cprof_unit_tests ${name})
  endif()
  if(CPROF_SANITIZED)  # starting such a program takes longer than most tests
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${CPROF_TEST_TIMEOUT})
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}. PROPERTIES LABELS ${ARG_LABEL}
      TIMEOUT ${CPROF_TEST_TIMEOUT})
  endif()
endfunction()

# cprof_bpf_object(module SOURCE file.bpf.c INTO embedding.cc MACRO NAME [OBJECT name] [CPU v3] [DEFINITIONS ...]): compiles a BPF
# program and has the embedding source take the object in by .incbin, from the path in MACRO
# (docs/design/0003-bpf-sampler.md says why no skeleton). One source may be compiled to several objects.
function(cprof_bpf_object module)
  cmake_parse_arguments(ARG "" "SOURCE;INTO;MACRO;OBJECT;CPU" "DEFINITIONS" ${ARGN})
  if(NOT ARG_OBJECT)
    set(ARG_OBJECT ${ARG_SOURCE}.o)
  endif()
  list(TRANSFORM ARG_DEFINITIONS PREPEND -D)
  if(ARG_CPU)
    list(APPEND ARG_DEFINITIONS -mcpu=${ARG_CPU})
  endif()
  string(REPLACE "/" "_" name ${module})
  set(source ${CMAKE_SOURCE_DIR}/src/${module}/${ARG_SOURCE})
  set(object ${CMAKE_BINARY_DIR}/${ARG_OBJECT})
  add_custom_command(OUTPUT ${object}
    COMMAND ${CPROF_BPF_CLANG} -target bpf -O2 -g -ffreestanding -D__TARGET_ARCH_x86 -Wall -Wextra -Werror
      -Wno-unused-parameter ${ARG_DEFINITIONS} -I${CMAKE_SOURCE_DIR}/src -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
      -MD -MF ${object}.d -MT ${object} -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "BPF object ${ARG_OBJECT}")
  set(embedding ${CMAKE_SOURCE_DIR}/src/${module}/${ARG_INTO})
  set_property(SOURCE ${embedding} TARGET_DIRECTORY cprof_${name} APPEND PROPERTY OBJECT_DEPENDS ${object})
  set_property(SOURCE ${embedding} TARGET_DIRECTORY cprof_${name} APPEND PROPERTY COMPILE_DEFINITIONS "${ARG_MACRO}=\"${object}\"")
endfunction()
