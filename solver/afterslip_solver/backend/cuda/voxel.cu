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
// multiprocessor; BETA_LAM, BETA_MU weights of the transverse modes (cpu/voxels.py).

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

// v -= coef K u, then un = u + dt v
extern "C" __global__ void __launch_bounds__(TX * TY * LANES_PER_NODE, RESIDENT)
march(const V* __restrict__ u, V* __restrict__ un, V* __restrict__ v,
      const REAL* __restrict__ coef, const float* __restrict__ lam,
      const float* __restrict__ mu, int NX, int NY, int NZ, int CZ, REAL scale, REAL dt) {
  extern __shared__ __align__(16) char raw[];
  V* sh = (V*)raw;
  const int L = LANES_PER_NODE, NT = TX * TY * L;
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
  V low[3][4], carry[3][4], centre[3];
  #pragma unroll
  for (int c = 0; c < 3; c++) {
    #pragma unroll
    for (int a = 0; a < 4; a++) {
      low[c][a] = u[(c * N + zs * P + o[a]) * L + lane];
      carry[c][a] = zero_();
    }
    centre[c] = low[c][0];
    SPLIT(low[c][0], low[c][1]) SPLIT(low[c][2], low[c][3])
    SPLIT(low[c][0], low[c][2]) SPLIT(low[c][1], low[c][3])
  }
  for (int z = zs; z < z1; z++) {
    V W[3][8], F[3][8], next[3], speed[3];
    REAL factor[3];
    const bool in = element && z < NZ - 1, mine = own && z >= z0;
    const int zu = min(z + 1, NZ - 1);
    const REAL la = in ? (REAL)lam[z * E + e] * scale : (REAL)0;
    const REAL m = in ? (REAL)mu[z * E + e] * scale : (REAL)0;
    #pragma unroll
    for (int c = 0; c < 3; c++)
      #pragma unroll
      for (int a = 0; a < 4; a++) W[c][4 + a] = u[(c * N + zu * P + o[a]) * L + lane];
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
