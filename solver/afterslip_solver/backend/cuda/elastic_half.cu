// Second-order tetrahedra, element by element, by products in FP16, for smoothing.
//
// Compile with what elastic.cu is (REAL and INPUT float, LANES 4, TOGETHER 2, REPEATABLE 0,
// FINISH not PRODUCT), HALF (1) and SLOTS, the most nodes of a block.

#include "nodes.cuh"
#include "element.cuh"
#include "turns.cuh"

// nodes that a thread finishes
#define ROWS ((SLOTS + THREADS - 1) / THREADS)

// s = the forces of a node in FP32; unit (LANES): what sums are multiplied by.
__device__ __forceinline__ void forces(const char* sum, int place, const float* unit, Four s[3]) {
#pragma unroll
  for (int pair = 0; pair < 2; pair++) {
    Pair own[3];
    read(sum, place, pair, own);
#pragma unroll
    for (int c = 0; c < 3; c++) {
      s[c].a[2 * pair] = unit[2 * pair] * low_of(own[c]);
      s[c].a[2 * pair + 1] = unit[2 * pair + 1] * high_of(own[c]);
    }
  }
}

// As `apply` in elastic.cu.
//
// shapes (n_task, 6, PER_WARP) and back (block): of `pack_elements`.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    apply_half(const int* __restrict__ which, const int* __restrict__ tasks,
               const int* __restrict__ slots, const unsigned* __restrict__ nodes,
               const int* __restrict__ patterns, const uint2* __restrict__ local,
               const unsigned* __restrict__ shapes, const float* __restrict__ back,
               const float* __restrict__ u, const float* __restrict__ b,
               const float* __restrict__ inverse, float gain, float* out, double* sums) {
  extern __shared__ __align__(16) char memory[];
  __shared__ __align__(16) float unit[LANES];
  char* sum = memory + VECTOR;
  const int block = which[blockIdx.x];
  const int first = slots[block], n = slots[block + 1] - first;
  const int start = tasks[block], shift = patterns[block] - start;
  nodes += first;
  // the first node of the first element: blocks have one
  const unsigned slot = __ldg((const unsigned*)local + (long long)(start + shift) * PER_WARP * 6);
  const unsigned centre = __ldg(nodes + (slot & 0xffffu));
  put_differences(nodes, n, centre, u, __ldg(back + block), memory, unit);
  for (int i = threadIdx.x; i < VECTOR / 16; i += THREADS)
    *(float4*)(sum + 16 * i) = make_float4(0, 0, 0, 0);
  __syncthreads();
  add_forces({local, shift, shapes, memory, sum}, start, tasks[block + 1]);

  unsigned entry[ROWS];
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    const int i = threadIdx.x + k * THREADS;
    entry[k] = i < n ? __ldg(nodes + i) : NO_NODE;
  }
  const Rest rest = {u, b, inverse, gain, out};
  float dot[LANES] = {};
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    if (entry[k] == NO_NODE) continue;
    Four s[3];
    forces(sum, threadIdx.x + k * THREADS, unit, s);
    const float* before = u + (long long)NUMBER(entry[k]) * NODE;
    put_sum(entry[k], 0, s, rest, [=](int c) { return four_of(before + c * LANES); }, dot);
  }
#if FINISH == RELAX_SUMMED
  add_dots(dot, sums + (long long)block * LANES);
#endif
}

// Whether the largest ratio of lengths of an element with gradients g (3, 3) is larger.
__device__ __forceinline__ bool flat(const float g[9], float ratio) {
  float det = 0, size = 0, inverse = 0;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    // cofactors: of the inverse times the determinant
    const float *h = g + (i + 1) % 3 * 3, *k = g + (i + 2) % 3 * 3;
#pragma unroll
    for (int x = 0; x < 3; x++) {
      const int y = (x + 1) % 3, z = (x + 2) % 3;
      const float cofactor = h[y] * k[z] - h[z] * k[y];
      inverse += cofactor * cofactor;
      size += g[3 * i + x] * g[3 * i + x];
      det += g[3 * i + x] * cofactor / 3;
    }
  }
  return sqrtf(size) * sqrtf(inverse) > ratio * fabsf(det);
}

// Pack the elements of a block for products in FP16, in six words 12 numbers: gradients
// and moduli, divided by powers of two that make a vertex' gradient at most 1 long and lam
// + 2 mu at most 1, and by which such an element's forces are multiplied when they are
// summed: the block's strongest ones by 1/16.
// tasks (block + 1) and out (n_task, 6, PER_WARP): see `apply`.
// flattest: largest ratio of lengths that FP16 is used for, or up to three times that.
// back (block): what sums are multiplied by. range (block): exponent of two by how much
// elements differ; NONE or more where one is too flat.
#define NONE (1 << 20)
extern "C" __global__ void __launch_bounds__(THREADS)
    pack_elements(const int* __restrict__ tasks, const float* __restrict__ gradients,
                  const float* __restrict__ moduli, float flattest, unsigned* out, float* back,
                  int* range) {
  __shared__ int most_of[THREADS], least_of[THREADS];
  int most = -NONE, least = NONE;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = tasks[blockIdx.x] * PER_WARP + threadIdx.x; i < tasks[blockIdx.x + 1] * PER_WARP;
         i += THREADS) {
      const long long task = i / PER_WARP, one = i % PER_WARP;
      float g[9], longest = 0;
#pragma unroll
      for (int k = 0; k < 9; k++) g[k] = gradients[(task * 9 + k) * PER_WARP + one];
      const float lam = moduli[task * 2 * PER_WARP + one];
      const float mu = moduli[(task * 2 + 1) * PER_WARP + one];
#pragma unroll
      for (int k = 0; k < 9; k += 3)
        longest = max(longest, g[k] * g[k] + g[k + 1] * g[k + 1] + g[k + 2] * g[k + 2]);
      // where there is no element all is 0
      int size = 0, stiffness = 0;
      frexpf(sqrtf(longest), &size);
      frexpf(lam + 2 * mu, &stiffness);
      const int own = 2 * size + stiffness;
      if (pass == 0) {
        most = max(most, longest > 0 ? own : -NONE);
        least = min(least, longest > 0 ? own : NONE);
        if (flat(g, flattest)) least = -2 * NONE;
        continue;
      }
#pragma unroll
      for (int k = 0; k < 9; k++) g[k] = ldexpf(g[k], -size);
      const Pair pairs[6] = {
          pair_of(g[0], g[1]), pair_of(g[2], g[3]), pair_of(g[4], g[5]), pair_of(g[6], g[7]),
          pair_of(g[8], ldexpf(lam, -stiffness)),
          pair_of(ldexpf(mu, -stiffness), longest > 0 ? ldexpf(1, own - most - 4) : 0)};
#pragma unroll
      for (int k = 0; k < 6; k++)
        out[(task * 6 + k) * PER_WARP + one] = pairs[k].bits;
    }
    if (pass == 1) return;
    most_of[threadIdx.x] = most;
    least_of[threadIdx.x] = least;
    __syncthreads();
    for (int t = 0; t < THREADS; t++) {
      most = max(most, most_of[t]);
      least = min(least, least_of[t]);
    }
    if (threadIdx.x == 0) {
      back[blockIdx.x] = ldexpf(1, most + 4);
      range[blockIdx.x] = most - least;
    }
  }
}
