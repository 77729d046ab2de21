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

# The static library: one relocatable object of the same parts, in which only cprof_* is global, so that what it holds of zlib
# and the like meets nobody else's. Its user's linker brings the C++ runtime.
set(libcprof_object ${CMAKE_BINARY_DIR}/lib/libcprof.o)
set(libcprof_archive ${CMAKE_BINARY_DIR}/lib/libcprof.a)
set(libcprof_targets ${CPROF_LIBRARY_MODULES})
list(REMOVE_ITEM libcprof_targets embed collect/inproc base/signal_safe)
list(TRANSFORM libcprof_targets REPLACE "/" "_")
list(TRANSFORM libcprof_targets PREPEND cprof_)
set(libcprof_files "")
foreach(target ${libcprof_targets})
  list(APPEND libcprof_files $<TARGET_FILE:${target}>)
endforeach()
add_custom_command(OUTPUT ${libcprof_archive}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib
  COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o ${libcprof_object} -Wl,--force-group-allocation
    -Wl,--whole-archive $<TARGET_FILE:cprof_embed> $<TARGET_FILE:cprof_collect_inproc> -Wl,--no-whole-archive
    -Wl,--start-group ${libcprof_files} ${z_LIBRARY} ${zstd_LIBRARY} ${deflate_LIBRARY} ${lzma_LIBRARY} -Wl,--end-group
  # Variables of inline functions are "unique" symbols, which cannot be made local: they get names of our own.
  COMMAND sh -c "${CMAKE_NM} --format=posix ${libcprof_object} | awk '$2 == \"u\" { print $1, \"cprof_own_\" $1 }' > ${libcprof_object}.unique"
  COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${libcprof_object}.unique ${libcprof_object}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=cprof_* ${libcprof_object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${libcprof_archive}
  COMMAND ${CMAKE_AR} rcs ${libcprof_archive} ${libcprof_object}
  DEPENDS cprof_embed cprof_collect_inproc ${libcprof_targets} VERBATIM COMMENT "libcprof.a")
add_custom_target(libcprof_archive ALL DEPENDS ${libcprof_archive})
add_library(libcprof_static STATIC IMPORTED GLOBAL)
add_library(cprof::static ALIAS libcprof_static)
add_dependencies(libcprof_static libcprof_archive)
set_target_properties(libcprof_static PROPERTIES IMPORTED_LOCATION ${libcprof_archive}
  IMPORTED_LINK_INTERFACE_LANGUAGES CXX)
target_include_directories(libcprof_static INTERFACE ${CPROF_PUBLIC_INCLUDE})
target_link_libraries(libcprof_static INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)

# What a package of the library consists of: component libcprof.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# It says where it lies: `cmake --install --prefix` and packages put it elsewhere than this build was told.
file(RELATIVE_PATH CPROF_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/cprof.pc.in ${CMAKE_BINARY_DIR}/lib/cprof.pc @ONLY)
configure_file(${CMAKE_SOURCE_DIR}/cmake/cprof-config.cmake.in ${CMAKE_BINARY_DIR}/lib/cprof-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lib/cprof-config-version.cmake COMPATIBILITY SameMajorVersion)
install(TARGETS libcprof LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libcprof)
install(FILES ${libcprof_archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libcprof)
install(DIRECTORY ${CPROF_PUBLIC_INCLUDE}/cprof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libcprof)
install(FILES ${CMAKE_BINARY_DIR}/lib/cprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libcprof)
install(FILES ${CMAKE_BINARY_DIR}/lib/cprof-config.cmake ${CMAKE_BINARY_DIR}/lib/cprof-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cprof COMPONENT libcprof)
add_dependencies(cprof_shipped libcprof libcprof_archive)
