// AMX instructions, with one function for each behaviour of the emulator that is tested.
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/// Configures three tiles: tile 0 has accumulators, tile 1 the rows of a, and tile 2 groups of K by columns of b.
static void configure(int rows, int groups, int lanes) {
  uint8_t bytes[64] = {1};
  const int shapes[3][2] = {{rows, 4 * lanes}, {rows, 4 * groups}, {groups, 4 * lanes}};
  for (int tile = 0; tile < 3; ++tile) {
    bytes[48 + tile] = (uint8_t)shapes[tile][0];
    bytes[16 + 2 * tile] = (uint8_t)shapes[tile][1];
  }
  _tile_loadconfig(bytes);
}

static void load(void *sums, const void *a, const void *b, int groups, int lanes) {
  _tile_loadd(0, sums, 4 * lanes);
  _tile_loadd(1, a, 4 * groups);
  _tile_stream_loadd(2, b, 4 * lanes);
}

static void finish(void *sums, int lanes) {
  _tile_stored(0, sums, 4 * lanes);
  _tile_release();
}

#define PRODUCT(name, instruction)                                                                                     \
  void name(void *sums, const void *a, const void *b, int rows, int groups, int lanes) {                               \
    configure(rows, groups, lanes);                                                                                    \
    load(sums, a, b, groups, lanes);                                                                                   \
    instruction(0, 1, 2);                                                                                              \
    finish(sums, lanes);                                                                                               \
  }
PRODUCT(pairs, _tile_dpbf16ps)
PRODUCT(quads_ss, _tile_dpbssd)
PRODUCT(quads_su, _tile_dpbsud)
PRODUCT(quads_us, _tile_dpbusd)
PRODUCT(quads_uu, _tile_dpbuud)

void tiles_that_do_not_fit(void) {
  configure(3, 4, 5);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_dpbf16ps(0, 2, 1);
  _tile_release();
}

void tile_without_a_shape(void) {
  configure(3, 4, 5);
  _tile_zero(6);
  _tile_release();
}

void impossible_shape(void) { configure(17, 4, 5); }
