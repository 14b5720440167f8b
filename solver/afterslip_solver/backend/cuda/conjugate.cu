// One iteration of preconditioned conjugate gradients on four lanes without the host:
// scalars stay on the device. Directions are FP32 like the preconditioner; the iterate
// and its residual are FP64 (`advance`) or FP32 as well (`advance_single`).

#define LANES 4

// rows of `state` (row, lane); SIZE, UNIT and SCALE are given, the others follow
#define RZ 0
#define ALPHA 1
#define BETA 2
#define CURVATURE 3   // p K p
#define RELATIVE 4    // norm of the residual over UNIT
#define ACTIVE 5
#define SIZE 6        // of the residual, for FP32
#define UNIT 7
#define SCALE 8       // of what the preconditioner returns, per SIZE
#define TOLERANCE 9

#define EVERY(i, n)                                                             \
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (long long)gridDim.x * blockDim.x)

// lane-wise sums of one thread block of 256, in a fixed order; the result is in the
// first four threads
__device__ __forceinline__ double block_sum(double s) {
  __shared__ double part[8][LANES];
  for (int away = 16; away >= LANES; away /= 2) s += __shfl_down_sync(~0u, s, away);
  if (threadIdx.x % 32 < LANES) part[threadIdx.x / 32][threadIdx.x % 32] = s;
  __syncthreads();
  double total = 0;
  if (threadIdx.x < LANES)
    for (int w = 0; w < 8; w++) total += part[w][threadIdx.x];
  return total;
}

// sums (n, 4) to few (gridDim.x, 4), 256 threads
extern "C" __global__ void fold(int n, const double* __restrict__ sums, double* few) {
  double s = 0;
  EVERY(i, (long long)n * LANES) s += sums[i];
  s = block_sum(s);
  if (threadIdx.x < LANES) few[blockIdx.x * LANES + threadIdx.x] = s;
}

// one block each: what follows from the sums (n, 4) of z r, of p K p and of r r
extern "C" __global__ void find_beta(int n, const double* few, double* state) {
  double s = 0;
  EVERY(i, n * LANES) s += few[i];
  s = block_sum(s);
  if (threadIdx.x >= LANES) return;
  double* mine = state + threadIdx.x;
  // sums are of the scaled vectors
  s *= mine[SIZE * LANES] * mine[SIZE * LANES] * mine[SCALE * LANES];
  const double before = mine[RZ * LANES];
  mine[BETA * LANES] = mine[ACTIVE * LANES] != 0 && before > 0 ? s / before : 0;
  mine[RZ * LANES] = s;
}
extern "C" __global__ void find_alpha(int n, const double* few, double* state) {
  double s = 0;
  EVERY(i, n * LANES) s += few[i];
  s = block_sum(s);
  if (threadIdx.x >= LANES) return;
  double* mine = state + threadIdx.x;
  const double alpha = mine[RZ * LANES] / s;
  // a lane that breaks down stays as it is; the host looks at its curvature
  const bool go = mine[ACTIVE * LANES] != 0 && s > 0 && isfinite(alpha);
  mine[CURVATURE * LANES] = s;
  mine[ALPHA * LANES] = go ? alpha : 0;
}
extern "C" __global__ void find_norm(int n, const double* few, double* state) {
  double s = 0;
  EVERY(i, n * LANES) s += few[i];
  s = block_sum(s);
  if (threadIdx.x >= LANES) return;
  double* mine = state + threadIdx.x;
  const double relative = sqrt(s) / mine[UNIT * LANES];
  mine[RELATIVE * LANES] = relative;
  if (relative <= mine[TOLERANCE * LANES]) mine[ACTIVE * LANES] = 0;
}

// p = z + beta p, with z scaled
extern "C" __global__ void direct(long long n, const double* __restrict__ state,
                                  const float4* __restrict__ z, float4* p) {
  float beta[LANES], scale[LANES];
  for (int m = 0; m < LANES; m++) {
    beta[m] = (float)state[BETA * LANES + m];
    scale[m] = (float)(state[SIZE * LANES + m] * state[SCALE * LANES + m]);
  }
  EVERY(i, n) {
    const float4 a = z[i];
    float4 b = p[i];
    b.x = scale[0] * a.x + beta[0] * b.x;
    b.y = scale[1] * a.y + beta[1] * b.y;
    b.z = scale[2] * a.z + beta[2] * b.z;
    b.w = scale[3] * a.w + beta[3] * b.w;
    p[i] = b;
  }
}

struct alignas(32) Four { double a[LANES]; };

// sums (block, 4) of what the threads of each block have; 256 threads
__device__ __forceinline__ void put_sums(const double* dot, double* sums) {
  __shared__ double part[8][LANES];
#pragma unroll
  for (int m = 0; m < LANES; m++) {
    double s = dot[m];
    for (int away = 16; away > 0; away /= 2) s += __shfl_down_sync(~0u, s, away);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32][m] = s;
  }
  __syncthreads();
  if (threadIdx.x < LANES) {
    double total = 0;
    for (int w = 0; w < 8; w++) total += part[w][threadIdx.x];
    sums[blockIdx.x * LANES + threadIdx.x] = total;
  }
}

// x += alpha p, b -= alpha q in FP32; sums (block, 4) of b b; 256 threads
extern "C" __global__ void __launch_bounds__(256)
    advance_single(long long n, const double* __restrict__ state,
                   const float4* __restrict__ p, const float4* __restrict__ q,
                   float4* x, float4* b, double* sums) {
  float alpha[LANES];
  double dot[LANES] = {};
  for (int m = 0; m < LANES; m++) alpha[m] = (float)state[ALPHA * LANES + m];
  EVERY(i, n) {
    const float4 way = p[i], kp = q[i];
    float4 at = x[i], rest = b[i];
    at.x += alpha[0] * way.x;
    at.y += alpha[1] * way.y;
    at.z += alpha[2] * way.z;
    at.w += alpha[3] * way.w;
    rest.x -= alpha[0] * kp.x;
    rest.y -= alpha[1] * kp.y;
    rest.z -= alpha[2] * kp.z;
    rest.w -= alpha[3] * kp.w;
    x[i] = at;
    b[i] = rest;
    dot[0] += (double)rest.x * rest.x;
    dot[1] += (double)rest.y * rest.y;
    dot[2] += (double)rest.z * rest.z;
    dot[3] += (double)rest.w * rest.w;
  }
  put_sums(dot, sums);
}

// u += alpha p, r -= alpha q, b = r / SIZE; sums (block, 4) of r r; 256 threads
extern "C" __global__ void __launch_bounds__(256)
    advance(long long n, const double* __restrict__ state, const float4* __restrict__ p,
            const Four* __restrict__ q, Four* u, Four* r, float4* b, double* sums) {
  double alpha[LANES], scale[LANES], dot[LANES] = {};
  for (int m = 0; m < LANES; m++) {
    alpha[m] = state[ALPHA * LANES + m];
    scale[m] = 1 / state[SIZE * LANES + m];
  }
  EVERY(i, n) {
    const float4 way = p[i];
    const Four kp = q[i];
    Four at = u[i], rest = r[i];
    at.a[0] += alpha[0] * way.x;
    at.a[1] += alpha[1] * way.y;
    at.a[2] += alpha[2] * way.z;
    at.a[3] += alpha[3] * way.w;
#pragma unroll
    for (int m = 0; m < LANES; m++) {
      rest.a[m] -= alpha[m] * kp.a[m];
      dot[m] += rest.a[m] * rest.a[m];
    }
    u[i] = at;
    r[i] = rest;
    b[i] = make_float4((float)(scale[0] * rest.a[0]), (float)(scale[1] * rest.a[1]),
                       (float)(scale[2] * rest.a[2]), (float)(scale[3] * rest.a[3]));
  }
  put_sums(dot, sums);
}

// An iterate u + factor x, x in FP32 or none, at rows of three components: `before`
// becomes it, and largest (block, 2, 4) are how far it has moved and its size; 256
// threads
extern "C" __global__ void moved(int n, const long long* __restrict__ rows,
                                 const Four* __restrict__ u, const float4* x,
                                 const double* factor, Four* before, double* largest) {
  __shared__ double part[8][2 * LANES];
  double most[2 * LANES] = {};
  EVERY(i, 3LL * n) {
    const long long at = 3 * rows[i / 3] + i % 3;
    Four now = u[at];
    if (x) {
      const float4 more = x[at];
      now.a[0] += factor[0] * more.x;
      now.a[1] += factor[1] * more.y;
      now.a[2] += factor[2] * more.z;
      now.a[3] += factor[3] * more.w;
    }
    const Four old = before[i];
#pragma unroll
    for (int m = 0; m < LANES; m++) {
      most[m] = max(most[m], fabs(now.a[m] - old.a[m]));
      most[LANES + m] = max(most[LANES + m], fabs(now.a[m]));
    }
    before[i] = now;
  }
#pragma unroll
  for (int m = 0; m < 2 * LANES; m++) {
    double s = most[m];
    for (int away = 16; away > 0; away /= 2)
      s = max(s, __shfl_down_sync(~0u, s, away));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32][m] = s;
  }
  __syncthreads();
  if (threadIdx.x >= 2 * LANES) return;
  double s = 0;
  for (int w = 0; w < 8; w++) s = max(s, part[w][threadIdx.x]);
  largest[blockIdx.x * 2 * LANES + threadIdx.x] = s;
}

#ifndef OTHER
#define OTHER float
#endif
struct alignas(4 * sizeof(OTHER)) Other { OTHER a[LANES]; };

// sums (block, 4) of a b, 256 threads; -DOTHER is the precision of b
extern "C" __global__ void dot(long long n, const float4* __restrict__ a,
                               const Other* __restrict__ b, double* sums) {
  double s[LANES] = {};
  EVERY(i, n) {
    const float4 x = a[i];
    const Other y = b[i];
    s[0] += (double)x.x * y.a[0];
    s[1] += (double)x.y * y.a[1];
    s[2] += (double)x.z * y.a[2];
    s[3] += (double)x.w * y.a[3];
  }
  put_sums(s, sums);
}
