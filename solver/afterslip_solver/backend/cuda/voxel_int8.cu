// Elastic waves on voxels by INT8 tensor cores: a whole step in one kernel, in FP64.
//
// A column is one element of one lane: 24 displacements. They become integers of BITS
// bits with one exponent, then DIGITS signed digits of base 256; digits times element
// matrices of integers (cpu/digits.py) are exact sums in INT32, put together in INT64 and
// rounded once. The sum of elements at a node has a fixed order and no operation is
// contracted, so that the CPU finds the same bits.
//
// A warp has 16 columns: four elements along x, four lanes. Thread (g, tig) owns nodes
// 2 tig and 2 tig + 1 of elements g / 4 and 2 + g / 4, as input and as output. A block
// owns TX x TY element columns, overlapping its neighbours by one, and marches CZ planes
// in z. The next plane of u comes through shared memory while two are used, and forces of
// elements go to nodes through it. A second buffer of forces would spare a barrier, and
// was slower.
//
// DIGITS 3 to 7; BITS; TX a multiple of 4, TY; RESIDENT blocks of a multiprocessor.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#define THREADS (TX * TY * 4)
// doubles of a component of all columns; padded so that stores meet no bank twice
#define BLOCK (TX * TY * 4)
#define SIDE (6 * BLOCK + 4)
#define BUFFER (4 * SIDE)
// planes of u: rows and planes begin at banks of their own
#define ROW ((TX + 1) * 4)
#define CELLS ((TY + 1) * ROW)
#define PLANE ((3 * CELLS + 15) / 16 * 16 + 8)

__device__ __forceinline__ void multiply(int (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(0));
}

// bytes number k of four words, as word number k
__device__ __forceinline__ void bytes(u32 a, u32 b, u32 c, u32 d, u32* found) {
  const u32 p = __byte_perm(a, b, 0x5140), q = __byte_perm(c, d, 0x5140);
  const u32 r = __byte_perm(a, b, 0x7362), s = __byte_perm(c, d, 0x7362);
  found[0] = __byte_perm(p, q, 0x5410); found[1] = __byte_perm(p, q, 0x7632);
  found[2] = __byte_perm(r, s, 0x5410); found[3] = __byte_perm(r, s, 0x7632);
}

__device__ __forceinline__ void bring(
    double* planes, const double* __restrict__ u, int left, int front, int z, int NX, int NY,
    int NZ) {
  double* to = planes + (z % 3) * PLANE;
  const u32 P = NX * NY, N = P * NZ, from = min(z, NZ - 1) * P;
  for (int n = threadIdx.x; n < 3 * (TY + 1) * (TX + 1) * 2; n += THREADS) {
    const int part = n & 1, i = (n >> 1) % (TX + 1), j = (n >> 1) / (TX + 1) % (TY + 1);
    const int c = (n >> 1) / ((TX + 1) * (TY + 1));
    const u32 x = min(max(left + i, 0), NX - 1), y = min(max(front + j, 0), NY - 1);
    const u32 at = (u32)__cvta_generic_to_shared(to + c * CELLS + j * ROW + i * 4 + 2 * part);
    const double* source = u + (c * N + from + y * NX + x) * 4 + 2 * part;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(source));
  }
  asm volatile("cp.async.commit_group;");
}

// forces of four elements, their first at column `first` of the tile
__device__ __forceinline__ void elements(
    const double* planes, const float* __restrict__ lam, const float* __restrict__ mu,
    const u32 (&B)[6][2], double* sh, int first, int x0, int y, int z, int NX, int NY, int NZ,
    double scale) {
  const int id = threadIdx.x & 31, g = id >> 2, tig = id & 3, lane = g & 3;
  const bool row = y >= 0 && y < NY - 1 && z < NZ - 1;
  u64 q[2][6];
  double back[2], whole[2], shear[2];
  #pragma unroll
  for (int h = 0; h < 2; h++) {
    const int x = x0 + 2 * h + (g >> 2);
    const bool in = row && x >= 0 && x < NX - 1;
    const u32 e = in ? (z * (NY - 1) + y) * (NX - 1) + x : 0u;
    double v[6];
    u32 top = 0;
    #pragma unroll
    for (int o = 0; o < 6; o++) {
      const int at = first + 2 * h + (g >> 2), i = at % TX, j = at / TX + (tig & 1);
      const double* own = planes + (z + (tig >> 1)) % 3 * PLANE + j * ROW + i * 4 + lane;
      v[o] = in ? own[(o % 3) * CELLS + o / 3 * 4] : 0.0;
    }
    const double m = in ? (double)mu[e] : 0.0, l = in ? (double)lam[e] : 0.0;
    #pragma unroll
    for (int o = 0; o < 6; o++) top = max(top, (u32)__double2hiint(v[o]) & 0x7fffffffu);
    top = max(top, __shfl_xor_sync(~0u, top, 1));
    top = max(top, __shfl_xor_sync(~0u, top, 2));
    const int power = max((int)(top >> 20), 64);  // |v| < 2^(power - 1022)
    const double up = __hiloint2double((2045 + BITS - power) << 20, 0);
    // what is not finite stays so
    back[h] = __hiloint2double(power == 2047 ? 0x7ff80000 : (1 + power - BITS) << 20, 0);
    whole[h] = __dmul_rn(__dadd_rn(l, 2.0 * m), scale);
    shear[h] = __dmul_rn(m, scale);
    #pragma unroll
    for (int o = 0; o < 6; o++) {
      const u64 k = (u64)__double2ll_rn(v[o] * up);
      q[h][o] = (k + 0x8080808080808080ull) ^ 0x8080808080808080ull;
    }
  }
  u32 A[2][2][8];  // element, half of the nodes' components, digit
  #pragma unroll
  for (int h = 0; h < 2; h++) {
    bytes((u32)q[h][0], (u32)q[h][1], (u32)q[h][2], (u32)q[h][3], A[h][0]);
    bytes((u32)q[h][4], (u32)q[h][5], 0, 0, A[h][1]);
    if (DIGITS > 4) {
      bytes((u32)(q[h][0] >> 32), (u32)(q[h][1] >> 32), (u32)(q[h][2] >> 32),
            (u32)(q[h][3] >> 32), A[h][0] + 4);
      bytes((u32)(q[h][4] >> 32), (u32)(q[h][5] >> 32), 0, 0, A[h][1] + 4);
    }
  }
  #pragma unroll
  for (int t = 0; t < 3; t++) {
    double part[2][4];
    #pragma unroll
    for (int k = 0; k < 2; k++) {
      int pair[4][4];  // two digits' sums: below 2^25
      #pragma unroll
      for (int p = 0; p < 4; p++) {
        int low[4] = {0, 0, 0, 0}, high[4] = {0, 0, 0, 0};
        if (2 * p < DIGITS)
          multiply(low, A[0][0][2 * p], A[1][0][2 * p], A[0][1][2 * p], A[1][1][2 * p],
                   B[3 * k + t][0], B[3 * k + t][1]);
        if (2 * p + 1 < DIGITS)
          multiply(high, A[0][0][2 * p + 1], A[1][0][2 * p + 1], A[0][1][2 * p + 1],
                   A[1][1][2 * p + 1], B[3 * k + t][0], B[3 * k + t][1]);
        #pragma unroll
        for (int i = 0; i < 4; i++) pair[p][i] = high[i] * 256 + low[i];
      }
      #pragma unroll
      for (int i = 0; i < 4; i++) {
        // the upper half modulo 2^32: the sum is below 2^63
        const u32 upper = (u32)pair[3][i] * 65536u + (u32)pair[2][i];
        const i64 lower = (i64)pair[1][i] * 65536 + pair[0][i];
        part[k][i] = __ll2double_rn((i64)((u64)lower + ((u64)upper << 32)));
      }
    }
    #pragma unroll
    for (int i = 0; i < 4; i++) {
      const int h = i >> 1, o = 2 * t + (i & 1), at = first + 2 * h + (g >> 2);
      const double sum = __dadd_rn(__dmul_rn(part[0][i], whole[h]), __dmul_rn(part[1][i], shear[h]));
      sh[(tig >> 1) * 2 * SIDE + (tig & 1) * SIDE + o * BLOCK + at * 4 + lane] = sum * back[h];
    }
  }
}

// v -= coef K u, then un = u + dt v; bytes of the element matrices in the order of threads
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
march(const double* __restrict__ u, double* __restrict__ un, double* __restrict__ v,
      const double* __restrict__ coef, const float* __restrict__ lam,
      const float* __restrict__ mu, const u32* __restrict__ matrices, int NX, int NY, int NZ,
      int CZ, double scale, double dt) {
  extern __shared__ __align__(16) double shared[];
  const int tid = threadIdx.x, lane = tid & 3, tx = (tid >> 2) % TX, ty = tid / (4 * TX);
  const int left = blockIdx.x * (TX - 1) - 1, front = blockIdx.y * (TY - 1) - 1;
  const int x = left + tx, y = front + ty;
  const int z0 = blockIdx.z * CZ, z1 = min(z0 + CZ, NZ), zs = max(z0 - 1, 0);
  const bool own = tx > 0 && ty > 0 && x < NX && y < NY;
  const u32 P = NX * NY, N = P * NZ;
  u32 B[6][2];
  #pragma unroll
  for (int t = 0; t < 6; t++) {
    B[t][0] = matrices[(2 * t) * 32 + (tid & 31)];
    B[t][1] = matrices[(2 * t + 1) * 32 + (tid & 31)];
  }
  double carry[3] = {0.0, 0.0, 0.0};
  double* planes = shared + BUFFER;
  bring(planes, u, left, front, zs, NX, NY, NZ);
  bring(planes, u, left, front, zs + 1, NX, NY, NZ);
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  for (int z = zs; z < z1; z++) {
    double* sh = shared;
    bring(planes, u, left, front, z + 2, NX, NY, NZ);
    #pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
      const int first = 4 * ((tid >> 5) + pass * (THREADS / 32));
      elements(planes, lam, mu, B, sh, first, left + first % TX, front + first / TX, z, NX, NY, NZ, scale);
    }
    const bool mine = own && z >= z0;
    double speed[3], here[3], factor[3];
    if (mine) {
      #pragma unroll
      for (int c = 0; c < 3; c++) {
        const u32 node = c * N + z * P + y * NX + x;
        speed[c] = v[node * 4 + lane];
        here[c] = planes[z % 3 * PLANE + c * CELLS + ty * ROW + tx * 4 + lane];
        factor[c] = coef[node];
      }
    }
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    if (own) {
      #pragma unroll
      for (int c = 0; c < 3; c++) {
        double half[2];
        #pragma unroll
        for (int up = 0; up < 2; up++) {
          const double* at = sh + up * 2 * SIDE + c * BLOCK + tid;
          const double row = __dadd_rn(at[0], at[3 * BLOCK - 4]);
          const double behind = __dadd_rn(at[SIDE - 4 * TX], at[SIDE + 3 * BLOCK - 4 * TX - 4]);
          half[up] = __dadd_rn(row, behind);
        }
        const double f = __dadd_rn(carry[c], half[0]);
        carry[c] = half[1];
        if (mine) {
          const u32 node = c * N + z * P + y * NX + x;
          const double faster = __dsub_rn(speed[c], __dmul_rn(factor[c], f));
          v[node * 4 + lane] = faster;
          un[node * 4 + lane] = __dadd_rn(here[c], __dmul_rn(dt, faster));
        }
      }
    }
    __syncthreads();
  }
}
