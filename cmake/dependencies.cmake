# The libraries of docs/design/0001-dependencies.md, from the distribution's packages.
include(cmake/library_dependencies.cmake)

set(CPROF_LLVM_ROOTS /usr/lib/llvm-19 /usr/lib/llvm-18 /usr/lib/llvm-17 /usr/lib/llvm-16)
set(CPROF_LLVM_LIBS ${CPROF_LLVM_ROOTS})
list(TRANSFORM CPROF_LLVM_LIBS APPEND /lib)
set(CPROF_LLVM_INCLUDES ${CPROF_LLVM_ROOTS})
list(TRANSFORM CPROF_LLVM_INCLUDES APPEND /include)

# Its archive needs libm for the built-in mathematical functions.
cprof_find_library(sqlite NAMES sqlite3 NEEDS m ${CMAKE_DL_LIBS})

# The line editor of `cprof sql`; its archive needs these.
cprof_find_library(md NAMES md)
cprof_find_library(bsd NAMES bsd NEEDS dep::md)
cprof_find_library(tinfo NAMES tinfo)
cprof_find_library(edit NAMES edit NEEDS dep::tinfo dep::bsd)
cprof_find_library(demangle NAMES LLVMDemangle PATHS ${CPROF_LLVM_LIBS})
find_path(LLVM_DEMANGLE_INCLUDE llvm/Demangle/Demangle.h PATHS ${CPROF_LLVM_INCLUDES} REQUIRED)
target_include_directories(dep::demangle SYSTEM INTERFACE ${LLVM_DEMANGLE_INCLUDE})

# The BPF programs are compiled by clang and loaded by libbpf, whose archive needs those two.
find_program(CPROF_BPF_CLANG NAMES clang-19 clang-18 clang-17 clang REQUIRED)
cprof_find_library(elf NAMES elf NEEDS dep::z)
cprof_find_library(bpf NAMES bpf NEEDS dep::elf dep::z)

# Regular expressions in linear time: filters, and patterns that come out of files.
cprof_find_library(re2 NAMES re2)

# Disassembly.
cprof_find_library(capstone NAMES capstone)

# HTTP: Boost.Beast is headers only; TLS to debuginfod servers by OpenSSL. Asio's errors need no exceptions of ours.
find_path(BOOST_BEAST_INCLUDE boost/beast/http.hpp REQUIRED)
add_library(dep::beast INTERFACE IMPORTED GLOBAL)
target_include_directories(dep::beast SYSTEM INTERFACE ${BOOST_BEAST_INCLUDE})
cprof_find_library(crypto NAMES crypto)
cprof_find_library(ssl NAMES ssl NEEDS dep::crypto)
