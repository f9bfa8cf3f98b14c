// Emulates AMX instructions on processors without AMX. A handler of SIGILL decodes an instruction, executes it on tiles
// that each thread keeps in memory, and resumes behind it. The emulator is as strict as the processor: configurations
// and combinations of tiles that the processor would reject are errors, which the test reads. The semantics are those
// of Intel's Software Developer's Manual, volume 2.
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { kTiles = 8, kRows = 16, kRowBytes = 64 };

typedef struct {
  int rows, columnBytes;
  uint8_t bytes[kRows][kRowBytes];
} Tile;

typedef struct {
  uint8_t palette, configuration[64];
  Tile tiles[kTiles];
} State;

static __thread State *state;
static struct sigaction before;
static char error[256];
static long counts[4]; // configurations, loads, stores, products

static void fail(const char *what) {
  if (!error[0])
    snprintf(error, sizeof error, "%s", what);
}

// --- configuration ---

static void release(void) { memset(state, 0, sizeof *state); }

static void configure(const uint8_t *memory) {
  release();
  if (memory[0] == 0)
    return;
  if (memory[0] != 1)
    return fail("ldtilecfg: unknown palette");
  if (memory[1] != 0)
    return fail("ldtilecfg: the start row is not zero");
  for (int i = 2; i < 16; ++i)
    if (memory[i] != 0)
      return fail("ldtilecfg: a reserved byte is not zero");
  for (int tile = 0; tile < 16; ++tile) {
    int bytes = memory[16 + 2 * tile] | memory[17 + 2 * tile] << 8, rows = memory[48 + tile];
    if (tile >= kTiles ? bytes || rows : bytes > kRowBytes || rows > kRows || !bytes != !rows)
      return fail("ldtilecfg: a tile has no possible shape");
    if (tile < kTiles) {
      state->tiles[tile].rows = rows;
      state->tiles[tile].columnBytes = bytes;
    }
  }
  state->palette = 1;
  memcpy(state->configuration, memory, 64);
  __atomic_fetch_add(&counts[0], 1, __ATOMIC_RELAXED);
}

/// Returns the tile, or null and an error if it is not configured.
static Tile *tileNumber(int number) {
  if (number >= kTiles || !state->palette || state->tiles[number].rows == 0) {
    fail("the tile is not configured");
    return NULL;
  }
  return &state->tiles[number];
}

// --- memory ---

static void loadTile(Tile *tile, const uint8_t *memory, int64_t stride) {
  memset(tile->bytes, 0, sizeof tile->bytes);
  for (int row = 0; row < tile->rows; ++row)
    memcpy(tile->bytes[row], memory + row * stride, tile->columnBytes);
  __atomic_fetch_add(&counts[1], 1, __ATOMIC_RELAXED);
}

static void storeTile(const Tile *tile, uint8_t *memory, int64_t stride) {
  for (int row = 0; row < tile->rows; ++row)
    memcpy(memory + row * stride, tile->bytes[row], tile->columnBytes);
  __atomic_fetch_add(&counts[2], 1, __ATOMIC_RELAXED);
}

// --- products ---

static float flushed(float value) { return fpclassify(value) == FP_SUBNORMAL ? copysignf(0, value) : value; }

static float widened(const uint8_t *bf16) {
  uint32_t bits = (uint32_t)bf16[0] << 16 | (uint32_t)bf16[1] << 24;
  float value;
  memcpy(&value, &bits, 4);
  return flushed(value);
}

/// Even and odd elements along K have separate accumulators, which start at zero, and each multiply-add is fused.
static float sumOfPairs(const Tile *a, const Tile *b, int row, int lane, float sum) {
  float even = 0, odd = 0;
  for (int group = 0; group < a->columnBytes / 4; ++group) {
    const uint8_t *left = &a->bytes[row][4 * group], *right = &b->bytes[group][4 * lane];
    even = flushed(fmaf(widened(left), widened(right), even));
    odd = flushed(fmaf(widened(left + 2), widened(right + 2), odd));
  }
  return flushed(flushed(sum) + flushed(even + odd));
}

static uint32_t sumOfQuads(const Tile *a, const Tile *b, int row, int lane, uint32_t sum, int isSignedA,
                           int isSignedB) {
  for (int group = 0; group < a->columnBytes / 4; ++group)
    for (int term = 0; term < 4; ++term) {
      uint8_t left = a->bytes[row][4 * group + term], right = b->bytes[group][4 * lane + term];
      int32_t x = isSignedA ? (int8_t)left : left, y = isSignedB ? (int8_t)right : right;
      sum += (uint32_t)(x * y);
    }
  return sum;
}

static void multiply(int numberC, int numberA, int numberB, int isFloat, int isSignedA, int isSignedB) {
  Tile *c = tileNumber(numberC), *a = tileNumber(numberA), *b = tileNumber(numberB);
  if (!c || !a || !b)
    return;
  if (numberC == numberA || numberC == numberB || numberA == numberB)
    return fail("product: two operands are the same tile");
  if (c->columnBytes % 4 || a->columnBytes % 4 || b->columnBytes % 4)
    return fail("product: rows are not a multiple of 4 bytes");
  if (c->rows != a->rows || c->columnBytes != b->columnBytes || a->columnBytes / 4 != b->rows)
    return fail("product: the shapes of the tiles do not fit together");
  for (int row = 0; row < c->rows; ++row)
    for (int lane = 0; lane < c->columnBytes / 4; ++lane) {
      uint8_t *at = &c->bytes[row][4 * lane];
      if (isFloat) {
        float sum;
        memcpy(&sum, at, 4);
        sum = sumOfPairs(a, b, row, lane, sum);
        memcpy(at, &sum, 4);
      } else {
        uint32_t sum;
        memcpy(&sum, at, 4);
        sum = sumOfQuads(a, b, row, lane, sum, isSignedA, isSignedB);
        memcpy(at, &sum, 4);
      }
    }
  __atomic_fetch_add(&counts[3], 1, __ATOMIC_RELAXED);
}

// --- decoding ---

typedef struct {
  const uint8_t *next;
  greg_t *registers;
  int reg, rm, isMemory;
  uint64_t base; ///< address of the memory operand without its index
  int64_t index; ///< scaled index in bytes
  int hasSib;
} Operands;

static uint64_t valueOf(const greg_t *registers, int number) {
  static const int places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return (uint64_t)registers[places[number]];
}

static int32_t displacement(Operands *operands, int bytes) {
  int32_t value = 0;
  if (bytes == 1)
    value = (int8_t)*operands->next;
  else if (bytes == 4)
    memcpy(&value, operands->next, 4);
  operands->next += bytes;
  return value;
}

static void decodeOperands(Operands *operands, int extendReg, int extendIndex, int extendBase) {
  uint8_t modrm = *operands->next++;
  int mode = modrm >> 6;
  operands->reg = (modrm >> 3 & 7) | extendReg << 3;
  operands->rm = (modrm & 7) | extendBase << 3;
  operands->isMemory = mode != 3;
  if (mode == 3)
    return;
  int base = modrm & 7, index = 4, scale = 0;
  operands->hasSib = base == 4;
  if (operands->hasSib) {
    uint8_t sib = *operands->next++;
    scale = sib >> 6;
    index = (sib >> 3 & 7) | extendIndex << 3;
    base = sib & 7;
  }
  int isBare = mode == 0 && base == 5; // a displacement without a base register
  int32_t by = displacement(operands, mode == 1 ? 1 : mode == 2 || isBare ? 4 : 0);
  if (!isBare)
    operands->base = valueOf(operands->registers, base | extendBase << 3);
  else if (!operands->hasSib)
    operands->base = (uint64_t)operands->next;
  operands->base += (int64_t)by;
  if (operands->hasSib && index != 4)
    operands->index = (int64_t)(valueOf(operands->registers, index) << scale);
}

/// Executes the instruction and returns 1 if it is one of AMX; returns 0 otherwise.
static int execute(greg_t *registers) {
  const uint8_t *code = (const uint8_t *)registers[REG_RIP];
  // AMX instructions have a three-byte VEX prefix with opcode map 0F38, W = 0 and L = 0.
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0)
    return 0;
  int prefix = code[2] & 3, opcode = code[3], third = ~code[2] >> 3 & 15;
  enum { kNone, k66, kF3, kF2 };
  if (opcode != 0x49 && opcode != 0x4B && opcode != 0x5C && opcode != 0x5E)
    return 0;
  Operands operands = {.next = code + 4, .registers = registers};
  decodeOperands(&operands, !(code[1] & 0x80), !(code[1] & 0x40), !(code[1] & 0x20));
  if (opcode == 0x49) {
    if (prefix == kNone && operands.isMemory)
      configure((const uint8_t *)(operands.base + (uint64_t)operands.index));
    else if (prefix == kNone)
      release();
    else if (prefix == k66 && operands.isMemory)
      memcpy((uint8_t *)(operands.base + (uint64_t)operands.index), state->configuration, 64);
    else if (prefix == kF2 && !operands.isMemory) {
      Tile *tile = tileNumber(operands.reg);
      if (tile)
        memset(tile->bytes, 0, sizeof tile->bytes);
    } else
      return 0;
  } else if (opcode == 0x4B) {
    if (!operands.isMemory || prefix == kNone)
      return 0;
    if (!operands.hasSib)
      fail("the address of a tile has no index register");
    Tile *tile = tileNumber(operands.reg);
    if (tile && prefix == kF3)
      storeTile(tile, (uint8_t *)operands.base, operands.index);
    else if (tile)
      loadTile(tile, (const uint8_t *)operands.base, operands.index);
  } else {
    if (operands.isMemory || (opcode == 0x5C && prefix != kF3))
      return 0;
    int signs = opcode == 0x5E ? prefix : 0; // F2: both operands are signed; F3: the first; 66: the second
    multiply(operands.reg, operands.rm, third, opcode == 0x5C, signs == kF2 || signs == kF3,
             signs == kF2 || signs == k66);
  }
  registers[REG_RIP] = (greg_t)operands.next;
  return 1;
}

static void onIllegal(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  if (!state)
    state = calloc(1, sizeof *state);
  if (!execute(((ucontext_t *)context)->uc_mcontext.gregs))
    sigaction(SIGILL, &before, NULL); // the instruction is not AMX: it traps again, in the previous handler
}

// --- interface for the test ---

void emulator_install(void) {
  struct sigaction action = {.sa_sigaction = onIllegal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGILL, &action, &before);
  memset(counts, 0, sizeof counts);
  error[0] = 0;
}

void emulator_remove(void) { sigaction(SIGILL, &before, NULL); }

const char *emulator_error(void) { return error; }

long emulator_count(int kind) { return counts[kind]; }
