// Powers of two that the numbers of a thread block are multiplied by to be FP16.
//
// Included by nodes.cuh.

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
