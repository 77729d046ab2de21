// The example of the timeline: 50 ms on a CPU, 200 ms waiting for a lock, 50 ms on a CPU, in one function below main.
// Prints the three times in nanoseconds as it measured them.
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>

#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_held, is_wanted;

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

NOINLINE static void busy_50ms(void) {
  double end = cpu_seconds() + 0.05;
  while (cpu_seconds() < end) BURN(20000);
  AFTER_CALL();
}

NOINLINE static void take_the_lock(void) {
  sem_post(&is_wanted);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  AFTER_CALL();
}

NOINLINE static void work_wait_work(double* marks) {
  marks[0] = now_seconds();
  busy_50ms();
  marks[1] = now_seconds();
  take_the_lock();
  marks[2] = now_seconds();
  busy_50ms();
  marks[3] = now_seconds();
}

static void* hold(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "holder");
  pthread_mutex_lock(&lock);
  sem_post(&is_held);
  sem_wait(&is_wanted);
  struct timespec t = {0, 200000000};
  nanosleep(&t, NULL);
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  double marks[4];
  pthread_t holder;
  sem_init(&is_held, 0, 0);
  sem_init(&is_wanted, 0, 0);
  pthread_create(&holder, NULL, hold, NULL);
  sem_wait(&is_held);
  work_wait_work(marks);
  pthread_join(holder, NULL);
  for (int i = 0; i < 3; ++i) printf("%llu\n", (unsigned long long)((marks[i + 1] - marks[i]) * 1e9));
  return 0;
}
