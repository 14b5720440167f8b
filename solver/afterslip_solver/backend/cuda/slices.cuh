// Rows of matrices of 3 x 3 blocks, in slices of 32, and their diagonals' inverses.
//
// Included by sparse.cu.

// The nine values of a row's step; k is the row's place in its slice.
#if HALF
// (step, 32, 8), then (step, 32): two accesses to what lies side by side
__device__ __forceinline__ void read_step(const store* step, int k, real v[9]) {
  const uint4 most = __ldcs((const uint4*)step + k);
  const unsigned pairs[4] = {most.x, most.y, most.z, most.w};
#pragma unroll
  for (int c = 0; c < 4; c++) {
    v[2 * c] = low_of({pairs[c]});
    v[2 * c + 1] = high_of({pairs[c]});
  }
  v[8] = stream(step + 8 * SLICE + k);
}
#else
__device__ __forceinline__ void read_step(const store* step, int k, real v[9]) {
#pragma unroll
  for (int c = 0; c < 9; c++) v[c] = stream(step + c * SLICE + k);
}
#endif

// Every SPLIT-th step of a row of a matrix of 3 x 3 blocks, from `turn` on. Rows lie in
// slices of 32, padded to one length:
// starts (slice + 1), columns (step, 32), values (step, 9 * 32), see read_step.
template <int SPLIT>
__device__ __forceinline__ void row_times(int row, int turn, const int* __restrict__ starts,
                                          const int* __restrict__ columns,
                                          const store* __restrict__ values,
                                          const Four* __restrict__ x, real s[3][LANES]) {
  const int slice = row / SLICE, k = row % SLICE;
  const int stop = starts[slice + 1];
  int j = starts[slice] + turn;
  // the next column is asked for before this one's values are waited for
  int next = j < stop ? __ldcs(columns + j * (long long)SLICE + k) : 0;
#pragma unroll 1
  for (; j < stop; j += SPLIT) {
    const Four* p = x + 3LL * next;
    if (j + SPLIT < stop) next = __ldcs(columns + (j + SPLIT) * (long long)SLICE + k);
    const Four x0 = p[0], x1 = p[1], x2 = p[2];
    real v[9];
    read_step(values + (long long)j * (9 * SLICE), k, v);
#pragma unroll
    for (int i = 0; i < 3; i++)
#pragma unroll
      for (int m = 0; m < LANES; m++)
        s[i][m] += v[3 * i] * x0.a[m] + v[3 * i + 1] * x1.a[m] + v[3 * i + 2] * x2.a[m];
  }
}

// The row of a thread, whose sums four warps share, where rows are too few to fill the
// device; the first warp gets them. -1 in a thread that has none. 128 threads.
// order (thread block): slices, those with long rows first.
__device__ __forceinline__ int few_rows_times(int n, const int* __restrict__ order,
                                              const int* __restrict__ starts,
                                              const int* __restrict__ columns,
                                              const store* __restrict__ values,
                                              const Four* __restrict__ x,
                                              real s[3][LANES]) {
  __shared__ real part[3][3 * LANES][SLICE];
  const int turn = threadIdx.x / SLICE, k = threadIdx.x % SLICE;
  const int row = order[blockIdx.x] * SLICE + k;
  row_times<4>(row, turn, starts, columns, values, x, s);
  if (turn > 0) {
#pragma unroll
    for (int i = 0; i < 3 * LANES; i++) part[turn - 1][i][k] = s[i / LANES][i % LANES];
  }
  __syncthreads();
  if (turn > 0 || row >= n) return -1;
#pragma unroll
  for (int t = 0; t < 3; t++)
#pragma unroll
    for (int i = 0; i < 3 * LANES; i++) s[i / LANES][i % LANES] += part[t][i][k];
  return row;
}

#if HALF
typedef Inverse Diagonal;
__device__ __forceinline__ void diagonal_of(const Diagonal* inverse, int row, real q[9]) {
  read_inverse(inverse, row, q);
}
#else
typedef real Diagonal;
__device__ __forceinline__ void diagonal_of(const Diagonal* inverse, int row, real q[9]) {
#pragma unroll
  for (int c = 0; c < 9; c++) q[c] = __ldg(inverse + 9LL * row + c);
}
#endif
