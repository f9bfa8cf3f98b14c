/* Runs compiled models from C, on CPUs: programs that `tilewright export` wrote, each one file with code and weights.
 *
 *   tw_program *program = tw_open("encoder.twp", 0);
 *   if (!program || !tw_call(program, inputs, outputs))
 *     fprintf(stderr, "%s\n", tw_error());
 *   tw_close(program);
 *
 * The library needs a C++ standard library and threads, nothing else: no Python, LLVM or IREE. A file contains native
 * code, so open only what you would run. Programs are independent of each other; different threads may use the same
 * program, whose calls then take turns. */
#ifndef TILEWRIGHT_RUNTIME_H
#define TILEWRIGHT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Alignment in bytes of the memory for results: `aligned_alloc(TW_ALIGNMENT, size)`, with a size that is a multiple. */
#define TW_ALIGNMENT 64

/* A program that is ready to be called. */
typedef struct tw_program tw_program;

/* An input or an output: a contiguous tensor, the last dim innermost. */
typedef struct {
  const char *name;     /* as the model calls it */
  const char *dtype;    /* numpy's name of the element type: "float32", "bfloat16", "int64", "bool", ... */
  size_t rank;          /* number of dims */
  const int64_t *shape; /* size of each dim, in elements */
  size_t bytes;         /* size of the tensor */
  size_t alignment;     /* alignment in bytes that its memory needs */
} tw_tensor;

/* Opens a program and loads its code. `threads` is the number of threads that calls use, of which the caller is one; 0
 * stands for the number that the program was compiled for. Weights are mapped, so processes share them; the file must
 * not change while the program is open. Returns NULL if the file is missing, damaged or of another version, or if this
 * processor lacks an instruction set that the code uses; `tw_error` then says why. */
TW_API tw_program *tw_open(const char *path, unsigned threads);

/* Frees a program. No call may be running. NULL is allowed. */
TW_API void tw_close(tw_program *program);

/* The inputs and outputs, in the order of the model. What they point to lives as long as the program. An index out of
 * range gives NULL. */
TW_API size_t tw_input_count(const tw_program *program);
TW_API size_t tw_output_count(const tw_program *program);
TW_API const tw_tensor *tw_input(const tw_program *program, size_t index);
TW_API const tw_tensor *tw_output(const tw_program *program, size_t index);

/* Runs the program: reads every input and writes every output, each at its address and of the size and alignment that
 * its `tw_tensor` states. No output may overlap another tensor. Returns false if an address is NULL or misaligned, or
 * if a kernel fails; `tw_error` then says why. */
TW_API bool tw_call(tw_program *program, const void *const *inputs, void *const *outputs);

/* The error of the last function of this thread that failed, as a sentence; "" if none has. The text is valid until the
 * next failure on this thread. */
TW_API const char *tw_error(void);

#ifdef __cplusplus
}
#endif

#endif
