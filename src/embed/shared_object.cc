// The library's modules are compiled as parts of a program (-fPIE), for which this variable of glibc is one of the program's own;
// a shared object cannot have it that way. Here it is the library's own, and says what is always right: there are other threads
// (the collector is one), so reference counts are atomic.
extern "C" {
__attribute__((visibility("hidden"))) extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
