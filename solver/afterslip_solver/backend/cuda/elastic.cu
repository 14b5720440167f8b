// Second-order tetrahedra, element by element, LANES right-hand sides at once.
//
// Compile with REAL (float|double, arithmetic and result), INPUT (the vector's), LANES,
// THREADS, RESIDENT (blocks per multiprocessor, which bounds the registers), TOGETHER (tasks
// behind each other that share no node), FINISH (what becomes of the product), REPEATABLE
// (0|1, how the sums of blocks are added) and PACKED (0|1, of what inverse is, see
// nodes.cuh).

#include "nodes.cuh"
#include "element.cuh"
#include "turns.cuh"

#if FINISH == PRODUCT
// sums (LANES) of one thread block, always in the same order; threads keep their lanes,
// of which they have WIDTH
__device__ __forceinline__ void add_chunk_dots(const double dot[WIDTH], double* sums) {
  constexpr int GROUPS = LANES / WIDTH;
  __shared__ double part[WARPS][LANES];
  const int warp = threadIdx.x / 32, i = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < WIDTH; m++) {
    double s = dot[m];
#pragma unroll
    for (int away = 16; away >= GROUPS; away /= 2) s += __shfl_down_sync(~0u, s, away);
    if (i < GROUPS) part[warp][WIDTH * i + m] = s;
  }
  __syncthreads();
  if (threadIdx.x < LANES) {
    double total = 0;
    for (int w = 0; w < WARPS; w++) total += part[w][threadIdx.x];
    sums[threadIdx.x] = total;
  }
}
#endif

// K u on the nodes that one block of elements has alone, finished. Its sums of nodes that
// it shares are added to out atomically, which must be 0 there before, or, REPEATABLE,
// put into `partial`, one place per block and node. `join` then finishes those nodes;
// after atomic sums a product has nothing left to finish.
//
// A block owns a compact set of elements and sums their forces in shared memory.
// PER_WARP elements (a "task") share a warp and no node. Tasks add in their order,
// TOGETHER at a time: each barrier lets the warps of the next ones go on.
//
// which (thread block): the block of elements.
// tasks (block + 1): first task of each block, a multiple of WARPS.
// slots (block + 1): first entry of each block in nodes.
// nodes: see NUMBER; padding is NO_NODE.
// patterns (block): row of the block's first task in local, which blocks that are
// alike share.
// local (row, PER_WARP, 12): a block's node numbers of an element, 0xffff where there
// is none.
// gradients (task, 9, PER_WARP) and moduli (task, 2, PER_WARP), the latter multiplied by
// V/20.
// sums (block, LANES): shares of u K u, or null, or of out b; see FINISH.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    apply(const int* __restrict__ which, const int* __restrict__ tasks, const int* __restrict__ slots,
          const unsigned* __restrict__ nodes, const int* __restrict__ patterns,
          const uint2* __restrict__ local, const real* __restrict__ gradients,
          const real* __restrict__ moduli, const input* __restrict__ u,
          const real* __restrict__ b, const real* __restrict__ inverse, real gain,
          real* partial, real* out, double* sums) {
  extern __shared__ __align__(16) char memory[];
  const int block = which[blockIdx.x];
  const int first = slots[block], n = slots[block + 1] - first;
  real* sum = (real*)memory;
  unsigned* number = (unsigned*)(sum + n * NODE);
  for (int i = threadIdx.x; i < n; i += THREADS) number[i] = nodes[first + i];
  for (int i = threadIdx.x; i < n * CHUNKS; i += THREADS)
    *(float4*)(sum + i * WIDTH) = make_float4(0, 0, 0, 0);
  __syncthreads();

  const int start = tasks[block], shift = patterns[block] - start;
  add_forces({local, shift, gradients, moduli, u, number, sum}, start, tasks[block + 1]);
  __syncthreads();

#if FINISH == PRODUCT || FINISH == RESIDUAL
  double dot[WIDTH] = {};
  for (int i = threadIdx.x; i < n * CHUNKS; i += THREADS) {
    const unsigned entry = number[i / CHUNKS];
    if (entry == NO_NODE) continue;
    const int part = i % CHUNKS;
    const bool held = HELD(entry, part * WIDTH / LANES);
    Chunk value = *(const Chunk*)(sum + i * WIDTH);
    const long long p = (long long)NUMBER(entry) * NODE + part * WIDTH;
    // a block's own share of u K u; u is 0 on held components
    if (FINISH == PRODUCT && sums) {
#pragma unroll
      for (int m = 0; m < WIDTH; m++) dot[m] += (double)u[p + m] * (double)value.a[m];
    }
    Chunk* place = (Chunk*)(out + p);
    if (!SHARED(entry)) {
      if (ORDERED(entry)) {
        const Chunk before = *place;
#pragma unroll
        for (int m = 0; m < WIDTH; m++) value.a[m] += before.a[m];
      }
      if (held) value = Chunk{};
      if (FINISH == RESIDUAL) {
        const Chunk right = *(const Chunk*)(b + p);
#pragma unroll
        for (int m = 0; m < WIDTH; m++) value.a[m] = right.a[m] - value.a[m];
      }
      *place = value;
    } else if (ORDERED(entry)) {
      *place = value;
    } else {
#if REPEATABLE
      *(Chunk*)(partial + (long long)first * NODE + i * WIDTH) = value;
#else
      if (!held) add_global(out + p, value.a);
#endif
    }
  }
#if FINISH == PRODUCT
  if (sums) add_chunk_dots(dot, sums + (long long)block * LANES);
#endif
#else
  const Rest rest = {u, b, inverse, gain, out};
  real dot[4] = {};
  for (int i = threadIdx.x; i < n * QUADS; i += THREADS) {
    const int slot = i / QUADS, quad = i % QUADS;
    const unsigned entry = number[slot];
    if (entry == NO_NODE) continue;
    Four s[3];
#pragma unroll
    for (int c = 0; c < 3; c++)
      s[c] = *(const Four*)(sum + slot * NODE + c * LANES + 4 * quad);
#if REPEATABLE
    if (SHARED(entry) && !ORDERED(entry)) {
      real* to = partial + (long long)(first + slot) * NODE + 4 * quad;
#pragma unroll
      for (int c = 0; c < 3; c++) *(Four*)(to + c * LANES) = s[c];
      continue;
    }
#endif
    const input* before = u + (long long)NUMBER(entry) * NODE + 4 * quad;
    put_sum(entry, quad, s, rest, [=](int c) { return lanes_of(before, c); }, dot);
  }
#if FINISH == RELAX_SUMMED
  static_assert(LANES == 4, "sums of all lanes");
  add_dots(dot, sums + (long long)block * LANES);
#endif
#endif
}

// Finish four lanes of a node that blocks share, the i-th of all; see `join`.
__device__ __forceinline__ void join_node(const unsigned* __restrict__ entries,
                                          const int* __restrict__ starts,
                                          const int* __restrict__ places,
                                          const real* partial, long long i,
                                          const Rest& rest, real dot[4]) {
  const int k = i / QUADS, quad = i % QUADS;
  const unsigned entry = entries[k];
  const long long p = (long long)NUMBER(entry) * NODE + 4 * quad;
  Four s[3] = {};
#if REPEATABLE
  for (int j = starts[k]; j < starts[k + 1]; j++) {
    const real* from = partial + (long long)places[j] * NODE + 4 * quad;
#pragma unroll
    for (int c = 0; c < 3; c++) {
      const Four v = *(const Four*)(from + c * LANES);
#pragma unroll
      for (int m = 0; m < 4; m++) s[c].a[m] += v.a[m];
    }
  }
#else
#pragma unroll
  for (int c = 0; c < 3; c++)
    s[c] = *(const Four*)(rest.out + p + c * LANES);
#endif
  const input* before = rest.u + p;
  finish_node(entry, quad, s, rest, [=](int c) { return lanes_of(before, c); }, dot);
}

// Finish the nodes that blocks share.
// entries (n): as in nodes. starts (n + 1) and places: where a node's sums are.
// sums (thread block, LANES): shares of out b; see FINISH.
extern "C" __global__ void __launch_bounds__(THREADS)
    join(int n, const unsigned* __restrict__ entries, const int* __restrict__ starts,
         const int* __restrict__ places, const input* __restrict__ u,
         const real* __restrict__ b, const real* __restrict__ inverse, real gain,
         const real* partial, real* out, double* sums) {
  const Rest rest = {u, b, inverse, gain, out};
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  real dot[4] = {};
  if (i < (long long)n * QUADS)
    join_node(entries, starts, places, partial, i, rest, dot);
#if FINISH == RELAX_SUMMED
  add_dots(dot, sums + (long long)blockIdx.x * LANES);
#endif
}

// f = 0 on the nodes that several blocks share
extern "C" __global__ void clear(int n, const unsigned* __restrict__ entries, real* f) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * CHUNKS) return;
  const long long node = NUMBER(entries[i / CHUNKS]);
  *(float4*)(f + node * NODE + (i % CHUNKS) * WIDTH) = make_float4(0, 0, 0, 0);
}

// f += K u with atomics, held components included: needs no plan, and checks `apply`
extern "C" __global__ void apply_plainly(
    int n, const int* __restrict__ elements, const real* __restrict__ gradients,
    const real* __restrict__ volume, const real* __restrict__ lam,
    const real* __restrict__ mu, const real* __restrict__ u, real* f) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * LANES) return;
  const long long e = i / LANES, lane = i % LANES;
  real v[10][3], g[4][3], o[10][3];
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++)
      v[a][c] = u[(long long)elements[e * 10 + a] * NODE + c * LANES + lane];
#pragma unroll
  for (int k = 1; k < 4; k++)
#pragma unroll
    for (int x = 0; x < 3; x++) g[k][x] = gradients[e * 12 + k * 3 + x];
  const real w = volume[e] / real(20);
  element(v, g, w * lam[e], w * mu[e], o);
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++)
      atomicAdd(f + (long long)elements[e * 10 + a] * NODE + c * LANES + lane, o[a][c]);
}
