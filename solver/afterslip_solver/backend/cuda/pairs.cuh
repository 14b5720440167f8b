// Two numbers in FP16, of two lanes or of a table, and their arithmetic.
//
// Included by nodes.cuh.

struct Pair { unsigned bits; };

__device__ __forceinline__ Pair pair_of(float low, float high) {
  Pair d;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d.bits) : "f"(high), "f"(low));
#else
  asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}"
      : "=r"(d.bits) : "f"(low), "f"(high));
#endif
  return d;
}
__device__ __forceinline__ float low_of(Pair v) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)(v.bits & 0xffffu)));
  return f;
}
__device__ __forceinline__ float high_of(Pair v) { return low_of({v.bits >> 16}); }

// both numbers the low one, or the high one, of two
__device__ __forceinline__ Pair twice_low(Pair v) {
  Pair d;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {l, l};}" : "=r"(d.bits) : "r"(v.bits));
  return d;
}
__device__ __forceinline__ Pair twice_high(Pair v) {
  Pair d;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, h};}" : "=r"(d.bits) : "r"(v.bits));
  return d;
}

__device__ __forceinline__ Pair operator+(Pair v, Pair w) {
  Pair d;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(d.bits) : "r"(v.bits), "r"(w.bits));
  return d;
}
__device__ __forceinline__ Pair operator-(Pair v, Pair w) {
  Pair d;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d.bits) : "r"(v.bits), "r"(w.bits));
  return d;
}
__device__ __forceinline__ Pair operator*(Pair v, Pair w) {
  Pair d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d.bits) : "r"(v.bits), "r"(w.bits));
  return d;
}
__device__ __forceinline__ Pair operator-(Pair v) {
  Pair d;
  asm("neg.f16x2 %0, %1;" : "=r"(d.bits) : "r"(v.bits));
  return d;
}
// v w + x
__device__ __forceinline__ Pair multiply_add(Pair v, Pair w, Pair x) {
  Pair d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;"
      : "=r"(d.bits) : "r"(v.bits), "r"(w.bits), "r"(x.bits));
  return d;
}

#if HALF
// exponent of 1 as a float has it
#define ONE 127

// The largest of a warp's numbers, none of which is negative: ordered as their bits are.
__device__ __forceinline__ float largest_of_warp(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  for (int away = 16; away > 0; away /= 2) v = max(v, __shfl_xor_sync(~0u, v, away));
  return v;
#else
  return __int_as_float((int)__reduce_max_sync(~0u, (unsigned)__float_as_int(v)));
#endif
}

// Find by which powers of two a thread block's numbers of each lane are multiplied for the
// largest to be 2^exponent or up to twice that.
// most: the largest of the thread. unit: reciprocals times `back`, for all from the next
// barrier on.
__device__ __forceinline__ void find_scales(int exponent, const float most[LANES], float back,
                                            float scale[LANES], float* unit) {
  __shared__ float most_of[WARPS][LANES];
#pragma unroll
  for (int m = 0; m < LANES; m++) {
    const float own = largest_of_warp(most[m]);
    if (threadIdx.x % 32 == 0) most_of[threadIdx.x / 32][m] = own;
  }
  __syncthreads();
#pragma unroll
  for (int m = 0; m < LANES; m++) {
    const float all = largest_of_warp(most_of[threadIdx.x % WARPS][m]);
    const int wanted = 2 * ONE + exponent - (__float_as_int(all) >> 23);
    const int within = max(1, min(2 * ONE - 1, wanted));
    scale[m] = __int_as_float(within << 23);
    if (threadIdx.x == 0) unit[m] = back * __int_as_float((2 * ONE - within) << 23);
  }
}
#endif
