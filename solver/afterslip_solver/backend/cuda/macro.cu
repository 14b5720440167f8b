// K u by stencils: one tetrahedron that was halved three times a thread block, four lanes.
//
// Compile with REAL, INPUT (of u: REAL or float), LANES (4), THREADS, RESIDENT (blocks per
// multiprocessor), FINISH, REPEATABLE (0), and the sizes of `Tasks` in macro_tasks.py:
// N_NODE of a macro element, N_BLOCK stencil blocks, ZERO the place that holds zeros,
// N_PLACE places of a plane.
//
// A block of the stiffness is V (lam B + mu B^T + mu tr(B) I) with B = Gamma^T S Gamma, S
// (3 x 3) the same in all macro elements (stencils.py). The blocks are made in shared
// memory beside the macro element's vector; so its matrix is read from nowhere.

#include "nodes.cuh"

#define NOTHING 0xffffu
#define ANY 0
#define SYMMETRIC 1

// a plane holds 16 bytes of a component of all nodes: four lanes in FP32, two in FP64
#define PLANE (N_PLACE * WIDTH)
#define PLANES (LANES / WIDTH)
// parts of the blocks: eight coefficients, and the ninth
#define MOST 8

struct Task { int reads, steps, kind, rows; };

// The component of a node whose first 16 bytes are at p.
__device__ __forceinline__ Four component(const real* p, int c) {
  Four v;
#pragma unroll
  for (int k = 0; k < PLANES; k++)
    *(Chunk*)(v.a + k * WIDTH) = *(const Chunk*)(p + (c * PLANES + k) * PLANE);
  return v;
}

// Copy the vector to its places.
__device__ __forceinline__ void load(const unsigned* __restrict__ nodes,
                                     const unsigned short* __restrict__ places,
                                     const input* __restrict__ u, real* vector) {
  if (threadIdx.x < 3 * LANES)
    vector[threadIdx.x / WIDTH * PLANE + ZERO * WIDTH + threadIdx.x % WIDTH] = 0;
  for (int i = threadIdx.x; i < 3 * N_NODE; i += THREADS) {
    const int node = i / 3, c = i - 3 * node;
    const unsigned entry = __ldg(nodes + node);
    const FourIn w = *(const FourIn*)(u + (long long)NUMBER(entry) * NODE + c * LANES);
    Four v;
#pragma unroll
    for (int m = 0; m < LANES; m++) v.a[m] = w.a[m];
    real* to = vector + c * PLANES * PLANE + __ldg(places + node) * WIDTH;
#pragma unroll
    for (int k = 0; k < PLANES; k++)
      *(Chunk*)(to + k * PLANE) = *(const Chunk*)(v.a + k * WIDTH);
  }
}

// Make the stencil blocks of one macro element.
// matrices (9, N_BLOCK): S. shape (12): Gamma by rows, V lam, V mu.
__device__ __forceinline__ void make_blocks(const real* __restrict__ matrices,
                                            const real* __restrict__ shape, real* most,
                                            real* last) {
  real g[3][3];
#pragma unroll
  for (int m = 0; m < 3; m++)
#pragma unroll
    for (int x = 0; x < 3; x++) g[m][x] = __ldg(shape + 3 * m + x);
  const real lam = __ldg(shape + 9), mu = __ldg(shape + 10);
  for (int i = threadIdx.x; i < N_BLOCK; i += THREADS) {
    real h[3][3], b[3][3], k[9];
#pragma unroll
    for (int m = 0; m < 3; m++) {
      real s[3];
#pragma unroll
      for (int n = 0; n < 3; n++) s[n] = __ldg(matrices + (3 * m + n) * N_BLOCK + i);
#pragma unroll
      for (int x = 0; x < 3; x++) h[m][x] = s[0] * g[0][x] + s[1] * g[1][x] + s[2] * g[2][x];
    }
#pragma unroll
    for (int a = 0; a < 3; a++)
#pragma unroll
      for (int x = 0; x < 3; x++) b[a][x] = g[0][a] * h[0][x] + g[1][a] * h[1][x] + g[2][a] * h[2][x];
    const real trace = mu * (b[0][0] + b[1][1] + b[2][2]);
#pragma unroll
    for (int a = 0; a < 3; a++)
#pragma unroll
      for (int x = 0; x < 3; x++)
        k[3 * a + x] = lam * b[a][x] + mu * b[x][a] + (a == x ? trace : real(0));
    *(Four*)(most + i * MOST) = {k[0], k[1], k[2], k[3]};
    *(Four*)(most + i * MOST + 4) = {k[4], k[5], k[6], k[7]};
    last[i] = k[8];
  }
}

// Put a row where it belongs: finished, or stored or added for others. u(c) is what was
// multiplied; total, of the thread, gets its share of the sums.
template <class Before>
__device__ __forceinline__ void finish_row(unsigned entry, Four s[3], const Rest& rest,
                                           Before u, Four* total) {
  real dot[LANES] = {};
#if FINISH == PRODUCT
  // the macro element's own share of u K u; u is 0 on held components
  if (total) {
#pragma unroll
    for (int c = 0; c < 3; c++) {
      const Four v = u(c);
#pragma unroll
      for (int m = 0; m < LANES; m++) dot[m] += v.a[m] * s[c].a[m];
    }
#pragma unroll
    for (int m = 0; m < LANES; m++) total->a[m] += dot[m];
  }
#endif
  real* to = rest.out + (long long)NUMBER(entry) * NODE;
  if (ORDERED(entry)) store_or_add(entry, s, to);
  if (!SHARED(entry)) {
    finish_node(entry, 0, s, rest, u, dot);
#if FINISH == RELAX_SUMMED
#pragma unroll
    for (int m = 0; m < LANES; m++) total->a[m] += dot[m];
#endif
    return;
  }
  if (ORDERED(entry)) return;
#pragma unroll
  for (int c = 0; c < 3; c++)
    if (!HELD(entry, c))
#pragma unroll
      for (int k = 0; k < LANES; k += WIDTH) add_global(to + c * LANES + k, s[c].a + k);
}

// Compute ROWS rows a thread. A step is a block and the place it multiplies, or, BOTH,
// two places of opposite neighbours.
template <int ROWS, bool BOTH>
__device__ __forceinline__ void multiply(const Task& task, const uint2* __restrict__ reads,
                                         const unsigned* __restrict__ rows,
                                         const unsigned* __restrict__ nodes, const real* vector,
                                         const real* most, const real* last, const Rest& rest,
                                         Four* total) {
  constexpr int PLACES = BOTH ? 2 : 1;
  constexpr int STEPS = 4 / (ROWS * PLACES);
  const int lane = threadIdx.x % 32;
  unsigned entry[ROWS], block = 0;
#pragma unroll
  for (int m = 0; m < ROWS; m++) {
    const unsigned row = __ldg(rows + (task.rows + m) * 32 + lane), rank = row & 0xffffu;
    entry[m] = rank == NOTHING ? NO_NODE : __ldg(nodes + rank);
    block = row >> 16;
  }
  if (entry[0] == NO_NODE) return;
  Four sum[ROWS][3] = {};
  const uint2* from = reads + task.reads + lane;
  const real* own = most + block * MOST;
  const real* ninth = last + block;
  uint2 next = __ldg(from);
#pragma unroll 1
  for (int n = 0; n < task.steps; n += STEPS) {
    const uint2 at = next;
    from += 32;
    if (n + STEPS < task.steps) next = __ldg(from);
    const unsigned place[4] = {at.x & 0xffffu, at.x >> 16, at.y & 0xffffu, at.y >> 16};
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      const Four first = *(const Four*)own, second = *(const Four*)(own + 4);
      const real b[3][3] = {{first.a[0], first.a[1], first.a[2]},
                            {first.a[3], second.a[0], second.a[1]},
                            {second.a[2], second.a[3], *ninth}};
      own += MOST;
      ninth++;
#pragma unroll
      for (int m = 0; m < ROWS; m++) {
        const int j = (k * ROWS + m) * PLACES;
        const real* p = (const real*)((const char*)vector + place[j]);
        Four v[3];
#pragma unroll
        for (int d = 0; d < 3; d++) v[d] = component(p, d);
        if (BOTH) {
          const real* q = (const real*)((const char*)vector + place[j + PLACES - 1]);
#pragma unroll
          for (int d = 0; d < 3; d++) {
            const Four w = component(q, d);
#pragma unroll
            for (int l = 0; l < LANES; l++) v[d].a[l] += w.a[l];
          }
        }
#pragma unroll
        for (int c = 0; c < 3; c++)
#pragma unroll
          for (int d = 0; d < 3; d++)
#pragma unroll
            for (int l = 0; l < LANES; l++) sum[m][c].a[l] += b[c][d] * v[d].a[l];
      }
    }
  }
  // a node is the first of its own neighbours
  const uint2 itself = __ldg(reads + task.reads + lane);
#pragma unroll
  for (int m = 0; m < ROWS; m++) {
    const char* own = (const char*)vector + ((m == 0 ? itself.x : itself.y) & 0xffffu);
    auto u = [own](int c) { return component((const real*)own, c); };
    if (entry[m] != NO_NODE) finish_row(entry[m], sum[m], rest, u, total);
  }
}

// Add K u of the macro elements: as `apply` in elastic.cu does for blocks of elements.
//
// nodes (macro, N_NODE): by rank, see NUMBER. shapes (macro, 12): see make_blocks.
// places, matrices, tasks, first, reads, rows: see `Tasks`.
// sums (macro, LANES): shares of u K u, or null, or of out b; see FINISH.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    macro(const unsigned* __restrict__ nodes, const real* __restrict__ shapes,
          const unsigned short* __restrict__ places, const real* __restrict__ matrices,
          const Task* __restrict__ tasks, const int* __restrict__ first,
          const uint2* __restrict__ reads, const unsigned* __restrict__ rows,
          const input* __restrict__ u, const real* __restrict__ b,
          const real* __restrict__ inverse, real gain, real* out, double* sums) {
  extern __shared__ __align__(32) char memory[];
  real* vector = (real*)memory;
  real* most = vector + 3 * PLANES * PLANE;
  real* last = most + N_BLOCK * MOST;
  const long long one = blockIdx.x;
  nodes += one * N_NODE;
  load(nodes, places, u, vector);
  make_blocks(matrices, shapes + one * 12, most, last);
  __syncthreads();
  const Rest rest = {u, b, inverse, gain, out};
  Four* total = nullptr;
#if SUMMED
  // of a thread; in FP32 its rows need all registers, in FP64 the rest all shared memory
  constexpr bool APART = sizeof(real) == 4;
  __shared__ Four totals[APART ? THREADS : 1];
  Four own = {};
  Four* mine = APART ? totals + threadIdx.x : &own;
  *mine = {};
  if (sums) total = mine;
#endif
  const int warp = threadIdx.x / 32;
  for (int t = first[warp]; t < first[warp + 1]; t++) {
    const Task task = tasks[t];
    if (task.kind == ANY)
      multiply<1, false>(task, reads, rows, nodes, vector, most, last, rest, total);
    else if (task.kind == SYMMETRIC)
      multiply<1, true>(task, reads, rows, nodes, vector, most, last, rest, total);
    else
      multiply<2, true>(task, reads, rows, nodes, vector, most, last, rest, total);
  }
#if SUMMED
  if (sums) add_dots(mine->a, sums + one * LANES);
#endif
}
