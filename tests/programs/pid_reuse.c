// Two programs, one after the other, under the same pid. Needs to write /proc/sys/kernel/ns_last_pid, so it runs as root
// in a pid namespace of its own. Exit status 3: the pid could not be had again.
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static pid_t run_child(const char* folder, const char* program, const char* seconds) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/%s", folder, program);
  execl(path, path, seconds, (char*)NULL);
  _exit(127);
}

static int ask_for_pid(pid_t pid) {
  FILE* file = fopen("/proc/sys/kernel/ns_last_pid", "w");
  if (!file) return -1;
  fprintf(file, "%d", (int)pid - 1);
  return fclose(file);
}

int main(int argc, char** argv) {
  char self[PATH_MAX] = "", seconds[32];
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
  const char* folder = dirname(self);
  snprintf(seconds, sizeof seconds, "%f", run_seconds(argc, argv) / 2);
  pid_t first = run_child(folder, "reuse_first", seconds);
  if (first < 0 || waitpid(first, NULL, 0) != first) return 1;
  if (ask_for_pid(first) != 0) return 3;
  pid_t second = run_child(folder, "reuse_second", seconds);
  if (second < 0 || waitpid(second, NULL, 0) != second) return 1;
  return second == first ? 0 : 3;
}
