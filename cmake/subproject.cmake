# add_subdirectory(cprof): libcprof for the project around, compiled from the files that it consists of. No program, page, BPF or
# test is built or asked for; what has to be installed is in library_dependencies.cmake. A test (inproc.subdirectory) builds it,
# so a file that is missing here is a link that fails there.
include(cmake/library_dependencies.cmake)
include(cmake/libcprof_targets.cmake)

set(whole_modules embed collect/inproc)
set(files
  base/container_name.cc base/diagnostics.cc base/file.cc base/fmt_instance.cc base/result.cc base/string_table.cc base/text_hash.cc base/utf8.cc
  object/byte_source.cc object/decompress.cc object/dynamic_symbols.cc object/elf_file.cc object/elf_headers.cc
  object/elf_symbols.cc object/go_table.cc object/process_maps.cc object/process_status.cc
  profile/builder.cc profile/frame_name.cc profile/profile.cc
  unwind/core/unwind_rows.c
  unwind/cfi/aarch64/machine.cc unwind/cfi/cfi_section.cc unwind/cfi/expression.cc unwind/cfi/frame_program.cc unwind/cfi/go_code.cc
  unwind/cfi/machine.cc unwind/cfi/module_table.cc unwind/cfi/row_builder.cc unwind/cfi/rule_parts.cc
  unwind/cfi/table_compiler.cc unwind/cfi/x86_64/machine.cc
  symbolize/interval_map.cc symbolize/plt_stubs.cc symbolize/symbol_index.cc
  analyze/frames.cc analyze/weights.cc
  timeline/open_frames.cc timeline/slice_lanes.cc timeline/states.cc timeline/thread_samples.cc timeline/timeline.cc
  format/address_book.cc format/frame_text.cc format/gzip.cc format/values.cc
  format/chrome/chrome_writer.cc format/folded/folded_tree.cc format/folded/folded_writer.cc format/json/json_writer.cc
  format/pftrace/packet_writer.cc format/pftrace/pftrace_writer.cc format/pftrace/sample_sequence.cc
  format/pftrace/track_writer.cc format/pprof/pprof_writer.cc format/pprof/value_table.cc)
list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/src/)
foreach(module ${whole_modules})
  file(GLOB of_module CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${module}/*.cc)
  list(FILTER of_module EXCLUDE REGEX "_test\\.cc$")
  list(APPEND files ${of_module})
endforeach()

add_library(cprof_parts OBJECT ${files})
target_include_directories(cprof_parts PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(cprof_parts PRIVATE CPROF_VERSION="${PROJECT_VERSION}" _GNU_SOURCE)
# Warnings are for who works on cprof, not for who uses it.
target_compile_options(cprof_parts PRIVATE -w -fdata-sections -ffunction-sections -fvisibility=hidden -fvisibility-inlines-hidden)
set_target_properties(cprof_parts PROPERTIES POSITION_INDEPENDENT_CODE ON INTERPROCEDURAL_OPTIMIZATION OFF)
target_precompile_headers(cprof_parts PRIVATE $<$<COMPILE_LANGUAGE:CXX>:<fmt/format.h$<ANGLE-R>>)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  target_compile_options(cprof_parts PRIVATE -O2)
endif()
# What runs in the signal handler and in scopes is fast in a debug build too; the first two need no libc either.
file(GLOB handler_files ${PROJECT_SOURCE_DIR}/src/collect/inproc/*.cc)
set_source_files_properties(${handler_files} ${PROJECT_SOURCE_DIR}/src/unwind/core/unwind_rows.c PROPERTIES
  COMPILE_OPTIONS "-O2;-ffreestanding;-fno-stack-protector;-fno-exceptions;-fno-sanitize=all" SKIP_PRECOMPILE_HEADERS ON)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/embed/scopes.cc PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)

cprof_add_shared_library()
target_link_libraries(libcprof PRIVATE cprof_parts dep::z dep::zstd dep::deflate dep::lzma Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(libcprof PRIVATE -Wl,--gc-sections)
cprof_add_static_library(WHOLE $<TARGET_OBJECTS:cprof_parts> DEPENDS cprof_parts $<TARGET_OBJECTS:cprof_parts>)

include(GNUInstallDirs)
install(TARGETS libcprof LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libcprof)
