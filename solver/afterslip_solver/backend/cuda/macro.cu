// K u by stencils: one tetrahedron that was halved three times a thread block, four lanes.
//
// Compile with REAL, INPUT (of u: REAL or float), HALF (0, or 1: products in FP16, for
// smoothing, with float for both), PACKED (see nodes.cuh), LANES (4), THREADS, RESIDENT
// (blocks per multiprocessor), FINISH, REPEATABLE (0), and the sizes of `Tasks` in
// macro_tasks.py: N_NODE of a macro element, N_BLOCK stencil blocks, ZERO the place that
// holds zeros, N_PLACE places of a plane.
//
// A block of the stiffness is V (lam B + mu B^T + mu tr(B) I) with B = Gamma^T S Gamma, S
// (3 x 3) the same in all macro elements (stencils.py). The blocks are made in shared
// memory beside the macro element's vector; so its matrix is read from nowhere.

#include "nodes.cuh"

#define NOTHING 0xffffu
#define ANY 0
#define SYMMETRIC 1

// components of nodes that a thread copies
#define EACH ((3 * N_NODE + THREADS - 1) / THREADS)

struct Task { int reads, steps, kind, rows; };

// The k-th component of a node, of all one behind the other, that a thread copies; the
// last ones once more, so that all can be on their way at once.
__device__ __forceinline__ int component_of(int k) {
  return min((int)threadIdx.x + k * THREADS, 3 * N_NODE - 1);
}

__device__ __forceinline__ bool copied_by_another(int k) {
  return (k + 1) * THREADS > 3 * N_NODE && (int)threadIdx.x + k * THREADS >= 3 * N_NODE;
}

// Read what a thread copies.
__device__ __forceinline__ void fetch(const unsigned* __restrict__ nodes,
                                      const input* __restrict__ u, Four own[EACH]) {
  unsigned entry[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) entry[k] = __ldg(nodes + component_of(k) / 3);
#pragma unroll
  for (int k = 0; k < EACH; k++)
    own[k] = lanes_of(u + (long long)NUMBER(entry[k]) * NODE, component_of(k) % 3);
}

#if HALF
#include "macro_half.cuh"
#else
#include "macro_real.cuh"
#endif

// Make the stencil blocks of one macro element.
// matrices (9, N_BLOCK): S. shape (12): Gamma by rows, V lam, V mu.
__device__ __forceinline__ void make_blocks(const real* __restrict__ matrices,
                                            const real* __restrict__ shape, Most* most,
                                            Last* last) {
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
    store_block(k, i, most, last);
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
  [[maybe_unused]] const bool finished = put_sum(entry, 0, s, rest, u, dot);
#if FINISH == RELAX_SUMMED
  if (finished)
#pragma unroll
    for (int m = 0; m < LANES; m++) total->a[m] += dot[m];
#endif
}

// Compute ROWS rows a thread. A step is a block and the place it multiplies, or, BOTH,
// two places of opposite neighbours.
template <int ROWS, bool BOTH>
__device__ __forceinline__ void multiply(const Task& task, const uint2* __restrict__ reads,
                                         const unsigned* __restrict__ rows,
                                         const unsigned* __restrict__ nodes,
                                         const Vector& vector, const Most* most,
                                         const Last* last, const Rest& rest, Four* total) {
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
  // a node is the first of its own neighbours
  const uint2 itself = __ldg(reads + task.reads + lane);
  Lanes sum[ROWS][3] = {};
#if HALF
  // forces of differences from the node, which are exact, instead of large sums
  Lanes centre[ROWS][3];
#pragma unroll
  for (int m = 0; m < ROWS; m++) {
    read(vector, (m == 0 ? itself.x : itself.y) & 0xffffu, centre[m]);
#pragma unroll
    for (int d = 0; d < 3; d++) scale(centre[m][d], -PLACES);
  }
#endif
  const uint2* from = reads + task.reads + lane;
  const Most* own = most + block;
  const Last* ninth = last + block;
  uint2 next = itself;
#pragma unroll 1
  for (int n = 0; n < task.steps; n += STEPS) {
    const uint2 at = next;
    from += 32;
    if (n + STEPS < task.steps) next = __ldg(from);
    const unsigned place[4] = {at.x & 0xffffu, at.x >> 16, at.y & 0xffffu, at.y >> 16};
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      Coefficient b[9];
      read_block(own, ninth, b);
      own++;
      ninth++;
#pragma unroll
      for (int m = 0; m < ROWS; m++) {
        const int j = (k * ROWS + m) * PLACES;
        Lanes v[3];
        read(vector, place[j], v);
#if HALF
#pragma unroll
        for (int d = 0; d < 3; d++) add(v[d], centre[m][d]);
#endif
        if (BOTH) {
          Lanes w[3];
          read(vector, place[j + PLACES - 1], w);
#pragma unroll
          for (int d = 0; d < 3; d++) add(v[d], w[d]);
        }
#pragma unroll
        for (int c = 0; c < 3; c++)
#pragma unroll
          for (int d = 0; d < 3; d++) add_product(sum[m][c], b[3 * c + d], v[d]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < ROWS; m++) {
    if (entry[m] == NO_NODE) continue;
    const unsigned place = (m == 0 ? itself.x : itself.y) & 0xffffu;
    Four s[3];
#pragma unroll
    for (int c = 0; c < 3; c++) s[c] = force(vector, sum[m][c]);
    finish_row(entry[m], s, rest, before(vector, entry[m], place, rest), total);
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
  Vector vector{memory};
  Most* most = (Most*)(memory + VECTOR);
  Last* last = (Last*)(most + N_BLOCK);
  const long long one = blockIdx.x;
  nodes += one * N_NODE;
  shapes += one * 12;
  Four fetched[EACH];
  fetch(nodes, u, fetched);
#if HALF
  // while they are on their way; in FP32 the blocks need the registers
  make_blocks(matrices, shapes, most, last);
  put(vector, fetched, nodes, places, u, __ldg(shapes + 11));
#else
  put(vector, fetched, places);
  make_blocks(matrices, shapes, most, last);
#endif
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
