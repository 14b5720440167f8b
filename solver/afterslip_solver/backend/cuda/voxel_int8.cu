// Elastic waves on voxels by INT8 tensor cores: a whole step in one kernel, in FP64.
//
// A column is one element of one lane: 24 displacements. They become integers of BITS
// bits with one exponent, whose DIGITS bytes, the highest one signed, are digits of base
// 256; digits times element matrices of integers (cpu/digits.py) are exact sums in INT32,
// put together in INT64 and rounded once. Rows of these matrices add to zero, so that
// bytes without a sign make sums as small as signed ones. The sum of elements at a node
// has a fixed order and no operation is contracted, so that the CPU finds the same bits.
// Latency binds, then instructions: what does not change with z is found once.
//
// A warp has 16 columns: four elements along x, four lanes. Thread (g, tig) owns nodes
// 2 tig and 2 tig + 1 of elements g / 4 and 2 + g / 4, as input and as output; the forces
// of neighbours along x at a node are added between threads, also from one four to the
// next. A block owns TX x TY element columns, overlapping its neighbours by one, and
// marches CZ planes in z. The next plane of u comes through shared memory while two are
// used. Forces go through it in two buffers in turn, which need one barrier a plane.
//
// DIGITS 3 to 7; BITS; TX 8, TY; RESIDENT blocks of a multiprocessor.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#if TX != 8
#error "a warp owns a row of eight element columns"
#endif
#define THREADS (TX * TY * 4)
// doubles of a component of all columns; padded so that stores meet no bank twice
#define BLOCK (TX * TY * 4)
#define SIDE (3 * BLOCK + 4)
#define BUFFER (4 * SIDE)
// planes of u: rows and planes begin at banks of their own
#define ROW ((TX + 1) * 4)
#define CELLS ((TY + 1) * ROW)
#define PLANE ((3 * CELLS + 15) / 16 * 16 + 8)

#define MULTIPLY(name, kind) \
  __device__ __forceinline__ void name( \
      int (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) { \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." kind ".s8.s32 " \
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};" \
        : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3]) \
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(0)); \
  }
MULTIPLY(multiply_bytes, "u8")
MULTIPLY(multiply_top, "s8")

// not moved out of the loops, which have no register for what it loads
__device__ __forceinline__ uint2 load(const uint2* from) {
  const u32 at = (u32)__cvta_generic_to_shared(from);
  uint2 r;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(r.x), "=r"(r.y) : "r"(at));
  return r;
}

// bytes number k of four words, as word number k
__device__ __forceinline__ void bytes(u32 a, u32 b, u32 c, u32 d, u32* found) {
  const u32 p = __byte_perm(a, b, 0x5140), q = __byte_perm(c, d, 0x5140);
  const u32 r = __byte_perm(a, b, 0x7362), s = __byte_perm(c, d, 0x7362);
  found[0] = __byte_perm(p, q, 0x5410); found[1] = __byte_perm(p, q, 0x7632);
  found[2] = __byte_perm(r, s, 0x5410); found[3] = __byte_perm(r, s, 0x7632);
}

// the same of two words; what the other half holds meets zeros
__device__ __forceinline__ void two_bytes(u32 a, u32 b, u32* found) {
  found[0] = __byte_perm(a, b, 0x5140); found[1] = found[0] >> 16;
  found[2] = __byte_perm(a, b, 0x7362); found[3] = found[2] >> 16;
}

// 16 bytes each of a plane of u, and how many a thread brings
#define CHUNKS (3 * (TY + 1) * (TX + 1) * 2)
#define TURNS ((CHUNKS + THREADS - 1) / THREADS)
#define NO_CHUNK 0xffffffffu

// a plane of u, chunks of which come from and go to offsets in numbers and in bytes
__device__ __forceinline__ void bring(
    u32 planes, const double* __restrict__ u, const u32 (&to)[TURNS], const u32 (&from)[TURNS],
    int z, int NZ, u32 P) {
  const u32 there = planes + (u32)z % 3u * (PLANE * 8);
  const double* plane = u + min(z, NZ - 1) * P * 4;
  #pragma unroll
  for (int n = 0; n < TURNS; n++)
    if (to[n] != NO_CHUNK)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(there + to[n]),
                   "l"(plane + from[n]));
  asm volatile("cp.async.commit_group;");
}

// Forces of four elements, added along x. `own` is where this thread's first node is in
// the planes, `out` where its force goes; x, e: of its first element, the other is two on.
// most: x of elements with rock are smaller. before: of the last of the four elements
// before, then of these.
__device__ __forceinline__ void elements(
    const double* own, const double2* __restrict__ moduli, const uint2* B, double* out,
    u32 e, int x, u32 most, double (&before)[3]) {
  const bool second = threadIdx.x & 16;
  u64 q[2][6];
  double whole[2], shear[2];
  #pragma unroll
  for (int h = 0; h < 2; h++) {
    const bool in = (u32)(x + 2 * h) < most;
    double v[6];
    u32 top = 0;
    #pragma unroll
    for (int o = 0; o < 6; o++) v[o] = own[(o % 3) * CELLS + o / 3 * 4 + 8 * h];
    // e may be that of x = -1: it wraps in 32 bits
    const double2 rock = in ? __ldg(moduli + (e + 2 * h)) : make_double2(0.0, 0.0);
    #pragma unroll
    for (int o = 0; o < 6; o++) top = max(top, (u32)__double2hiint(v[o]) & 0x7fffffffu);
    top = max(top, __shfl_xor_sync(~0u, top, 1));
    top = max(top, __shfl_xor_sync(~0u, top, 2));
    const int power = max((int)(top >> 20), 64);  // |v| < 2^(power - 1022)
    const double up = __hiloint2double((2045 + BITS - power) << 20, 0);
    // what is not finite stays so
    const double back =
        __hiloint2double(power == 2047 ? 0x7ff80000 : (1 + power - BITS) << 20, 0);
    whole[h] = rock.x * back;
    shear[h] = rock.y * back;
    // the bytes of an integer are its digits, the highest one signed
    #pragma unroll
    for (int o = 0; o < 6; o++) q[h][o] = (u64)__double2ll_rn(v[o] * up);
  }
  u32 A[2][2][8];  // element, half of the nodes' components, digit
  #pragma unroll
  for (int h = 0; h < 2; h++) {
    bytes((u32)q[h][0], (u32)q[h][1], (u32)q[h][2], (u32)q[h][3], A[h][0]);
    two_bytes((u32)q[h][4], (u32)q[h][5], A[h][1]);
    if (DIGITS > 4) {
      bytes((u32)(q[h][0] >> 32), (u32)(q[h][1] >> 32), (u32)(q[h][2] >> 32),
            (u32)(q[h][3] >> 32), A[h][0] + 4);
      two_bytes((u32)(q[h][4] >> 32), (u32)(q[h][5] >> 32), A[h][1] + 4);
    }
  }
  #pragma unroll
  for (int t = 0; t < 3; t++) {
    double part[2][4];
    #pragma unroll
    for (int k = 0; k < 2; k++) {
      const uint2 b = load(B + (3 * k + t) * 32);
      int pair[4][4];  // two digits' sums: below 2^25
      #pragma unroll
      for (int p = 0; p < 4; p++) {
        int low[4] = {0, 0, 0, 0}, high[4] = {0, 0, 0, 0};
        #define DIGIT(d, c) \
          if (d < DIGITS - 1) \
            multiply_bytes(c, A[0][0][d], A[1][0][d], A[0][1][d], A[1][1][d], b.x, b.y); \
          if (d == DIGITS - 1) \
            multiply_top(c, A[0][0][d], A[1][0][d], A[0][1][d], A[1][1][d], b.x, b.y);
        DIGIT(2 * p, low)
        DIGIT(2 * p + 1, high)
        #undef DIGIT
        #pragma unroll
        for (int i = 0; i < 4; i++) pair[p][i] = high[i] * 256 + low[i];
      }
      #pragma unroll
      for (int i = 0; i < 4; i++) {
        // modulo 2^64: the sum is below 2^63
        const int low = pair[1][i] * 65536 + pair[0][i];
        const int carry = (pair[1][i] + (pair[0][i] >> 16)) >> 16;
        const int high = pair[3][i] * 65536 + pair[2][i] + carry;
        i64 sum;
        asm("mov.b64 %0, {%1, %2};" : "=l"(sum) : "r"(low), "r"(high));
        part[k][i] = __ll2double_rn(sum);
      }
    }
    double f[2][2];  // element, node: x and x + 1
    #pragma unroll
    for (int i = 0; i < 4; i++)
      f[i >> 1][i & 1] = __dadd_rn(__dmul_rn(part[0][i], whole[i >> 1]),
                                   __dmul_rn(part[1][i], shear[i >> 1]));
    // elements 0 and 2 are one thread's, 1 and 3 another's
    const double one = __shfl_xor_sync(~0u, f[0][1], 16);
    const double other = __shfl_xor_sync(~0u, f[1][1], 16);
    out[t * BLOCK] = __dadd_rn(f[0][0], second ? one : before[t]);
    out[t * BLOCK + 8] = __dadd_rn(f[1][0], second ? other : one);
    before[t] = other;
  }
}

// moduli: lambda + 2 mu and mu of each element, times what makes forces of the integers
// v -= coef K u, then un = u + dt v; bytes of the element matrices in the order of threads
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
march(const double* __restrict__ u, double* __restrict__ un, double* __restrict__ v,
      const double* __restrict__ coef, const double2* __restrict__ moduli,
      const u32* __restrict__ matrices, int NX, int NY, int NZ, int CZ, double dt) {
  extern __shared__ __align__(16) double shared[];
  const int tid = threadIdx.x, lane = tid & 3, tx = (tid >> 2) % TX, ty = tid / (4 * TX);
  const int left = blockIdx.x * (TX - 1) - 1, front = blockIdx.y * (TY - 1) - 1;
  const int x = left + tx, y = front + ty;
  const int z0 = blockIdx.z * CZ, z1 = min(z0 + CZ, NZ), zs = max(z0 - 1, 0);
  const bool own = tx > 0 && ty > 0 && x < NX && y < NY;
  const u32 P = NX * NY, N = P * NZ;
  __shared__ uint2 all[6 * 32];
  for (int k = tid; k < 6 * 32; k += THREADS)
    all[k] = make_uint2(matrices[k / 32 * 64 + k % 32], matrices[k / 32 * 64 + 32 + k % 32]);
  const uint2* B = all + (tid & 31);
  const u32 tig = tid & 3, i = tid >> 4 & 1, row = tid >> 5;
  const u32 corner = (row + (tig & 1)) * ROW + i * 4 + (tid >> 2 & 3);
  const u32 target = (2 * (tig >> 1) + (tig & 1)) * SIDE + (row * 8 + i) * 4 + (tid >> 2 & 3);
  double carry[3] = {0.0, 0.0, 0.0};
  double* planes = shared + 2 * BUFFER;
  u32 to[TURNS], from[TURNS];
  #pragma unroll
  for (int n = 0; n < TURNS; n++) {
    const int k = tid + n * THREADS, part = k & 1, i = (k >> 1) % (TX + 1);
    const int j = (k >> 1) / (TX + 1) % (TY + 1), c = (k >> 1) / ((TX + 1) * (TY + 1));
    const u32 xx = min(max(left + i, 0), NX - 1), yy = min(max(front + j, 0), NY - 1);
    to[n] = k < CHUNKS ? (c * CELLS + j * ROW + i * 4 + 2 * part) * 8 : NO_CHUNK;
    from[n] = (c * N + yy * NX + xx) * 4 + 2 * part;
  }
  const u32 ring = (u32)__cvta_generic_to_shared(planes);
  bring(ring, u, to, from, zs, NZ, P);
  bring(ring, u, to, from, zs + 1, NZ, P);
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  for (int z = zs; z < z1; z++) {
    double* sh = shared + (z & 1) * BUFFER;
    bring(ring, u, to, from, z + 2, NZ, P);
    double before[3] = {0.0, 0.0, 0.0};  // of nodes that the tile does not own
    const u32 most = (u32)(front + row) < NY - 1 && z < NZ - 1 ? NX - 1 : 0;
    const u32 e = (z * (NY - 1) + front + row) * (NX - 1) + left + i;
    const double* source = planes + (u32)(z + (tig >> 1)) % 3u * PLANE + corner;
    #pragma unroll 1
    for (int four = 0; four < 8; four += 4)
      elements(source + 4 * four, moduli, B, sh + target + 4 * four, e + four,
               left + (int)i + four, most, before);
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
          half[up] = __dadd_rn(at[0], at[SIDE - 4 * TX]);
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
  }
}
