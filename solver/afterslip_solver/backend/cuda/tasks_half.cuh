// A thread's part in the forces of two tasks behind each other, in FP16.
//
// Included by turns.cuh. A thread has two lanes of an element. What is multiplied is how
// far u differs from that of one of the block's nodes, by lane divided by a power of two so
// that the largest difference is 1/2 to 1, less that of the element's first node. With
// gradients and moduli as `pack_elements` divides them nothing reaches 65504, whatever u
// is: strains stay below 48, stresses below 720, forces of a vertex below 30,000, and of
// all elements that meet there a sixteenth is summed.

#define ABREAST 2
// exponent of two that the largest difference is scaled to
#define LARGEST (-1)
// components of nodes that a thread copies
#define EACH ((3 * SLOTS + THREADS - 1) / THREADS)
// bytes of a vector of all nodes, in planes of components 0 and 1, and of component 2
#define VECTOR (24 * SLOTS)
static_assert(LANES == 4 && TOGETHER % ABREAST == 0, "tasks that share no node");

struct alignas(8) TwoPairs { Pair a[2]; };

// Bytes from the start of a vector of a component of a place; two lanes lie side by side.
__device__ __forceinline__ int component_at(int place, int pair, int c) {
  return c < 2 ? 16 * place + 8 * pair + 4 * c : 16 * SLOTS + 8 * place + 4 * pair;
}

// Put what u differs by from that of one of the block's n nodes in shared memory.
// back: what forces are multiplied by besides; unit: see find_scales.
__device__ __forceinline__ void put_differences(const unsigned* __restrict__ nodes, int n,
                                                unsigned centre,
                                                const float* __restrict__ u, float back,
                                                char* to, float* unit) {
  unsigned entry[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int i = threadIdx.x + k * THREADS;
    entry[k] = i < 3 * n ? __ldg(nodes + i / 3) : NO_NODE;
  }
  Four own[EACH], from[3];
  const float* at = u + (long long)NUMBER(centre) * NODE;
#pragma unroll
  for (int k = 0; k < 3; k++) from[k] = four_of(at + (threadIdx.x + k * THREADS) % 3 * LANES);
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const unsigned node = entry[k] == NO_NODE ? centre : entry[k];
    own[k] = four_of(u + (long long)NUMBER(node) * NODE + (threadIdx.x + k * THREADS) % 3 * LANES);
  }
  float most[LANES] = {}, by[LANES];
#pragma unroll
  for (int k = 0; k < EACH; k++)
#pragma unroll
    for (int m = 0; m < LANES; m++) {
      own[k].a[m] -= from[k % 3].a[m];
      most[m] = max(most[m], fabsf(own[k].a[m]));
    }
  find_scales(LARGEST, most, back, by, unit);
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int i = threadIdx.x + k * THREADS;
    if (i >= 3 * n) break;
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
      const float* a = own[k].a + 2 * pair;
      *(Pair*)(to + component_at(i / 3, pair, i % 3)) =
          pair_of(by[2 * pair] * a[0], by[2 * pair + 1] * a[1]);
    }
  }
}

// v = two lanes of the components at a place of a vector.
__device__ __forceinline__ void read(const char* vector, unsigned place, int pair, Pair v[3]) {
  const TwoPairs two = *(const TwoPairs*)(vector + component_at(place, pair, 0));
  v[0] = two.a[0];
  v[1] = two.a[1];
  v[2] = *(const Pair*)(vector + component_at(place, pair, 2));
}

struct Part {
  int one = threadIdx.x % 16 / 2, pair = threadIdx.x % 2, second = threadIdx.x % 32 / 16;
  uint2 slot[3];
  // see pack_elements
  Pair shape[6];
  // what forces are multiplied by when they are summed
  Pair share;
  Pair o[10][3];
};

// Read what depends on no other reading.
__device__ __forceinline__ void fetch(const Block& block, int task, Part& part) {
  fetch_slots(block, task + part.second, part.one, part.slot);
  const unsigned* q = block.shapes + (long long)(task + part.second) * (6 * PER_WARP) + part.one;
#pragma unroll
  for (int k = 0; k < 6; k++) part.shape[k] = {__ldg(q + k * PER_WARP)};
}

__device__ __forceinline__ void find_forces(const Block& block, const unsigned at[10], Part& part) {
  Pair v[10][3], g[4][3];
#pragma unroll
  for (int a = 0; a < 10; a++) read(block.differences, at[a], part.pair, v[a]);
  // exact, where large sums would round
#pragma unroll
  for (int a = 9; a >= 0; a--)
#pragma unroll
    for (int c = 0; c < 3; c++) v[a][c] = v[a][c] - v[0][c];
#pragma unroll
  for (int k = 0; k < 9; k++)
    g[1 + k / 3][k % 3] = k % 2 ? twice_high(part.shape[k / 2]) : twice_low(part.shape[k / 2]);
  element(v, g, twice_high(part.shape[4]), twice_low(part.shape[5]), part.o);
  part.share = twice_high(part.shape[5]);
}

__device__ __forceinline__ void add(const Block& block, const unsigned at[10], Part& part) {
#pragma unroll
  for (int a = 0; a < 10; a++) {
    Pair before[3];
    read(block.sum, at[a], part.pair, before);
#pragma unroll
    for (int c = 0; c < 3; c++)
      part.o[a][c] = multiply_add(part.share, part.o[a][c], before[c]);
  }
#pragma unroll
  for (int a = 0; a < 10; a++) {
    *(TwoPairs*)(block.sum + component_at(at[a], part.pair, 0)) = {part.o[a][0], part.o[a][1]};
    *(Pair*)(block.sum + component_at(at[a], part.pair, 2)) = part.o[a][2];
  }
}
