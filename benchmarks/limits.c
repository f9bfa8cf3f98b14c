/* Measures the peak rates of the machine: fused multiply-adds from registers, and copies of arrays that exceed all
   caches. This is both a program that prints the rates, and a library with the copy (see `peers/copy_loop.py`). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIALS 7
#define CHAINS 16 /* independent accumulators; more than FMA latency times FMA units per core */
#define ROUNDS 1000000L

typedef float vector __attribute__((vector_size(64))); /* two registers if they have 32 bytes */

enum loop { FMA, COPY, COPY_NON_TEMPORAL };

struct task {
  enum loop loop;
  const vector *source;
  vector *destination;
  size_t vectors;
};

static pthread_barrier_t barrier;
static volatile float sink;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void multiply_and_add(void) {
  vector accumulators[CHAINS], factor, addend;
  for (int lane = 0; lane < 16; lane++) {
    factor[lane] = 1.0000001f;
    addend[lane] = 1e-9f;
  }
  for (int chain = 0; chain < CHAINS; chain++)
    accumulators[chain] = factor * (float)chain;
  for (long round = 0; round < ROUNDS; round++)
#pragma clang loop unroll(full)
    for (int chain = 0; chain < CHAINS; chain++)
      accumulators[chain] = accumulators[chain] * factor + addend;
  for (int chain = 0; chain < CHAINS; chain++)
    sink = accumulators[chain][chain];
}

static void copy(const struct task *task) {
  for (size_t index = 0; index < task->vectors; index++)
    task->destination[index] = task->source[index];
}

static void copy_non_temporal(const struct task *task) {
  for (size_t index = 0; index < task->vectors; index++)
    __builtin_nontemporal_store(task->source[index], &task->destination[index]);
}

static void *run(void *argument) {
  const struct task *task = argument;
  for (int trial = 0; trial < TRIALS; trial++) {
    pthread_barrier_wait(&barrier);
    if (task->loop == FMA)
      multiply_and_add();
    else if (task->loop == COPY)
      copy(task);
    else
      copy_non_temporal(task);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void *copy_share(void *argument) {
  const struct task *task = argument;
  (task->loop == COPY ? copy : copy_non_temporal)(task);
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
    tasks[thread] = (struct task){FMA, source + first, destination + first, share};
  }
  double operations = 2.0 * 16 * CHAINS * (double)ROUNDS * threads;
  double moved = 2.0 * (double)bytes;
  printf("{\"fma_gflops\": %.1f, ", operations / fastest(threads, tasks, FMA) * 1e-9);
  printf("\"copy_gb_per_s\": %.2f, ", moved / fastest(threads, tasks, COPY) * 1e-9);
  printf("\"copy_non_temporal_gb_per_s\": %.2f}\n", moved / fastest(threads, tasks, COPY_NON_TEMPORAL) * 1e-9);
  free(source);
  free(destination);
  return 0;
}
