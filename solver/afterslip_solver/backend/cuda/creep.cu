// Creep strain at the vertices of second-order tetrahedra, four right-hand sides.
//
// Compile with -DSTATE=float|double, the precision in which states are stored; all
// arithmetic and all sums are FP64. A state is (row, vertex 4, component 5, lane) in the
// orthonormal basis of deviatoric tensors of tets.py, the same on the CPU. No atomics:
// the same input gives the same bits.

#define LANES 4
#define NODE (3 * LANES)
#define ROW (4 * 5 * LANES)
#define R2 0.70710678118654752440
#define R6 0.40824829046386301637

__device__ constexpr int MID[4][4] = {{0, 4, 6, 7}, {4, 1, 5, 8}, {6, 5, 2, 9}, {7, 8, 9, 3}};
__device__ constexpr int ENDS[6][2] = {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 3}, {2, 3}};

// displacement gradient h at vertex i of local values v; g as in elastic.cu
__device__ __forceinline__ void gradient(const double v[10][3], const double g[4][3], int i,
                                         double h[3][3]) {
  double w[4][3];
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int c = 0; c < 3; c++) w[k][c] = k == i ? 3 * v[i][c] : 4 * v[MID[i][k]][c] - v[k][c];
#pragma unroll
  for (int c = 0; c < 3; c++)
#pragma unroll
    for (int x = 0; x < 3; x++)
      h[c][x] = w[0][c] * g[0][x] + w[1][c] * g[1][x] + w[2][c] * g[2][x] + w[3][c] * g[3][x];
}

__device__ __forceinline__ void deviator(const double h[3][3], double c[5]) {
  c[0] = R2 * (h[0][0] - h[1][1]);
  c[1] = R6 * (2 * h[2][2] - h[0][0] - h[1][1]);
  c[2] = R2 * (h[0][1] + h[1][0]);
  c[3] = R2 * (h[1][2] + h[2][1]);
  c[4] = R2 * (h[0][2] + h[2][0]);
}

// o = T g for the deviatoric tensor T of five components
__device__ __forceinline__ void traction(const double c[5], const double* g, double o[3]) {
  const double d = R2 * c[0], p = R6 * c[1], xy = R2 * c[2], yz = R2 * c[3], xz = R2 * c[4];
  o[0] = (d - p) * g[0] + xy * g[1] + xz * g[2];
  o[1] = xy * g[0] - (d + p) * g[1] + yz * g[2];
  o[2] = xz * g[0] + yz * g[1] + 2 * p * g[2];
}

__device__ __forceinline__ void load_gradients(const double* from, double g[4][3]) {
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int x = 0; x < 3; x++) g[k][x] = __ldg(from + 3 * k + x);
}

// out = keep state + gain strain(u); keep and state may be null, gain too (then 1).
// 4 lanes of an element are neighbours: every access is a full sector of 32 bytes.
// Moves 640 bytes a row to write, as many to read a state, 2.4 for the mesh.
extern "C" __global__ void strain(int n, const int* __restrict__ elements,
                                  const double* __restrict__ gradients,
                                  const double* __restrict__ u, const double* keep,
                                  const STATE* state, const double* gain, double* out) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * LANES) return;
  const long long e = i / LANES;
  const int lane = i % LANES;
  double v[10][3], g[4][3];
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++)
      v[a][c] = __ldg(u + (long long)elements[e * 10 + a] * NODE + c * LANES + lane);
  load_gradients(gradients + 12 * e, g);
  const double factor = gain ? gain[e] : 1, old = keep ? keep[e] : 0;
#pragma unroll
  for (int a = 0; a < 4; a++) {
    double h[3][3], d[5];
    gradient(v, g, a, h);
    deviator(h, d);
#pragma unroll
    for (int k = 0; k < 5; k++) {
      const long long at = e * ROW + (a * 5 + k) * LANES + lane;
      double value = factor * d[k];
      if (keep) value += old * (double)state[at];
      out[at] = value;
    }
  }
}

// rows `which` of out += strain of local offsets (n, 10, 3, lane)
extern "C" __global__ void add_offset_strain(int n, const long long* __restrict__ which,
                                             const double* __restrict__ gradients,
                                             const double* __restrict__ offsets,
                                             double* out) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * LANES) return;
  const long long one = i / LANES, e = which[one];
  const int lane = i % LANES;
  double v[10][3], g[4][3];
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++) v[a][c] = offsets[(one * 10 + a) * NODE + c * LANES + lane];
  load_gradients(gradients + 12 * e, g);
#pragma unroll
  for (int a = 0; a < 4; a++) {
    double h[3][3], d[5];
    gradient(v, g, a, h);
    deviator(h, d);
#pragma unroll
    for (int k = 0; k < 5; k++) out[e * ROW + (a * 5 + k) * LANES + lane] += d[k];
  }
}

// f = int B^T (factor stress), all nodes. A node sums over its elements: with the mass
// rule a vertex a gets T(4 s_a - S) g_a, a midpoint of (a, b) 4 (T(s_a + S) g_b +
// T(s_b + S) g_a), times factor V/20, where S is the sum over the vertices.
// starts (node + 1), entries: 10 element + local node.
extern "C" __global__ void divergence(int n_node, const int* __restrict__ starts,
                                      const int* __restrict__ entries,
                                      const double* __restrict__ gradients,
                                      const double* __restrict__ volume,
                                      const double* __restrict__ factor,
                                      const STATE* __restrict__ stress, double* f) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n_node * LANES) return;
  const long long node = i / LANES;
  const int lane = i % LANES;
  double sum[3] = {};
  for (int at = starts[node]; at < starts[node + 1]; at++) {
    const long long e = entries[at] / 10;
    const int local = entries[at] % 10;
    const int a = local < 4 ? local : ENDS[local - 4][0];
    const int b = local < 4 ? local : ENDS[local - 4][1];
    const STATE* s = stress + e * ROW + lane;
    double first[5], second[5], o[3];
#pragma unroll
    for (int k = 0; k < 5; k++) {
      const double total = (double)__ldg(s + k * LANES) + (double)__ldg(s + (5 + k) * LANES) +
                           (double)__ldg(s + (10 + k) * LANES) +
                           (double)__ldg(s + (15 + k) * LANES);
      const double own = (double)__ldg(s + (5 * a + k) * LANES);
      const double other = (double)__ldg(s + (5 * b + k) * LANES);
      first[k] = local < 4 ? 4 * own - total : 4 * (own + total);
      second[k] = 4 * (other + total);
    }
    const double w = factor[e] * volume[e] / 20;
    const double* g = gradients + 12 * e;
    traction(first, g + 3 * b, o);
#pragma unroll
    for (int c = 0; c < 3; c++) sum[c] += w * o[c];
    if (local < 4) continue;
    traction(second, g + 3 * a, o);
#pragma unroll
    for (int c = 0; c < 3; c++) sum[c] += w * o[c];
  }
#pragma unroll
  for (int c = 0; c < 3; c++) f[node * NODE + c * LANES + lane] = sum[c];
}

// local forces (n, 10, 3, lane) = -K_e s_e of the elements `which`, offsets alike
extern "C" __global__ void offset_forces(
    int n, const long long* __restrict__ which, const double* __restrict__ gradients,
    const double* __restrict__ volume, const double* __restrict__ lam,
    const double* __restrict__ mu, const double* __restrict__ offsets, double* forces) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * LANES) return;
  const long long one = i / LANES, e = which[one];
  const int lane = i % LANES;
  double v[10][3], g[4][3], s[4][3][3], total[3][3] = {};
#pragma unroll
  for (int a = 0; a < 10; a++)
#pragma unroll
    for (int c = 0; c < 3; c++) v[a][c] = offsets[(one * 10 + a) * NODE + c * LANES + lane];
  load_gradients(gradients + 12 * e, g);
  const double w = -volume[e] / 20;
#pragma unroll
  for (int a = 0; a < 4; a++) {
    double h[3][3];
    gradient(v, g, a, h);
    const double p = lam[e] * (h[0][0] + h[1][1] + h[2][2]);
#pragma unroll
    for (int c = 0; c < 3; c++)
#pragma unroll
      for (int x = 0; x < 3; x++) {
        s[a][c][x] = w * (mu[e] * (h[c][x] + h[x][c]) + (c == x ? p : 0));
        total[c][x] += s[a][c][x];
      }
  }
#pragma unroll
  for (int a = 0; a < 10; a++) {
    const int j = a < 4 ? a : ENDS[a - 4][0], k = a < 4 ? a : ENDS[a - 4][1];
#pragma unroll
    for (int c = 0; c < 3; c++) {
      double o = 0;
#pragma unroll
      for (int x = 0; x < 3; x++) {
        if (a < 4)
          o += (4 * s[a][c][x] - total[c][x]) * g[a][x];
        else
          o += 4 * ((s[j][c][x] + total[c][x]) * g[k][x] + (s[k][c][x] + total[c][x]) * g[j][x]);
      }
      forces[(one * 10 + a) * NODE + c * LANES + lane] = o;
    }
  }
}

// f of the listed nodes += their entries' local forces, in a fixed order
extern "C" __global__ void gather(int n, const int* __restrict__ nodes,
                                  const int* __restrict__ starts,
                                  const int* __restrict__ entries,
                                  const double* __restrict__ forces, double* f) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (long long)n * NODE) return;
  const long long one = i / NODE, part = i % NODE;
  double sum = 0;
  for (int at = starts[one]; at < starts[one + 1]; at++)
    sum += forces[(long long)entries[at] * NODE + part];
  f[(long long)nodes[one] * NODE + part] += sum;
}
