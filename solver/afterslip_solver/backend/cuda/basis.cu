// Several vectors of four lanes against one, in one pass over each.
//
// Compile with -DX=float|double, the precision of the vectors of the basis, which are
// given by their addresses. Sums are FP64 and always taken in the same order.

#define LANES 4
#define MANY 8
#define STRIDE (5 * LANES)

#define EVERY(i, n)                                                             \
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (long long)gridDim.x * blockDim.x)

// partial (block, MANY, lane) of 256 threads; threads keep their lane
__device__ __forceinline__ void reduce(const double sum[MANY], double* partial) {
  __shared__ double part[MANY][8][LANES];
#pragma unroll
  for (int j = 0; j < MANY; j++) {
    double s = sum[j];
    for (int away = 16; away >= LANES; away /= 2) s += __shfl_down_sync(~0u, s, away);
    if (threadIdx.x % 32 < LANES) part[j][threadIdx.x / 32][threadIdx.x % 32] = s;
  }
  __syncthreads();
  if (threadIdx.x < MANY * LANES) {
    double total = 0;
    for (int w = 0; w < 8; w++) total += part[threadIdx.x / LANES][w][threadIdx.x % LANES];
    partial[blockIdx.x * MANY * LANES + threadIdx.x] = total;
  }
}

// lane-wise inner products of r with each of m <= MANY vectors
extern "C" __global__ void dots(long long n, int m, const X* const* __restrict__ basis,
                                const double* __restrict__ r, double* partial) {
  double sum[MANY] = {};
  EVERY(i, n) {
    const double value = r[i];
#pragma unroll
    for (int j = 0; j < MANY; j++)
      if (j < m) sum[j] += (double)basis[j][i] * value;
  }
  reduce(sum, partial);
}

// the same in the energy of creep: rows of (vertex 4, component 5, lane), for each row
// energy (sum_a b_a r_a + (sum_a b_a) (sum_a r_a)) over the vertices a
extern "C" __global__ void energy_dots(long long rows, const double* __restrict__ energy, int m,
                                       const X* const* __restrict__ basis,
                                       const double* __restrict__ r, double* partial) {
  double sum[MANY] = {};
  EVERY(i, rows * STRIDE) {
    const long long at = i / STRIDE * (4 * STRIDE) + i % STRIDE;
    double v[4], total = 0;
#pragma unroll
    for (int a = 0; a < 4; a++) total += v[a] = r[at + a * STRIDE];
    const double w = energy[i / STRIDE];
#pragma unroll
    for (int a = 0; a < 4; a++) v[a] = w * (v[a] + total);
#pragma unroll
    for (int j = 0; j < MANY; j++)
      if (j < m)
#pragma unroll
        for (int a = 0; a < 4; a++) sum[j] += (double)basis[j][at + a * STRIDE] * v[a];
  }
  reduce(sum, partial);
}

// r += sum_j factors_j basis_j, factors (m, lane)
extern "C" __global__ void combine(long long n, int m, const X* const* __restrict__ basis,
                                   const double* __restrict__ factors, double* r) {
  const int lane = threadIdx.x % LANES;
  EVERY(i, n) {
    double value = r[i];
    for (int j = 0; j < m; j++) value += factors[j * LANES + lane] * (double)basis[j][i];
    r[i] = value;
  }
}
