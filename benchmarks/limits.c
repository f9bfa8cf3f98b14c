/* Measures how fast the machine copies arrays that exceed all caches. This is both a program that prints the rates, and
   a library with the copy (see `peers/copy_loop.py`). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIALS 7

typedef float vector __attribute__((vector_size(64))); /* two registers if they have 32 bytes */

enum loop { COPY, COPY_NON_TEMPORAL };

struct task {
  enum loop loop;
  const vector *source;
  vector *destination;
  size_t vectors;
};

static pthread_barrier_t barrier;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void copy(const struct task *task) {
  for (size_t index = 0; index < task->vectors; index++)
    task->destination[index] = task->source[index];
}

static void copy_non_temporal(const struct task *task) {
  for (size_t index = 0; index < task->vectors; index++)
    __builtin_nontemporal_store(task->source[index], &task->destination[index]);
}

static void *copy_share(void *argument) {
  const struct task *task = argument;
  (task->loop == COPY ? copy : copy_non_temporal)(task);
  return NULL;
}

static void *run(void *argument) {
  for (int trial = 0; trial < TRIALS; trial++) {
    pthread_barrier_wait(&barrier);
    copy_share(argument);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

/* Copies with `threads` threads. `bytes` is a multiple of the vector size, and the arrays are aligned to it. */
void copy_arrays(int threads, const void *source, void *destination, size_t bytes, int non_temporal) {
  pthread_t ids[threads];
  struct task tasks[threads];
  size_t vectors = bytes / sizeof(vector);
  for (int thread = 0; thread < threads; thread++) {
    size_t first = vectors * (size_t)thread / (size_t)threads, end = vectors * (size_t)(thread + 1) / (size_t)threads;
    tasks[thread] = (struct task){non_temporal ? COPY_NON_TEMPORAL : COPY, (const vector *)source + first,
                                  (vector *)destination + first, end - first};
    if (thread > 0)
      pthread_create(&ids[thread], NULL, copy_share, &tasks[thread]);
  }
  copy_share(&tasks[0]); /* the calling thread works, too, as in runtimes */
  for (int thread = 1; thread < threads; thread++)
    pthread_join(ids[thread], NULL);
}

/* Returns the seconds of the fastest trial. In each trial, every thread runs its own task once. */
static double fastest(int threads, struct task *tasks, enum loop loop) {
  pthread_t ids[threads];
  pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
  for (int thread = 0; thread < threads; thread++) {
    tasks[thread].loop = loop;
    pthread_create(&ids[thread], NULL, run, &tasks[thread]);
  }
  double best = 1e30;
  for (int trial = 0; trial < TRIALS; trial++) {
    double started = now(); /* read before the barrier, because workers may finish before this thread wakes */
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    double seconds = now() - started;
    best = seconds < best ? seconds : best;
  }
  for (int thread = 0; thread < threads; thread++)
    pthread_join(ids[thread], NULL);
  pthread_barrier_destroy(&barrier);
  return best;
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: limits THREADS BYTES\n");
    return 2;
  }
  int threads = atoi(arguments[1]);
  size_t share = strtoull(arguments[2], NULL, 10) / sizeof(vector) / (size_t)threads;
  size_t bytes = share * (size_t)threads * sizeof(vector);
  vector *source = aligned_alloc(64, bytes), *destination = aligned_alloc(64, bytes);
  if (!source || !destination) {
    fprintf(stderr, "limits: no memory for two arrays of %zu bytes\n", bytes);
    return 1;
  }
  memset(source, 1, bytes);
  memset(destination, 1, bytes);
  struct task tasks[threads];
  for (int thread = 0; thread < threads; thread++) {
    size_t first = share * (size_t)thread;
    tasks[thread] = (struct task){COPY, source + first, destination + first, share};
  }
  double moved = 2.0 * (double)bytes;
  printf("{\"copy_gb_per_s\": %.2f, ", moved / fastest(threads, tasks, COPY) * 1e-9);
  printf("\"copy_non_temporal_gb_per_s\": %.2f}\n", moved / fastest(threads, tasks, COPY_NON_TEMPORAL) * 1e-9);
  free(source);
  free(destination);
  return 0;
}
