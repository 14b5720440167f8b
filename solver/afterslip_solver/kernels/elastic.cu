// Second-order tetrahedra, element by element, four right-hand sides at once.
//
// Compile with -DREAL=float|double, -DTHREADS=.. and -DRESIDENT=.. (blocks per
// multiprocessor, which bounds the registers).
//
// The gradient of a quadratic field is linear in a straight-sided element: at vertex a
// it is 3 u_a (x) G_a + sum_{b != a} (4 u_ab - u_b) (x) G_b. Integrals are exact with
// int f g = V/20 sum_ab (1 + d_ab) f_a g_b (see tets.py, the same on the CPU).
// The moduli given here are already multiplied by V/20.

typedef REAL real;

#define LANES 4
#define NODE (3 * LANES)
#define PER_WARP 8
#define WARPS (THREADS / 32)

// a block's entry in the table of nodes: number, held components, shared or not
#define NUMBER(entry) ((entry) & 0x0fffffffu)
#define HELD(entry, c) (((entry) >> (28 + (c))) & 1u)
#define SHARED(entry) ((entry) >> 31)
#define NO_NODE 0xffffffffu

// local node on the edge between two vertices
__device__ constexpr int MID[4][4] = {{0, 4, 6, 7}, {4, 1, 5, 8}, {6, 5, 2, 9}, {7, 8, 9, 3}};
// place of a symmetric tensor's components among six
__device__ constexpr int SYM[3][3] = {{0, 3, 5}, {3, 1, 4}, {5, 4, 2}};

// o = K_e v; g holds the gradients of barycentric coordinates 1..3 (that of 0 is minus
// their sum). Vertex after vertex: more arithmetic than a hierarchical basis, but far
// fewer live registers, and resident warps decide the speed.
__device__ __forceinline__ void element(
    const real v[10][3], const real g[4][3], real lam, real mu, real o[10][3]) {
  real s[4][6], total[6] = {};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    real w[4][3], h[3][3];
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
      for (int c = 0; c < 3; c++)
        w[k][c] = k == i ? real(3) * v[i][c] : real(4) * v[MID[i][k]][c] - v[k][c];
#pragma unroll
    for (int c = 0; c < 3; c++) {
      real d1 = w[1][c] - w[0][c], d2 = w[2][c] - w[0][c], d3 = w[3][c] - w[0][c];
#pragma unroll
      for (int x = 0; x < 3; x++) h[c][x] = d1 * g[1][x] + d2 * g[2][x] + d3 * g[3][x];
    }
    real p = lam * (h[0][0] + h[1][1] + h[2][2]);
    s[i][0] = p + 2 * mu * h[0][0];
    s[i][1] = p + 2 * mu * h[1][1];
    s[i][2] = p + 2 * mu * h[2][2];
    s[i][3] = mu * (h[0][1] + h[1][0]);
    s[i][4] = mu * (h[1][2] + h[2][1]);
    s[i][5] = mu * (h[0][2] + h[2][0]);
#pragma unroll
    for (int q = 0; q < 6; q++) total[q] += s[i][q];
  }
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++) o[a][c] = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    real h[6];
#pragma unroll
    for (int q = 0; q < 6; q++) h[q] = s[i][q] + total[q];
#pragma unroll
    for (int c = 0; c < 3; c++) {
      real p[4];
#pragma unroll
      for (int k = 1; k < 4; k++)
        p[k] = h[SYM[c][0]] * g[k][0] + h[SYM[c][1]] * g[k][1] + h[SYM[c][2]] * g[k][2];
      p[0] = -(p[1] + p[2] + p[3]);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        if (k == i) {
          o[i][c] += 3 * p[k];
        } else {
          o[MID[i][k]][c] += 4 * p[k];
          o[k][c] -= p[k];
        }
      }
    }
  }
}

struct alignas(16) Chunk { real a[16 / sizeof(real)]; };
#define WIDTH (16 / (int)sizeof(real))
#define CHUNKS (NODE / WIDTH)

__device__ __forceinline__ void add_global(float* to, const float* v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v[0]),
               "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
#else
  for (int z = 0; z < 4; z++) atomicAdd(to + z, v[z]);
#endif
}
__device__ __forceinline__ void add_global(double* to, const double* v) {
  atomicAdd(to, v[0]);
  atomicAdd(to + 1, v[1]);
}

// f = K u on free components, 0 on held ones; f must be 0 on nodes that blocks share.
//
// A block owns a compact set of elements and sums their forces in shared memory.
// Eight elements (a "task") share a warp and no node; tasks of a batch, one per warp,
// that do share nodes add in different phases, between barriers.
//
// which (thread block): the block of elements.
// tasks (block + 1): first task of each block, a multiple of WARPS.
// slots (block + 1): first entry of each block in nodes.
// nodes: see NUMBER; padding is NO_NODE.
// local (task, 8, 12): a block's node numbers of an element, 0xffff where there is none.
// phases (task): phase of a task, and 16 times the number of phases of its batch.
// gradients (task, 9, 8) and moduli (task, 2, 8).
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    apply(const int* __restrict__ which, const int* __restrict__ tasks, const int* __restrict__ slots,
          const unsigned* __restrict__ nodes, const uint2* __restrict__ local,
          const unsigned char* __restrict__ phases, const real* __restrict__ gradients,
          const real* __restrict__ moduli, const real* __restrict__ u,
          real* __restrict__ f) {
  extern __shared__ __align__(16) char memory[];
  const int block = which[blockIdx.x];
  const int first = slots[block], n = slots[block + 1] - first;
  real* sum = (real*)memory;
  unsigned* number = (unsigned*)(sum + n * NODE);
  for (int i = threadIdx.x; i < n; i += THREADS) number[i] = nodes[first + i];
  for (int i = threadIdx.x; i < n * CHUNKS; i += THREADS)
    *(float4*)(sum + i * WIDTH) = make_float4(0, 0, 0, 0);
  __syncthreads();

  const int warp = threadIdx.x / 32, one = threadIdx.x % 32 / LANES;
  const int lane = threadIdx.x % LANES;
  const int stop = tasks[block + 1];
#pragma unroll 1
  for (int task = tasks[block] + warp; task < stop; task += WARPS) {
    const uint2* mine = local + ((long long)task * PER_WARP + one) * 3;
    uint2 c0 = mine[0], c1 = mine[1], c2 = mine[2];
    const unsigned phase = phases[task];
    const unsigned at[10] = {c0.x & 0xffff, c0.x >> 16, c0.y & 0xffff, c0.y >> 16,
                             c1.x & 0xffff, c1.x >> 16, c1.y & 0xffff, c1.y >> 16,
                             c2.x & 0xffff, c2.x >> 16};
    const bool present = at[0] != 0xffff;
    real o[10][3];
    if (present) {
      real v[10][3], g[4][3];
#pragma unroll
      for (int a = 0; a < 10; a++) {
        const real* p = u + (long long)NUMBER(number[at[a]]) * NODE + lane;
#pragma unroll
        for (int c = 0; c < 3; c++) v[a][c] = __ldg(p + c * LANES);
      }
      const real* q = gradients + (long long)task * (9 * PER_WARP) + one;
#pragma unroll
      for (int k = 1; k < 4; k++)
#pragma unroll
        for (int x = 0; x < 3; x++) g[k][x] = __ldg(q + (3 * (k - 1) + x) * PER_WARP);
      const real* m = moduli + (long long)task * (2 * PER_WARP) + one;
      element(v, g, __ldg(m), __ldg(m + PER_WARP), o);
    }
    for (unsigned turn = 0; turn < phase >> 4; turn++) {
      if (present && turn == (phase & 15u)) {
#pragma unroll
        for (int a = 0; a < 10; a++) {
          const real* p = sum + at[a] * NODE + lane;
#pragma unroll
          for (int c = 0; c < 3; c++) o[a][c] += p[c * LANES];
        }
#pragma unroll
        for (int a = 0; a < 10; a++) {
          real* p = sum + at[a] * NODE + lane;
#pragma unroll
          for (int c = 0; c < 3; c++) p[c * LANES] = o[a][c];
        }
      }
      __syncthreads();
    }
  }

  for (int i = threadIdx.x; i < n * CHUNKS; i += THREADS) {
    const unsigned entry = number[i / CHUNKS];
    if (entry == NO_NODE) continue;
    const int part = i % CHUNKS;
    Chunk value = *(const Chunk*)(sum + i * WIDTH);
    const bool held = HELD(entry, part * WIDTH / LANES);
    real* to = f + (long long)NUMBER(entry) * NODE + part * WIDTH;
    if (!SHARED(entry)) {
      if (held) value = Chunk{};
      *(Chunk*)to = value;
    } else if (!held) {
      add_global(to, value.a);
    }
  }
}

// f = 0 on the nodes that several blocks share
extern "C" __global__ void clear(int n, const int* __restrict__ which, real* f) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * CHUNKS) return;
  const long long node = which[i / CHUNKS];
  *(float4*)(f + node * NODE + (i % CHUNKS) * WIDTH) = make_float4(0, 0, 0, 0);
}

// d = keep d + gain D^-1 (b - f); out = x + d. May overwrite f, which out is.
extern "C" __global__ void step(int n, const real* __restrict__ inverse,
                                const real* __restrict__ b, const real* __restrict__ x,
                                real* __restrict__ d, real keep, real gain, real* out) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * LANES) return;
  const long long node = i / LANES, p = node * NODE + i % LANES;
  real r[3];
#pragma unroll
  for (int c = 0; c < 3; c++) r[c] = b[p + c * LANES] - out[p + c * LANES];
  const real* q = inverse + node * 9;
#pragma unroll
  for (int c = 0; c < 3; c++) {
    real z = gain * (q[3 * c] * r[0] + q[3 * c + 1] * r[1] + q[3 * c + 2] * r[2]);
    if (keep != 0) z += keep * d[p + c * LANES];
    d[p + c * LANES] = z;
    out[p + c * LANES] = x[p + c * LANES] + z;
  }
}

// f += K u with atomics, held components included: needs no plan, and checks `apply`
extern "C" __global__ void apply_plainly(
    int n, const int* __restrict__ elements, const real* __restrict__ gradients,
    const real* __restrict__ volume, const real* __restrict__ lam,
    const real* __restrict__ mu, const real* __restrict__ u, real* f) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * LANES) return;
  const long long e = i / LANES, lane = i % LANES;
  real v[10][3], g[4][3], o[10][3];
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++)
      v[a][c] = u[(long long)elements[e * 10 + a] * NODE + c * LANES + lane];
#pragma unroll
  for (int k = 1; k < 4; k++)
#pragma unroll
    for (int x = 0; x < 3; x++) g[k][x] = gradients[e * 12 + k * 3 + x];
  const real w = volume[e] / real(20);
  element(v, g, w * lam[e], w * mu[e], o);
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++)
      atomicAdd(f + (long long)elements[e * 10 + a] * NODE + c * LANES + lane, o[a][c]);
}
