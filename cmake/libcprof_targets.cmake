# The targets of libcprof, the library for other people's programs: cprof::cprof (shared) and cprof::static. Both hold the same
# objects, export nothing but cprof_*, and need nothing but libc (the static one also the C++ runtime, which its user's linker
# brings).

# cprof::cprof without its parts, which the caller links to `libcprof`.
function(cprof_add_shared_library)
  set(map ${PROJECT_BINARY_DIR}/libcprof.map)
  set(empty ${PROJECT_BINARY_DIR}/libcprof_empty.cc)
  file(WRITE ${map} "{ global: cprof_*; local: *; };\n")
  file(WRITE ${empty} "")
  add_library(libcprof SHARED ${empty})
  add_library(cprof::cprof ALIAS libcprof)
  set_target_properties(libcprof PROPERTIES OUTPUT_NAME cprof VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${map} EXPORT_NAME cprof)
  target_include_directories(libcprof INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  # Never unloaded: threads hold addresses of its handler and of their exit hooks.
  target_link_options(libcprof PRIVATE -static-libstdc++ -static-libgcc -Wl,--version-script=${map}
    -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,--as-needed)
endfunction()

# cprof::static: one relocatable object, in which only cprof_* is global, so that what it holds of zlib and the like meets nobody
# else's. WHOLE: objects and archives that go in whole; FROM: archives of which only what is needed does.
function(cprof_add_static_library)
  cmake_parse_arguments(ARG "" "" "WHOLE;FROM;DEPENDS" ${ARGN})
  set(object ${PROJECT_BINARY_DIR}/lib/libcprof.o)
  set(archive ${PROJECT_BINARY_DIR}/lib/libcprof.a)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/lib
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -o ${object} -Wl,--force-group-allocation
      -Wl,--whole-archive ${ARG_WHOLE} -Wl,--no-whole-archive
      -Wl,--start-group ${ARG_FROM} ${z_LIBRARY} ${zstd_LIBRARY} ${deflate_LIBRARY} ${lzma_LIBRARY} -Wl,--end-group
    # Variables of inline functions are "unique" symbols, which cannot be made local: they get names of our own.
    COMMAND sh -c "${CMAKE_NM} --format=posix ${object} | awk '$2 == \"u\" { print $1, \"cprof_own_\" $1 }' > ${object}.unique"
    COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${object}.unique ${object}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=cprof_* ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    DEPENDS ${ARG_DEPENDS} COMMAND_EXPAND_LISTS VERBATIM COMMENT "libcprof.a")
  add_custom_target(libcprof_archive DEPENDS ${archive})
  add_library(libcprof_static STATIC IMPORTED GLOBAL)
  add_library(cprof::static ALIAS libcprof_static)
  add_dependencies(libcprof_static libcprof_archive)
  set_target_properties(libcprof_static PROPERTIES IMPORTED_LOCATION ${archive} IMPORTED_LINK_INTERFACE_LANGUAGES CXX)
  target_include_directories(libcprof_static INTERFACE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(libcprof_static INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()
