// Works for a third of the time, loads a plugin and works in it for a third, unloads it and works for the rest.
#include <dlfcn.h>

#include "work.h"

NOINLINE void before_dlopen(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}
NOINLINE void after_dlclose(double deadline) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double begin = now_seconds(), third = run_seconds(argc, argv) / 3;
  before_dlopen(begin + third);
  void* plugin = dlopen("libcprof_test_plugin.so", RTLD_NOW);
  if (!plugin) return 1;
  void (*spin)(double) = (void (*)(double))dlsym(plugin, "plugin_spin");
  if (!spin) return 1;
  spin(begin + 2 * third);
  dlclose(plugin);
  after_dlclose(begin + 3 * third);
  return 0;
}
