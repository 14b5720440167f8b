// Second-order tetrahedra, element by element, LANES right-hand sides at once.
//
// Compile with REAL (float|double, arithmetic and result), INPUT (the vector's), LANES,
// THREADS, RESIDENT (blocks per multiprocessor, which bounds the registers), TOGETHER (tasks
// behind each other that share no node), FINISH (what becomes of the product), REPEATABLE
// (0|1, how the sums of blocks are added) and PACKED (0|1, of what inverse is, see below).
//
// The gradient of a quadratic field is linear in a straight-sided element: at vertex a
// it is 3 u_a (x) G_a + sum_{b != a} (4 u_ab - u_b) (x) G_b. Integrals are exact with
// int f g = V/20 sum_ab (1 + d_ab) f_a g_b (see tets.py, the same on the CPU).
// The moduli given here are already multiplied by V/20.

#include "nodes.cuh"

// local node on the edge between two vertices
__device__ constexpr int MID[4][4] = {{0, 4, 6, 7}, {4, 1, 5, 8}, {6, 5, 2, 9}, {7, 8, 9, 3}};
// place of a symmetric tensor's components among six
__device__ constexpr int SYM[3][3] = {{0, 3, 5}, {3, 1, 4}, {5, 4, 2}};

// o = K_e v; g holds the gradients of barycentric coordinates 1..3 (0: minus their sum).
// Vertex by vertex: more arithmetic than a hierarchical basis, but fewer live registers.
__device__ __forceinline__ void element(
    const real v[10][3], const real g[4][3], real lam, real mu, real o[10][3]) {
  real s[4][6], total[6] = {};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    real w[4][3], h[3][3];
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
      for (int c = 0; c < 3; c++)
        w[k][c] = k == i ? real(3) * v[i][c] : real(4) * v[MID[i][k]][c] - v[k][c];
#pragma unroll
    for (int c = 0; c < 3; c++) {
      real d1 = w[1][c] - w[0][c], d2 = w[2][c] - w[0][c], d3 = w[3][c] - w[0][c];
#pragma unroll
      for (int x = 0; x < 3; x++) h[c][x] = d1 * g[1][x] + d2 * g[2][x] + d3 * g[3][x];
    }
    real p = lam * (h[0][0] + h[1][1] + h[2][2]);
    s[i][0] = p + 2 * mu * h[0][0];
    s[i][1] = p + 2 * mu * h[1][1];
    s[i][2] = p + 2 * mu * h[2][2];
    s[i][3] = mu * (h[0][1] + h[1][0]);
    s[i][4] = mu * (h[1][2] + h[2][1]);
    s[i][5] = mu * (h[0][2] + h[2][0]);
#pragma unroll
    for (int q = 0; q < 6; q++) total[q] += s[i][q];
  }
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++) o[a][c] = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    real h[6];
#pragma unroll
    for (int q = 0; q < 6; q++) h[q] = s[i][q] + total[q];
#pragma unroll
    for (int c = 0; c < 3; c++) {
      real p[4];
#pragma unroll
      for (int k = 1; k < 4; k++)
        p[k] = h[SYM[c][0]] * g[k][0] + h[SYM[c][1]] * g[k][1] + h[SYM[c][2]] * g[k][2];
      p[0] = -(p[1] + p[2] + p[3]);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        if (k == i) {
          o[i][c] += 3 * p[k];
        } else {
          o[MID[i][k]][c] += 4 * p[k];
          o[k][c] -= p[k];
        }
      }
    }
  }
}

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

// turns of the warps of a block, and the threads of a barrier between two of them
#define TURNS (WARPS / TOGETHER)
#define PASSING (2 * 32 * TOGETHER)
// a thread block has 16 barriers, one of them for all
static_assert(1 < TURNS && TURNS < 16 && WARPS % TOGETHER == 0, "a barrier for each turn");

// wait until the warps of the turn before have added
__device__ __forceinline__ void wait_for_turn(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(PASSING) : "memory");
}
// let the warps of the next turn add
__device__ __forceinline__ void give_turn(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(PASSING) : "memory");
}

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
// gradients (task, 9, PER_WARP) and moduli (task, 2, PER_WARP).
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

  const int warp = threadIdx.x / 32, one = threadIdx.x % 32 / LANES;
  const int lane = threadIdx.x % LANES;
  const int start = tasks[block], stop = tasks[block + 1], shift = patterns[block] - start;
  // 0 is the barrier of all
  const int turn = warp / TOGETHER, own = 1 + turn, next = 1 + (turn + 1) % TURNS;
  uint2 slot[3];
  real ahead[11];
  // what a task reads that depends on no other reading, while warps wait for their turn
  auto fetch = [&](int task) {
    const uint2* mine = local + ((long long)(task + shift) * PER_WARP + one) * 3;
#pragma unroll
    for (int k = 0; k < 3; k++) slot[k] = __ldg(mine + k);
    const real* q = gradients + (long long)task * (9 * PER_WARP) + one;
#pragma unroll
    for (int k = 0; k < 9; k++) ahead[k] = __ldg(q + k * PER_WARP);
    const real* m = moduli + (long long)task * (2 * PER_WARP) + one;
#pragma unroll
    for (int k = 0; k < 2; k++) ahead[9 + k] = __ldg(m + k * PER_WARP);
  };
  if (start + warp < stop) fetch(start + warp);
#pragma unroll 1
  for (int task = start + warp; task < stop; task += WARPS) {
    const unsigned at[10] = {slot[0].x & 0xffff, slot[0].x >> 16, slot[0].y & 0xffff,
                             slot[0].y >> 16, slot[1].x & 0xffff, slot[1].x >> 16,
                             slot[1].y & 0xffff, slot[1].y >> 16, slot[2].x & 0xffff,
                             slot[2].x >> 16};
    const bool present = at[0] != 0xffff;
    real o[10][3];
    if (present) {
      real v[10][3], g[4][3];
#pragma unroll
      for (int a = 0; a < 10; a++) {
        const input* p = u + (long long)NUMBER(number[at[a]]) * NODE + lane;
#pragma unroll
        for (int c = 0; c < 3; c++) v[a][c] = (real)__ldg(p + c * LANES);
      }
#pragma unroll
      for (int k = 0; k < 9; k++) g[1 + k / 3][k % 3] = ahead[k];
      element(v, g, ahead[9], ahead[10], o);
    }
    if (task + WARPS < stop) fetch(task + WARPS);
    if (task - start >= TOGETHER) wait_for_turn(own);
    if (present) {
#pragma unroll
      for (int a = 0; a < 10; a++) {
        const real* p = sum + at[a] * NODE + lane;
#pragma unroll
        for (int c = 0; c < 3; c++) o[a][c] += p[c * LANES];
      }
#pragma unroll
      for (int a = 0; a < 10; a++) {
        real* p = sum + at[a] * NODE + lane;
#pragma unroll
        for (int c = 0; c < 3; c++) p[c * LANES] = o[a][c];
      }
    }
    // after the last task nobody waits
    if (turn + 1 < TURNS || task + WARPS < stop) give_turn(next);
  }
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
    real* at = out + (long long)NUMBER(entry) * NODE + 4 * quad;
    if (ORDERED(entry)) store_or_add(entry, s, at);
    if (!SHARED(entry)) {
      const input* before = u + (at - out);
      finish_node(entry, quad, s, rest, [=](int c) { return lanes_of(before, c); }, dot);
      continue;
    }
    if (ORDERED(entry)) continue;
#if REPEATABLE
    real* to = partial + (long long)(first + slot) * NODE + 4 * quad;
#pragma unroll
    for (int c = 0; c < 3; c++) *(Four*)(to + c * LANES) = s[c];
#else
#pragma unroll
    for (int c = 0; c < 3; c++)
#pragma unroll
      for (int z = 0; z < 4 / WIDTH; z++)
        if (!HELD(entry, c)) add_global(at + c * LANES + z * WIDTH, s[c].a + z * WIDTH);
#endif
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
