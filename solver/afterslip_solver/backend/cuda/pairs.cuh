// Two numbers in FP16, of two lanes or of a table, and their arithmetic.
//
// Included by nodes.cuh and sparse.cu.

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

// The six numbers of a symmetric block in FP16: xx yy, zz xy, yz xz; and what they are
// multiplied by.
struct alignas(16) Inverse { Pair pairs[3]; float scale; };

// q = the n-th of them.
template <class T>
__device__ __forceinline__ void read_inverse(const void* from, long long n, T q[9]) {
  const uint4 d = __ldg((const uint4*)from + n);
  const Pair pairs[3] = {{d.x}, {d.y}, {d.z}};
  const float scale = __int_as_float((int)d.w);
  float s[6];
#pragma unroll
  for (int k = 0; k < 3; k++) {
    s[2 * k] = scale * low_of(pairs[k]);
    s[2 * k + 1] = scale * high_of(pairs[k]);
  }
  q[0] = s[0];
  q[4] = s[1];
  q[8] = s[2];
  q[1] = q[3] = s[3];
  q[5] = q[7] = s[4];
  q[2] = q[6] = s[5];
}
