// Vectors of four lanes, each operation in one pass. Y and X are the types of the two
// vectors: -DY=... -DX=...

#define LANES 4

#define FACTORS double a0, double a1, double a2, double a3
// threads keep their lane: strides are multiples of four
#define OF_LANE                                         \
  const int lane = threadIdx.x % LANES;                 \
  const double a = lane < 2 ? (lane == 0 ? a0 : a1) : (lane == 2 ? a2 : a3);

#define EVERY(i, n)                                                             \
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (long long)gridDim.x * blockDim.x)

// y += a x
extern "C" __global__ void axpy(long long n, Y* y, FACTORS, const X* __restrict__ x) {
  OF_LANE
  EVERY(i, n) y[i] += (Y)a * (Y)x[i];
}

// y = x + a y
extern "C" __global__ void xpay(long long n, Y* y, FACTORS, const X* __restrict__ x) {
  OF_LANE
  EVERY(i, n) y[i] = (Y)x[i] + (Y)a * y[i];
}

// y = a x; y may be x
extern "C" __global__ void scale_into(long long n, Y* y, FACTORS, const X* x) {
  OF_LANE
  EVERY(i, n) y[i] = (Y)(a * x[i]);
}

// partial (block, 4): lane-wise sums of x y in FP64, 256 threads a block; always the
// same order, so always the same result
extern "C" __global__ void dot(long long n, const X* __restrict__ x,
                               const Y* __restrict__ y, double* partial) {
  __shared__ double part[8][LANES];
  double s = 0;
  EVERY(i, n) s += (double)x[i] * (double)y[i];
  for (int away = 16; away >= LANES; away /= 2) s += __shfl_down_sync(~0u, s, away);
  if (threadIdx.x % 32 < LANES) part[threadIdx.x / 32][threadIdx.x % 32] = s;
  __syncthreads();
  if (threadIdx.x < LANES) {
    double total = 0;
    for (int w = 0; w < 8; w++) total += part[w][threadIdx.x];
    partial[blockIdx.x * LANES + threadIdx.x] = total;
  }
}

// y (n, 3, lane) += sum over k of w (k, n_part, lane) x (k, n, 3, lane), a weight for
// every node's part; n counts the entries of y. Moves (k + 2) n numbers.
extern "C" __global__ void blend(long long n, int count, int n_part,
                                 const X* __restrict__ x, const int* __restrict__ part,
                                 const X* __restrict__ w, Y* y) {
  const int lane = threadIdx.x % LANES;
  EVERY(i, n) {
    const X* weight = w + (long long)part[i / (3 * LANES)] * LANES + lane;
    Y s = y[i];
    for (int k = 0; k < count; k++)
      s += weight[(long long)k * n_part * LANES] * x[k * n + i];
    y[i] = s;
  }
}
