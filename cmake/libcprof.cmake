# libcprof: the library for other people's programs. Shared and static hold the same objects, export nothing but cprof_*, and
# need nothing but libc (the static one also the C++ runtime, which its user's linker brings).
set(CPROF_PUBLIC_INCLUDE ${CMAKE_SOURCE_DIR}/include)
foreach(target cprof_collect_inproc cprof_embed)
  target_include_directories(${target} PUBLIC ${CPROF_PUBLIC_INCLUDE})
  set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # other flags than the headers' own
  target_compile_options(${target} PRIVATE -fPIC -fvisibility=hidden -fvisibility-inlines-hidden)
endforeach()
# What the signal handler reaches: no libc, nothing that a sanitizer adds (it reads other frames' memory on purpose).
target_compile_options(cprof_collect_inproc PRIVATE -ffreestanding -fno-stack-protector -fno-exceptions -fno-rtti -fno-sanitize=all)

file(WRITE ${CMAKE_BINARY_DIR}/libcprof.map "{ global: cprof_*; local: *; };\n")
file(WRITE ${CMAKE_BINARY_DIR}/libcprof_empty.cc "")

add_library(libcprof SHARED ${CMAKE_BINARY_DIR}/libcprof_empty.cc)
add_library(cprof::cprof ALIAS libcprof)
set_target_properties(libcprof PROPERTIES OUTPUT_NAME cprof VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${CMAKE_BINARY_DIR}/libcprof.map EXPORT_NAME cprof)
target_include_directories(libcprof INTERFACE $<BUILD_INTERFACE:${CPROF_PUBLIC_INCLUDE}> $<INSTALL_INTERFACE:include>)
target_link_libraries(libcprof PRIVATE cprof_embed)
set_property(TARGET libcprof PROPERTY LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,cprof_embed,cprof_collect_inproc")
# Never unloaded: threads hold addresses of its handler and of their exit hooks.
target_link_options(libcprof PRIVATE -static-libstdc++ -static-libgcc -Wl,--version-script=${CMAKE_BINARY_DIR}/libcprof.map
  -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,--as-needed)

# Modules that the program and the library share are compiled once, as the compiler does by default (-fPIE on today's
# distributions). These few files name variables of libc, which in a shared object takes -fPIC.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/result.cc ${CMAKE_SOURCE_DIR}/src/base/fmt_instance.cc
  TARGET_DIRECTORY cprof_base PROPERTIES COMPILE_OPTIONS -fPIC SKIP_PRECOMPILE_HEADERS ON)
