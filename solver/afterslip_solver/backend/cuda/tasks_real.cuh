// A thread's part in the forces of a task, in the precision of the arithmetic.
//
// Included by turns.cuh. A thread has one lane of an element.

// tasks that a warp does at once
#define ABREAST 1

struct Part {
  int one = threadIdx.x % 32 / LANES, lane = threadIdx.x % LANES;
  uint2 slot[3];
  // gradients and moduli
  real shape[11];
  real o[10][3];
};

// Read what depends on no other reading.
__device__ __forceinline__ void fetch(const Block& block, int task, Part& part) {
  fetch_slots(block, task, part.one, part.slot);
  const real* q = block.gradients + (long long)task * (9 * PER_WARP) + part.one;
#pragma unroll
  for (int k = 0; k < 9; k++) part.shape[k] = __ldg(q + k * PER_WARP);
  const real* m = block.moduli + (long long)task * (2 * PER_WARP) + part.one;
#pragma unroll
  for (int k = 0; k < 2; k++) part.shape[9 + k] = __ldg(m + k * PER_WARP);
}

__device__ __forceinline__ void find_forces(const Block& block, const unsigned at[10], Part& part) {
  real v[10][3], g[4][3];
#pragma unroll
  for (int a = 0; a < 10; a++) {
    const input* p = block.u + (long long)NUMBER(block.number[at[a]]) * NODE + part.lane;
#pragma unroll
    for (int c = 0; c < 3; c++) v[a][c] = (real)__ldg(p + c * LANES);
  }
#pragma unroll
  for (int k = 0; k < 9; k++) g[1 + k / 3][k % 3] = part.shape[k];
  element(v, g, part.shape[9], part.shape[10], part.o);
}

__device__ __forceinline__ void add(const Block& block, const unsigned at[10], Part& part) {
#pragma unroll
  for (int a = 0; a < 10; a++) {
    const real* p = block.sum + at[a] * NODE + part.lane;
#pragma unroll
    for (int c = 0; c < 3; c++) part.o[a][c] += p[c * LANES];
  }
#pragma unroll
  for (int a = 0; a < 10; a++) {
    real* p = block.sum + at[a] * NODE + part.lane;
#pragma unroll
    for (int c = 0; c < 3; c++) p[c * LANES] = part.o[a][c];
  }
}
