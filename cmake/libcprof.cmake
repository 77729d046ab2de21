# libcprof of the modules' archives, from which a linker takes the files that it needs. cmake/subproject.cmake is the other way.
set(CPROF_PUBLIC_INCLUDE ${CMAKE_SOURCE_DIR}/include)
foreach(target cprof_collect_inproc cprof_embed)
  target_include_directories(${target} PUBLIC ${CPROF_PUBLIC_INCLUDE})
  set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # other flags than the headers' own
  target_compile_options(${target} PRIVATE -fPIC -fvisibility=hidden -fvisibility-inlines-hidden)
endforeach()
# What the signal handler reaches: no libc, nothing that a sanitizer adds (it reads other frames' memory on purpose).
target_compile_options(cprof_collect_inproc PRIVATE -ffreestanding -fno-stack-protector -fno-exceptions -fno-rtti -fno-sanitize=all)

include(cmake/libcprof_targets.cmake)
cprof_add_shared_library()
target_link_libraries(libcprof PRIVATE cprof_embed)
set_property(TARGET libcprof PROPERTY LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,cprof_embed,cprof_collect_inproc")

# Modules that the program and the library share are compiled once, as the compiler does by default (-fPIE on today's
# distributions). These few files name variables of libc, which in a shared object takes -fPIC.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/result.cc ${CMAKE_SOURCE_DIR}/src/base/fmt_instance.cc
  TARGET_DIRECTORY cprof_base PROPERTIES COMPILE_OPTIONS -fPIC SKIP_PRECOMPILE_HEADERS ON)

set(libcprof_targets ${CPROF_LIBRARY_MODULES})
list(REMOVE_ITEM libcprof_targets embed collect/inproc base/signal_safe)
list(TRANSFORM libcprof_targets REPLACE "/" "_")
list(TRANSFORM libcprof_targets PREPEND cprof_)
set(libcprof_files "")
foreach(target ${libcprof_targets})
  list(APPEND libcprof_files $<TARGET_FILE:${target}>)
endforeach()
cprof_add_static_library(
  WHOLE $<TARGET_FILE:cprof_embed> $<TARGET_FILE:cprof_collect_inproc>
  FROM ${libcprof_files}
  DEPENDS cprof_embed cprof_collect_inproc ${libcprof_targets})
set_target_properties(libcprof_archive PROPERTIES EXCLUDE_FROM_ALL OFF)

# What a package of the library consists of: component libcprof.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# It says where it lies: `cmake --install --prefix` and packages put it elsewhere than this build was told.
file(RELATIVE_PATH CPROF_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/cprof.pc.in ${CMAKE_BINARY_DIR}/lib/cprof.pc @ONLY)
configure_file(${CMAKE_SOURCE_DIR}/cmake/cprof-config.cmake.in ${CMAKE_BINARY_DIR}/lib/cprof-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lib/cprof-config-version.cmake COMPATIBILITY SameMajorVersion)
install(TARGETS libcprof LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libcprof)
install(FILES ${CMAKE_BINARY_DIR}/lib/libcprof.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libcprof)
install(DIRECTORY ${CPROF_PUBLIC_INCLUDE}/cprof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libcprof)
install(FILES ${CMAKE_BINARY_DIR}/lib/cprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libcprof)
install(FILES ${CMAKE_BINARY_DIR}/lib/cprof-config.cmake ${CMAKE_BINARY_DIR}/lib/cprof-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cprof COMPONENT libcprof)
add_dependencies(cprof_shipped libcprof libcprof_archive)
