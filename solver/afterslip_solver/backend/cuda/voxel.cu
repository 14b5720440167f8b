// Elastic waves on voxels: a whole step in one kernel, without atomics.
//
// Fields are [component][node][lane], node = (z NY + y) NX + x, four lanes. A thread is
// an element column and PER lanes of it; a block owns TX x TY columns, overlapping its
// neighbours by one, and marches CZ planes in z. Per plane: four nodes are read and
// transformed in the plane (and remain for the next one), combined along z, made into
// forces, transformed back; three of four corner values go to the neighbours through
// shared memory, in two buffers, so that one barrier a plane is enough.
//
// REAL float or double; PER lanes of a thread; TX, TY; RESIDENT blocks of a
// multiprocessor; BETA_LAM, BETA_MU weights of the transverse modes (cpu/voxels.py);
// BODIES whether rock relaxes; STAGED whether the next plane comes through shared memory
// while one is used, which was faster in FP64 and slower in FP32.

typedef long long i64;
// offsets of values: the caller checks that they fit
typedef unsigned int u32;

struct __align__(sizeof(REAL) * PER) V { REAL x[PER]; };

#define LANES_PER_NODE (4 / PER)
#define EACH for (int k_ = 0; k_ < PER; k_++)

__device__ __forceinline__ V operator+(V a, V b) { V r; EACH r.x[k_] = a.x[k_] + b.x[k_]; return r; }
__device__ __forceinline__ V operator-(V a, V b) { V r; EACH r.x[k_] = a.x[k_] - b.x[k_]; return r; }
__device__ __forceinline__ V operator*(REAL a, V b) { V r; EACH r.x[k_] = a * b.x[k_]; return r; }
__device__ __forceinline__ V fma_(REAL a, V b, V c) {
  V r; EACH r.x[k_] = fma(a, b.x[k_], c.x[k_]); return r;
}
__device__ __forceinline__ V zero_() { V r; EACH r.x[k_] = (REAL)0; return r; }

// values at the lower and the upper end of an axis: sum and difference; the transpose
#define SPLIT(a, b) { V t_ = a; a = t_ + b; b = b - t_; }
#define JOIN(a, b) { V t_ = a; a = t_ - b; b = t_ + b; }

// forces F of transformed displacements W; bit i of an index: difference along axis i
__device__ __forceinline__ void stress(const V (&W)[3][8], V (&F)[3][8], REAL lam, REAL mu) {
  const REAL sides = lam * (REAL)(BETA_LAM), shear = mu * (REAL)(BETA_MU);
  const REAL last = sides * (REAL)(BETA_LAM) + shear * (REAL)(4.0 * (BETA_MU));
  const REAL three = 3 * shear, two = 2 * mu;
  const V *x = W[0], *y = W[1], *z = W[2];
  V tr = lam * (x[1] + y[2] + z[4]);
  V xy = mu * (x[2] + y[1]), xz = mu * (x[4] + z[1]), yz = mu * (y[4] + z[2]);
  V twist = x[6] + y[5] + z[3];
  V a = sides * (y[3] + z[5]), b = sides * (x[3] + z[6]), c = sides * (x[5] + y[6]);
  F[0][0] = F[1][0] = F[2][0] = zero_();
  F[0][1] = fma_(two, x[1], tr); F[1][1] = xy; F[2][1] = xz;
  F[0][2] = xy; F[1][2] = fma_(two, y[2], tr); F[2][2] = yz;
  F[0][4] = xz; F[1][4] = yz; F[2][4] = fma_(two, z[4], tr);
  F[0][3] = fma_(three, x[3], b); F[1][3] = fma_(three, y[3], a); F[2][3] = shear * (twist + z[3]);
  F[0][5] = fma_(three, x[5], c); F[1][5] = shear * (twist + y[5]); F[2][5] = fma_(three, z[5], a);
  F[0][6] = shear * (twist + x[6]); F[1][6] = fma_(three, y[6], c); F[2][6] = fma_(three, z[6], b);
  F[0][7] = last * x[7]; F[1][7] = last * y[7]; F[2][7] = last * z[7];
}

// memory variables of a voxel: the strain that has relaxed pulls the stress down
__device__ __forceinline__ void relax(
    const V (&W)[3][8], V (&F)[3][8], const V* __restrict__ memory, V* __restrict__ then,
    u32 at, u32 count, REAL lam, REAL mu, REAL decay, bool write) {
  const V strain[6] = {W[0][1], W[1][2], W[2][4], W[0][2] + W[1][1], W[0][4] + W[2][1],
                       W[1][4] + W[2][2]};
  const REAL half = (REAL)0.5 * ((REAL)1 - decay);
  V relaxed[6];
  #pragma unroll
  for (int i = 0; i < 6; i++) {
    relaxed[i] = fma_(half, strain[i], memory[i * count + at]);
    if (write) then[i * count + at] = fma_(decay, relaxed[i], half * strain[i]);
  }
  const V trace = lam * (relaxed[0] + relaxed[1] + relaxed[2]);
  F[0][1] = F[0][1] - fma_(2 * mu, relaxed[0], trace);
  F[1][2] = F[1][2] - fma_(2 * mu, relaxed[1], trace);
  F[2][4] = F[2][4] - fma_(2 * mu, relaxed[2], trace);
  const V xy = mu * relaxed[3], xz = mu * relaxed[4], yz = mu * relaxed[5];
  F[0][2] = F[0][2] - xy; F[1][1] = F[1][1] - xy;
  F[0][4] = F[0][4] - xz; F[2][1] = F[2][1] - xz;
  F[1][4] = F[1][4] - yz; F[2][2] = F[2][2] - yz;
}

__device__ __forceinline__ void fetch(V* shared, const V* global) {
  const u32 to = (u32)__cvta_generic_to_shared(shared);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(sizeof(V)));
}

#define ROW ((TX + 1) * LANES_PER_NODE)
#define CELLS ((TY + 1) * ROW)
#define PLANE (STAGED ? 3 * CELLS : 0)

// v -= coef K u, then un = u + dt v; with BODIES also the memory of Zener bodies
extern "C" __global__ void __launch_bounds__(TX * TY * LANES_PER_NODE, RESIDENT)
march(const V* __restrict__ u, V* __restrict__ un, V* __restrict__ v,
      const REAL* __restrict__ coef, const float* __restrict__ lam,
      const float* __restrict__ mu, int NX, int NY, int NZ, int CZ, REAL scale, REAL dt
#if BODIES
      , const V* __restrict__ memory, V* __restrict__ after, const float* __restrict__ lost_lam,
      const float* __restrict__ lost_mu, const REAL* __restrict__ decay
#endif
      ) {
  extern __shared__ __align__(16) char raw[];
  const int L = LANES_PER_NODE, NT = TX * TY * L;
  // planes of u where they are staged, then forces for the neighbours
  V* planes = (V*)raw;
  V* sh = planes + 2 * PLANE;
  const int tid = threadIdx.x, lane = tid % L, tx = tid / L % TX, ty = tid / (L * TX);
  const int x = blockIdx.x * (TX - 1) - 1 + tx, y = blockIdx.y * (TY - 1) - 1 + ty;
  const int z0 = blockIdx.z * CZ, z1 = min(z0 + CZ, NZ), zs = max(z0 - 1, 0);
  const bool element = x >= 0 && y >= 0 && x < NX - 1 && y < NY - 1;
  const bool own = tx > 0 && ty > 0 && x < NX && y < NY;
  const int xa = min(max(x, 0), NX - 1), xb = min(x + 1, NX - 1);
  const int ya = min(max(y, 0), NY - 1), yb = min(y + 1, NY - 1);
  const u32 P = NX * NY, N = P * NZ;
  const u32 o[4] = {u32(ya * NX + xa), u32(ya * NX + xb), u32(yb * NX + xa), u32(yb * NX + xb)};
  const u32 e = y * (NX - 1) + x, E = (NX - 1) * (NY - 1);
#if STAGED
  const int slot = ty * ROW + tx * L + lane, away[4] = {0, L, ROW, ROW + L};
  const bool edge_x = tx == TX - 1, edge_y = ty == TY - 1;
  auto bring = [&](int z) {
    V* to = planes + (z & 1) * PLANE + slot;
    const V* from = u + (u32)(min(z, NZ - 1) * P) * L + lane;
    #pragma unroll
    for (int c = 0; c < 3; c++, to += CELLS, from += N * L) {
      fetch(to, from + o[0] * L);
      if (edge_x) fetch(to + L, from + o[1] * L);
      if (edge_y) fetch(to + ROW, from + o[2] * L);
      if (edge_x && edge_y) fetch(to + ROW + L, from + o[3] * L);
    }
    asm volatile("cp.async.commit_group;");
  };
#endif
  auto corner = [&](int c, int z, int a) {
#if STAGED
    return planes[(z & 1) * PLANE + c * CELLS + slot + away[a]];
#else
    return u[(c * N + min(z, NZ - 1) * P + o[a]) * L + lane];
#endif
  };
  auto moduli = [&](int z, REAL& la, REAL& m) {
    const bool in = element && z < NZ - 1;
    la = in ? (REAL)lam[z * E + e] * scale : (REAL)0;
    m = in ? (REAL)mu[z * E + e] * scale : (REAL)0;
  };
  V low[3][4], carry[3][4], centre[3];
  REAL la, m;
  moduli(zs, la, m);
#if STAGED
  bring(zs);
  bring(zs + 1);
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
#endif
  #pragma unroll
  for (int c = 0; c < 3; c++) {
    #pragma unroll
    for (int a = 0; a < 4; a++) {
      low[c][a] = corner(c, zs, a);
      carry[c][a] = zero_();
    }
    centre[c] = low[c][0];
    SPLIT(low[c][0], low[c][1]) SPLIT(low[c][2], low[c][3])
    SPLIT(low[c][0], low[c][2]) SPLIT(low[c][1], low[c][3])
  }
#if STAGED
  __syncthreads();
#endif
  for (int z = zs; z < z1; z++) {
    V W[3][8], F[3][8], next[3], speed[3];
    REAL factor[3], later_la, later_m;
    const bool mine = own && z >= z0;
#if STAGED
    bring(z + 2);
#endif
    moduli(z + 1, later_la, later_m);
    if (mine) {
      #pragma unroll
      for (int c = 0; c < 3; c++) {
        const u32 node = c * N + z * P + o[0];
        factor[c] = coef[node];
        speed[c] = v[node * L + lane];
      }
    }
    #pragma unroll
    for (int c = 0; c < 3; c++) {
      #pragma unroll
      for (int a = 0; a < 4; a++) W[c][4 + a] = corner(c, z + 1, a);
      next[c] = W[c][4];
      SPLIT(W[c][4], W[c][5]) SPLIT(W[c][6], W[c][7])
      SPLIT(W[c][4], W[c][6]) SPLIT(W[c][5], W[c][7])
      #pragma unroll
      for (int a = 0; a < 4; a++) {
        V up = W[c][4 + a];
        W[c][a] = low[c][a] + up;
        W[c][4 + a] = up - low[c][a];
        low[c][a] = up;
      }
    }
    stress(W, F, la, m);
#if BODIES
    if (element && z < NZ - 1) {
      const u32 at = z * E + e;
      relax(W, F, memory, after, at * L + lane, E * (NZ - 1) * L, (REAL)lost_lam[at] * scale,
            (REAL)lost_mu[at] * scale, decay[(x & 1) + 2 * (y & 1) + 4 * (z & 1)],
            tx > 0 && ty > 0 && z >= z0);
    }
#endif
    la = later_la; m = later_m;
    V* s = sh + (z & 1) * 9 * NT;
    V here[3];
    #pragma unroll
    for (int c = 0; c < 3; c++) {
      V g[4];
      #pragma unroll
      for (int a = 0; a < 4; a++) {
        g[a] = carry[c][a] + (F[c][a] - F[c][4 + a]);
        carry[c][a] = F[c][a] + F[c][4 + a];
      }
      JOIN(g[0], g[2]) JOIN(g[1], g[3]) JOIN(g[0], g[1]) JOIN(g[2], g[3])
      here[c] = g[0];
      #pragma unroll
      for (int a = 1; a < 4; a++) s[(3 * c + a - 1) * NT + tid] = g[a];
    }
#if STAGED
    asm volatile("cp.async.wait_group 0;");
#endif
    __syncthreads();
    if (mine) {
      #pragma unroll
      for (int c = 0; c < 3; c++) {
        const u32 node = c * N + z * P + o[0];
        V f = here[c] + s[3 * c * NT + tid - L];
        f = f + (s[(3 * c + 1) * NT + tid - L * TX] + s[(3 * c + 2) * NT + tid - L * TX - L]);
        V faster = fma_(-factor[c], f, speed[c]);
        v[node * L + lane] = faster;
        un[node * L + lane] = fma_(dt, faster, centre[c]);
      }
    }
    #pragma unroll
    for (int c = 0; c < 3; c++) centre[c] = next[c];
  }
}

// v = remain v - pull u in some rows
extern "C" __global__ void damp(const REAL* u, REAL* v, const i64* rows, const REAL* remain,
                                const REAL* pull, int n) {
  const i64 t = (i64)blockIdx.x * blockDim.x + threadIdx.x, r = t / 4;
  if (r >= n) return;
  const i64 at = rows[r] * 4 + t % 4;
  v[at] = remain[r] * v[at] - pull[r] * u[at];
}

// v += coef moment load in some rows
extern "C" __global__ void push(REAL* v, const REAL* coef, const i64* rows, const REAL* loads,
                                REAL moment, int n) {
  const i64 t = (i64)blockIdx.x * blockDim.x + threadIdx.x, r = t / 4;
  if (r >= n) return;
  v[rows[r] * 4 + t % 4] += coef[rows[r]] * moment * loads[t];
}

// sums of a b over the rows of a block, whose threads are a power of two
extern "C" __global__ void inner(const REAL* a, const REAL* b, double* parts, i64 rows) {
  __shared__ double sum[128];
  const int tid = threadIdx.x;
  const i64 stride = (i64)gridDim.x * blockDim.x;
  double own = 0.0;
  for (i64 n = (i64)blockIdx.x * blockDim.x + tid; n < rows * 4; n += stride)
    own += (double)a[n] * (double)b[n];
  sum[tid] = own;
  for (int half = blockDim.x / 2; half >= 4; half /= 2) {
    __syncthreads();
    if (tid < half) sum[tid] += sum[tid + half];
  }
  if (tid < 4) parts[blockIdx.x * 4 + tid] = sum[tid];
}

// sums of values times field over entries, whose rows are listed, of each row of a matrix
extern "C" __global__ void weigh(const REAL* field, const i64* first, const i64* rows,
                                 const double* values, double* found) {
  __shared__ double sum[512];
  const int tid = threadIdx.x;
  double own = 0.0;
  for (i64 n = first[blockIdx.x] + tid / 4; n < first[blockIdx.x + 1]; n += blockDim.x / 4)
    own += values[n] * (double)field[rows[n] * 4 + tid % 4];
  sum[tid] = own;
  for (int half = blockDim.x / 2; half >= 4; half /= 2) {
    __syncthreads();
    if (tid < half) sum[tid] += sum[tid + half];
  }
  if (tid < 4) found[blockIdx.x * 4 + tid] = sum[tid];
}

// sums of v v / coef over the rows of a block, whose threads are a power of two
extern "C" __global__ void kinetic(const REAL* v, const REAL* coef, double* parts, i64 rows) {
  __shared__ double sum[128];
  const int tid = threadIdx.x, lane = tid % 4;
  const i64 stride = (i64)gridDim.x * blockDim.x / 4;
  double own = 0.0;
  for (i64 r = ((i64)blockIdx.x * blockDim.x + tid) / 4; r < rows; r += stride) {
    const double mass = coef[r] > (REAL)0 ? 1.0 / (double)coef[r] : 0.0;
    own += mass * (double)v[r * 4 + lane] * (double)v[r * 4 + lane];
  }
  sum[tid] = own;
  for (int half = blockDim.x / 2; half >= 4; half /= 2) {
    __syncthreads();
    if (tid < half) sum[tid] += sum[tid + half];
  }
  if (tid < 4) parts[blockIdx.x * 4 + tid] = sum[tid];
}
