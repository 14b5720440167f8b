// A step of block-Jacobi conjugate gradients in FP32 on four lanes, in one pass.

#define LANES 4

// a = rho / sum of pq (n_sum, 4), or 0; x += a p, e -= a q, z = D^-1 e for nodes of
// three components; inverse (n, 3, 3). partial (block, 8): lane-wise sums of e z, then
// of e e, in FP64. All sums in the same order every time. 256 threads a block. Moves 24
// numbers a node and lane, and 9 a node.
extern "C" __global__ void __launch_bounds__(256)
    descend(int n, const float* __restrict__ inverse, double rho0, double rho1,
            double rho2, double rho3, int n_sum, const double* __restrict__ pq,
            const float* __restrict__ p, const float* __restrict__ q, float* x, float* e,
            float* z, double* partial) {
  const int lane = threadIdx.x % LANES;
  __shared__ double part[8][2 * LANES];
  double curvature = 0;
  for (int i = threadIdx.x; i < n_sum * LANES; i += blockDim.x) curvature += pq[i];
  for (int away = 16; away >= LANES; away /= 2)
    curvature += __shfl_down_sync(~0u, curvature, away);
  if (threadIdx.x % 32 < LANES) part[threadIdx.x / 32][threadIdx.x % 32] = curvature;
  __syncthreads();
  curvature = 0;
  for (int w = 0; w < 8; w++) curvature += part[w][lane];
  __syncthreads();
  const double rho = lane < 2 ? (lane == 0 ? rho0 : rho1) : (lane == 2 ? rho2 : rho3);
  const float a = curvature > 0 ? (float)(rho / curvature) : 0.0f;
  double ez = 0, ee = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
       i < (long long)n * LANES; i += (long long)gridDim.x * blockDim.x) {
    const long long node = i / LANES, at = node * 3 * LANES + lane;
    float r[3];
    for (int c = 0; c < 3; c++) {
      const long long k = at + c * LANES;
      x[k] += a * p[k];
      r[c] = e[k] - a * q[k];
      e[k] = r[c];
      ee += (double)r[c] * r[c];
    }
    const float* d = inverse + 9 * node;
    for (int c = 0; c < 3; c++) {
      const float s = d[3 * c] * r[0] + d[3 * c + 1] * r[1] + d[3 * c + 2] * r[2];
      z[at + c * LANES] = s;
      ez += (double)s * r[c];
    }
  }
  for (int away = 16; away >= LANES; away /= 2) {
    ez += __shfl_down_sync(~0u, ez, away);
    ee += __shfl_down_sync(~0u, ee, away);
  }
  if (threadIdx.x % 32 < LANES) {
    part[threadIdx.x / 32][threadIdx.x % 32] = ez;
    part[threadIdx.x / 32][LANES + threadIdx.x % 32] = ee;
  }
  __syncthreads();
  if (threadIdx.x < 2 * LANES) {
    double total = 0;
    for (int w = 0; w < 8; w++) total += part[w][threadIdx.x];
    partial[blockIdx.x * 2 * LANES + threadIdx.x] = total;
  }
}
