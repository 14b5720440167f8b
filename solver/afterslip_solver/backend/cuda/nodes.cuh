// What is known of the nodes of a block of elements, and how their rows are finished.
//
// Included by elastic.cu and macro.cu, which say what it is compiled with.

typedef REAL real;
typedef INPUT input;

// FINISH: out = K u (and sums of u K u), b - K u, or u + gain D^-1 (b - K u), or the latter
// with sums of out b
#define PRODUCT 0
#define RESIDUAL 1
#define RELAX 2
#define RELAX_SUMMED 3
#define SUMMED (FINISH == PRODUCT || FINISH == RELAX_SUMMED)

#define NODE (3 * LANES)
#define PER_WARP (32 / LANES)
#define WARPS (THREADS / 32)
// groups of four lanes
#define QUADS (LANES / 4)

// A block's entry in the table of nodes: number, held components, and what becomes of
// its sum. It is finished, after the stored one of another block was added where that
// has the node too (ORDERED); or it is left to others (SHARED): stored, ORDERED, or
// added to theirs.
#define NUMBER(entry) ((entry) & 0x07ffffffu)
#define ORDERED(entry) (((entry) >> 27) & 1u)
#define HELD(entry, c) (((entry) >> (28 + (c))) & 1u)
#define SHARED(entry) ((entry) >> 31)
#define NO_NODE 0xffffffffu

#if HALF || PACKED
#include "pairs.cuh"
#endif
#if HALF
#include "scales.cuh"
#endif

struct alignas(16) Chunk { real a[16 / sizeof(real)]; };
#define WIDTH (16 / (int)sizeof(real))
#define CHUNKS (NODE / WIDTH)
struct alignas(4 * sizeof(real)) Four { real a[4]; };
struct alignas(4 * sizeof(input)) FourIn { input a[4]; };
// what the finishing of a node needs beside its sum; inverse (node, 3, 3), or `Inverse`
struct Rest {
  const input* u;
  const real* b;
  const real* inverse;
  real gain;
  real* out;
};

// Four numbers that the kernel does not write: such loads need not wait for its stores.
__device__ __forceinline__ Four four_of(const float* from) {
  const float4 v = __ldg((const float4*)from);
  return {v.x, v.y, v.z, v.w};
}
__device__ __forceinline__ Four four_of(const double* from) {
  const double2 v = __ldg((const double2*)from), w = __ldg((const double2*)from + 1);
  return {(real)v.x, (real)v.y, (real)w.x, (real)w.y};
}

// Four lanes of a component of a node.
__device__ __forceinline__ Four lanes_of(const input* node, int c) {
  const FourIn u = *(const FourIn*)(node + c * LANES);
  Four v;
#pragma unroll
  for (int m = 0; m < 4; m++) v.a[m] = u.a[m];
  return v;
}

#if PACKED
__device__ __forceinline__ void inverse_of(const Rest& rest, long long node, float q[9]) {
  read_inverse(rest.inverse, node, q);
}
#else
__device__ __forceinline__ void inverse_of(const Rest& rest, long long node, real q[9]) {
#pragma unroll
  for (int k = 0; k < 9; k++) q[k] = __ldg(rest.inverse + node * 9 + k);
}
#endif

// Finish four lanes of a node from its complete sum. u(c) is a component of it before,
// dot gets its share of out b.
template <class Before>
__device__ __forceinline__ void finish_node(unsigned entry, int quad, const Four s[3],
                                            const Rest& rest, Before u, real dot[4]) {
  const long long node = NUMBER(entry), p = node * NODE + 4 * quad;
#if FINISH == PRODUCT
#pragma unroll
  for (int c = 0; c < 3; c++) {
    const Four y = HELD(entry, c) ? Four{} : s[c];
    *(Four*)(rest.out + p + c * LANES) = y;
  }
#else
  Four r[3];
#pragma unroll
  for (int c = 0; c < 3; c++) {
    r[c] = four_of(rest.b + p + c * LANES);
#pragma unroll
    for (int m = 0; m < 4; m++) r[c].a[m] -= HELD(entry, c) ? 0 : s[c].a[m];
  }
#if FINISH == RESIDUAL
#pragma unroll
  for (int c = 0; c < 3; c++) *(Four*)(rest.out + p + c * LANES) = r[c];
#else
  real q[9];
  inverse_of(rest, node, q);
#pragma unroll
  for (int c = 0; c < 3; c++) {
    const Four v = u(c);
    const real q0 = rest.gain * q[3 * c], q1 = rest.gain * q[3 * c + 1];
    const real q2 = rest.gain * q[3 * c + 2];
    Four y;
#pragma unroll
    for (int m = 0; m < 4; m++)
      y.a[m] = v.a[m] + q0 * r[0].a[m] + q1 * r[1].a[m] + q2 * r[2].a[m];
    *(Four*)(rest.out + p + c * LANES) = y;
#if FINISH == RELAX_SUMMED
    const Four f = four_of(rest.b + p + c * LANES);
#pragma unroll
    for (int m = 0; m < 4; m++) dot[m] += y.a[m] * f.a[m];
#endif
  }
#endif
#endif
}

#if SUMMED
// sums (4) of a thread block whose threads have all lanes, always in the same order
template <class Number>
__device__ __forceinline__ void add_dots(const Number dot[4], double* sums) {
  __shared__ double part[WARPS][4];
  const int warp = threadIdx.x / 32;
#pragma unroll
  for (int l = 0; l < 4; l++) {
    // what threads have was summed in this precision, too
    Number s = dot[l];
#pragma unroll
    for (int away = 16; away > 0; away /= 2) s += __shfl_down_sync(~0u, s, away);
    if (threadIdx.x % 32 == 0) part[warp][l] = s;
  }
  __syncthreads();
  if (threadIdx.x < 4) {
    double total = 0;
    for (int w = 0; w < WARPS; w++) total += part[w][threadIdx.x];
    sums[threadIdx.x] = total;
  }
}
#endif

// Of a node that two blocks have: store the first one's sum of four lanes, or add it to
// the second one's.
__device__ __forceinline__ void store_or_add(unsigned entry, Four s[3], real* at) {
#pragma unroll
  for (int c = 0; c < 3; c++) {
    Four* place = (Four*)(at + c * LANES);
    if (SHARED(entry)) {
      *place = s[c];
    } else {
      const Four before = *place;
#pragma unroll
      for (int m = 0; m < 4; m++) s[c].a[m] += before.a[m];
    }
  }
}

#if !REPEATABLE
__device__ __forceinline__ void add_global(float* to, const float* v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v[0]),
               "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
#else
  for (int z = 0; z < 4; z++) atomicAdd(to + z, v[z]);
#endif
}
__device__ __forceinline__ void add_global(double* to, const double* v) {
  atomicAdd(to, v[0]);
  atomicAdd(to + 1, v[1]);
}
#endif

// Put a block's sum of four lanes of a node where it belongs: finished, or stored or added
// for others, which REPEATABLE is not done here; returns whether it is finished. u and
// dot: see finish_node.
template <class Before>
__device__ __forceinline__ bool put_sum(unsigned entry, int quad, Four s[3], const Rest& rest,
                                        Before u, real dot[4]) {
  real* to = rest.out + (long long)NUMBER(entry) * NODE + 4 * quad;
  if (ORDERED(entry)) store_or_add(entry, s, to);
  if (!SHARED(entry)) {
    finish_node(entry, quad, s, rest, u, dot);
    return true;
  }
#if !REPEATABLE
  if (ORDERED(entry)) return false;
#pragma unroll
  for (int c = 0; c < 3; c++)
    if (!HELD(entry, c))
#pragma unroll
      for (int k = 0; k < 4; k += WIDTH) add_global(to + c * LANES + k, s[c].a + k);
#endif
  return false;
}
