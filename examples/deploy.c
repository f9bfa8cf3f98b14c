/* Deployment in C, without Python or IREE: opens an exported program, calls it, and checks and times its results.
 *
 *   python -m benchmarks.workloads bert-small -o bert-small.onnx
 *   tilewright export bert-small.onnx -o bert-small.twp
 *   cc examples/deploy.c $(tilewright export --cflags) -o deploy
 *   ./deploy bert-small.twp [INPUTS [OUTPUTS]]
 *
 * INPUTS holds the bytes of all inputs, one after another; without it, they are zeros. OUTPUTS gets those of the
 * results. The machine that runs it needs `deploy`, bert-small.twp and libtilewright_runtime.so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tilewright/runtime.h>

static void stop(const char *message) {
  fprintf(stderr, "error: %s\n", message);
  exit(1);
}

/* Returns memory for a tensor. aligned_alloc takes multiples of the alignment. */
static void *allocate(const tw_tensor *tensor) {
  size_t size = (tensor->bytes / TW_ALIGNMENT + 1) * TW_ALIGNMENT;
  void *memory = aligned_alloc(TW_ALIGNMENT, size);
  if (!memory)
    stop("out of memory");
  return memset(memory, 0, size);
}

static void print(const char *kind, const tw_tensor *tensor) {
  printf("%s %s: %s[", kind, tensor->name, tensor->dtype);
  for (size_t dim = 0; dim < tensor->rank; ++dim)
    printf("%s%lld", dim ? "x" : "", (long long)tensor->shape[dim]);
  printf("], %zu bytes\n", tensor->bytes);
}

static double milliseconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(int count, char **arguments) {
  if (count < 2)
    stop("usage: deploy PROGRAM.twp [INPUTS [OUTPUTS]]");
  tw_program *program = tw_open(arguments[1], 0);
  if (!program)
    stop(tw_error());

  size_t inputs = tw_input_count(program), outputs = tw_output_count(program);
  void **read = calloc(inputs + 1, sizeof *read), **written = calloc(outputs + 1, sizeof *written);
  FILE *given = count > 2 ? fopen(arguments[2], "rb") : NULL;
  if (count > 2 && !given)
    stop("the inputs cannot be read");
  for (size_t i = 0; i < inputs; ++i) {
    print("input", tw_input(program, i));
    read[i] = allocate(tw_input(program, i));
    if (given && fread(read[i], 1, tw_input(program, i)->bytes, given) != tw_input(program, i)->bytes)
      stop("the file of inputs is too short");
  }
  for (size_t i = 0; i < outputs; ++i) {
    print("output", tw_output(program, i));
    written[i] = allocate(tw_output(program, i));
  }

  if (!tw_call(program, (const void *const *)read, written))
    stop(tw_error());
  const int calls = 10;
  double started = milliseconds();
  for (int call = 0; call < calls; ++call) {
    void *before = allocate(tw_output(program, 0));
    memcpy(before, written[0], tw_output(program, 0)->bytes);
    if (!tw_call(program, (const void *const *)read, written))
      stop(tw_error());
    if (memcmp(before, written[0], tw_output(program, 0)->bytes) != 0)
      stop("two calls on the same inputs have different results");
    free(before);
  }
  printf("%.3f ms a call, with a copy of the first output\n", (milliseconds() - started) / calls);

  FILE *results = count > 3 ? fopen(arguments[3], "wb") : NULL;
  for (size_t i = 0; results && i < outputs; ++i)
    fwrite(written[i], 1, tw_output(program, i)->bytes, results);
  if (results && fclose(results) != 0)
    stop("the results cannot be written");
  for (size_t i = 0; i < inputs; ++i)
    free(read[i]);
  for (size_t i = 0; i < outputs; ++i)
    free(written[i]);
  free(read);
  free(written);
  if (given)
    fclose(given);
  tw_close(program);
  return 0;
}
