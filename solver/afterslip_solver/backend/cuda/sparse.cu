// Block matrices and nodal weights times four right-hand sides. Compile with -DREAL=...
// and -DHALF=0|1: whether a matrix stores its values in FP16; sums are always of `real`.

typedef REAL real;

#if HALF
#include "pairs.cuh"
struct store { unsigned short bits; };
__device__ __forceinline__ real value(store v) { return low_of({v.bits}); }
// values are read once: they must not push the vectors out of the cache
__device__ __forceinline__ real stream(const store* p) {
  return value(store{__ldcs((const unsigned short*)p)});
}
#else
typedef real store;
__device__ __forceinline__ real value(store v) { return v; }
__device__ __forceinline__ real stream(const store* p) { return __ldcs(p); }
#endif

#define LANES 4
#define SLICE 32
// blocks of 64 threads a multiprocessor: more would leave too few registers
#define RESIDENT (64 / (int)sizeof(real))

struct alignas(4 * sizeof(real)) Four { real a[LANES]; };

#include "slices.cuh"

// out = s, b - s where b is given, or out + s where b is out
template <int ROWS>
__device__ __forceinline__ void put_row(int row, const real s[ROWS][LANES], const Four* b,
                                        Four* out) {
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    const long long p = (long long)row * ROWS + i;
    Four y;
#pragma unroll
    for (int m = 0; m < LANES; m++)
      y.a[m] = b == out ? b[p].a[m] + s[i][m] : b ? b[p].a[m] - s[i][m] : s[i][m];
    out[p] = y;
  }
}

// Of which node a row is, and a power of two that its numbers were divided by.
struct alignas(8) Row { int node; float size; };

// out = x + gain D^-1 (b - s), out not x. With `rows`, b and x are of all nodes, inverse
// and out of those rows, and s is to be multiplied by its size.
__device__ __forceinline__ void relax_row(int row, const Row* rows, real s[3][LANES],
                                          const Diagonal* inverse, const Four* b,
                                          const Four* x, real gain, Four* out) {
  const Row from = rows ? rows[row] : Row{row, 1};
  const long long p = 3LL * from.node;
  b += p;
  x += p;
  out += 3LL * row;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const Four f = b[i];
#pragma unroll
    for (int m = 0; m < LANES; m++) s[i][m] = gain * (f.a[m] - from.size * s[i][m]);
  }
  real q[9];
  diagonal_of(inverse, row, q);
#pragma unroll
  for (int i = 0; i < 3; i++) {
    Four y = x[i];
#pragma unroll
    for (int m = 0; m < LANES; m++)
      y.a[m] += q[3 * i] * s[0][m] + q[3 * i + 1] * s[1][m] + q[3 * i + 2] * s[2][m];
    out[i] = y;
  }
}

// order (thread block): numbers of 64 rows, those with long ones first
extern "C" __global__ void __launch_bounds__(64, RESIDENT)
    multiply3(int n, const int* order, const int* starts, const int* columns, const store* values,
              const Four* x, const Four* b, Four* out) {
  const int row = order[blockIdx.x] * 64 + threadIdx.x;
  if (row >= n) return;
  real s[3][LANES] = {};
  row_times<1>(row, 0, starts, columns, values, x, s);
  put_row<3>(row, s, b, out);
}
extern "C" __global__ void __launch_bounds__(128, RESIDENT / 2)
    multiply3_few(int n, const int* order, const int* starts, const int* columns, const store* values,
                  const Four* x, const Four* b, Four* out) {
  real s[3][LANES] = {};
  const int row = few_rows_times(n, order, starts, columns, values, x, s);
  if (row >= 0) put_row<3>(row, s, b, out);
}

extern "C" __global__ void __launch_bounds__(64, RESIDENT)
    relax3(int n, const int* order, const int* starts, const int* columns, const store* values,
           const Row* rows, const Diagonal* inverse, const Four* b, const Four* x, real gain,
           Four* out) {
  const int row = order[blockIdx.x] * 64 + threadIdx.x;
  if (row >= n) return;
  real s[3][LANES] = {};
  row_times<1>(row, 0, starts, columns, values, x, s);
  relax_row(row, rows, s, inverse, b, x, gain, out);
}
extern "C" __global__ void __launch_bounds__(128, RESIDENT / 2)
    relax3_few(int n, const int* order, const int* starts, const int* columns, const store* values,
               const Row* rows, const Diagonal* inverse, const Four* b, const Four* x,
               real gain, Four* out) {
  real s[3][LANES] = {};
  const int row = few_rows_times(n, order, starts, columns, values, x, s);
  if (row >= 0) relax_row(row, rows, s, inverse, b, x, gain, out);
}

// to[rows] = from, whole nodes
extern "C" __global__ void spread_rows(int n, const Row* __restrict__ rows,
                                       const Four* __restrict__ from, Four* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 3 * n) return;
  to[3LL * rows[i / 3].node + i % 3] = from[i];
}

// out = A x, b - A x where b is given, or out + A x where b is out, for blocks of ROWS x
// COLUMNS in slices of 32 rows as above: values (step, ROWS * COLUMNS, 32). SPLIT warps
// share the steps of a slice, where rows are long and few. 128 threads.
template <int ROWS, int COLUMNS, int SPLIT>
__device__ __forceinline__ void slice_times(int n, const int* __restrict__ starts,
                                            const int* __restrict__ columns,
                                            const store* __restrict__ values,
                                            const Four* __restrict__ x, const Four* b,
                                            Four* out) {
  __shared__ real part[SPLIT > 1 ? SPLIT - 1 : 1][ROWS * LANES][SPLIT > 1 ? SLICE : 1];
  const int warp = threadIdx.x / 32, k = threadIdx.x % 32, turn = warp % SPLIT;
  const int slice = (blockIdx.x * 4 + warp) / SPLIT, row = slice * SLICE + k;
  real s[ROWS][LANES] = {};
  if (slice * SLICE < n) {
    const int stop = starts[slice + 1];
#pragma unroll 2
    for (int j = starts[slice] + turn; j < stop; j += SPLIT) {
      const Four* p = x + (long long)columns[j * (long long)SLICE + k] * COLUMNS;
      const store* v = values + (long long)j * (ROWS * COLUMNS * SLICE) + k;
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
        const Four at = p[c];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          const real a = stream(v + (r * COLUMNS + c) * SLICE);
#pragma unroll
          for (int m = 0; m < LANES; m++) s[r][m] += a * at.a[m];
        }
      }
    }
  }
  if (SPLIT > 1) {
    if (turn > 0) {
#pragma unroll
      for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int m = 0; m < LANES; m++) part[turn - 1][r * LANES + m][k] = s[r][m];
    }
    __syncthreads();
    if (turn > 0) return;
#pragma unroll
    for (int t = 0; t < SPLIT - 1; t++)
#pragma unroll
      for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int m = 0; m < LANES; m++) s[r][m] += part[t][r * LANES + m][k];
  }
  if (row >= n) return;
  put_row<ROWS>(row, s, b, out);
}

#define SLICE_KERNEL(name, rows, cols, split)                                          \
  extern "C" __global__ void __launch_bounds__(128)                                    \
      name(int n, const int* starts, const int* columns, const store* values,          \
           const Four* x, const Four* b, Four* out) {                                  \
    slice_times<rows, cols, split>(n, starts, columns, values, x, b, out);             \
  }
SLICE_KERNEL(multiply36, 3, 6, 1)
SLICE_KERNEL(multiply63, 6, 3, 4)
SLICE_KERNEL(multiply66, 6, 6, 4)

// out = A x, b - A x where b is given, or out + A x where b is out, for blocks of any
// size in block CSR: one thread per row of
// a block and lane, because the coarse levels have few rows
extern "C" __global__ void multiply(int n, int rows, int columns,
                                    const int* __restrict__ indptr,
                                    const int* __restrict__ indices,
                                    const store* __restrict__ values,
                                    const real* __restrict__ x, const real* b, real* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * rows * LANES) return;
  const int lane = i % LANES, r = i / LANES % rows, block = i / (LANES * rows);
  real s = 0;
  for (int k = indptr[block]; k < indptr[block + 1]; k++) {
    const store* v = values + ((long long)k * rows + r) * columns;
    const real* p = x + (long long)indices[k] * columns * LANES + lane;
    for (int c = 0; c < columns; c++) s += value(v[c]) * p[c * LANES];
  }
  out[i] = b == out ? b[i] + s : b ? b[i] - s : s;
}

// The same with a thread block for each block row, for the long rows of restrictions and
// coarse matrices; rows times lanes must be at most 32, threads at most 512
extern "C" __global__ void __launch_bounds__(512)
    multiply_wide(int rows, int columns, const int* __restrict__ indptr,
                  const int* __restrict__ indices, const store* __restrict__ values,
                  const real* __restrict__ x, const real* b, real* out) {
  __shared__ real part[512];
  const int width = rows * LANES, teams = blockDim.x / width;
  const int mine = threadIdx.x % width, team = threadIdx.x / width;
  const int lane = mine % LANES, r = mine / LANES;
  real s = 0;
  if (team < teams) {
    for (int k = indptr[blockIdx.x] + team; k < indptr[blockIdx.x + 1]; k += teams) {
      const store* v = values + ((long long)k * rows + r) * columns;
      const real* p = x + (long long)indices[k] * columns * LANES + lane;
      for (int c = 0; c < columns; c++) s += value(v[c]) * p[c * LANES];
    }
  }
  part[threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.x >= width) return;
  for (int t = 1; t < teams; t++) s += part[t * width + mine];
  const long long i = (long long)blockIdx.x * width + mine;
  out[i] = b == out ? b[i] + s : b ? b[i] - s : s;
}

// out = gain D^-1 r with (n, 3, 3) diagonal blocks; out must not be r. A thread a
// component, so that threads side by side write side by side.
extern "C" __global__ void scale3(int n, const real* __restrict__ inverse,
                                  const Four* __restrict__ r, real gain, Four* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 3 * n) return;
  const Four* p = r + 3LL * (i / 3);
  Four y = {};
#pragma unroll
  for (int c = 0; c < 3; c++) {
    const real q = gain * inverse[3LL * i + c];
    const Four x = p[c];
#pragma unroll
    for (int m = 0; m < LANES; m++) y.a[m] += q * x.a[m];
  }
  out[i] = y;
}

// out -= x + gain D^-1 r with (n, 3, 3) diagonal blocks
extern "C" __global__ void subtract3(int n, const real* __restrict__ inverse,
                                     const Four* __restrict__ r,
                                     const Four* __restrict__ x, real gain, Four* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 3 * n) return;
  const Four* p = r + 3LL * (i / 3);
  const Four at = x[i];
  Four y = out[i];
#pragma unroll
  for (int m = 0; m < LANES; m++) y.a[m] -= at.a[m];
#pragma unroll
  for (int c = 0; c < 3; c++) {
    const real q = gain * inverse[3LL * i + c];
    const Four one = p[c];
#pragma unroll
    for (int m = 0; m < LANES; m++) y.a[m] -= q * one.a[m];
  }
  out[i] = y;
}

// out = gain D^-1 r with (n, 6, 6) diagonal blocks, or x + that where x is given; out may
// be r
extern "C" __global__ void scale6(int n, const real* __restrict__ inverse, const real* r,
                                  real gain, const real* x, real* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * LANES) return;
  const long long block = i / LANES, first = block * 6 * LANES + i % LANES;
  const real* q = inverse + block * 36;
  real s[6];
#pragma unroll
  for (int c = 0; c < 6; c++) s[c] = r[first + c * LANES];
#pragma unroll
  for (int a = 0; a < 6; a++) {
    real z = 0;
#pragma unroll
    for (int c = 0; c < 6; c++) z += q[a * 6 + c] * s[c];
    const long long p = first + a * LANES;
    out[p] = gain * z + (x ? x[p] : real(0));
  }
}

// out (+)= keep s
__device__ __forceinline__ void put_masked(real keep, const Four& s, bool add, Four* out) {
  Four y = {};
  if (add) y = *out;
#pragma unroll
  for (int m = 0; m < LANES; m++) y.a[m] += keep * s.a[m];
  *out = y;
}

// out (+)= mask (W x), one weight for the three components of a node
extern "C" __global__ void transfer(int n, const int* __restrict__ indptr,
                                    const int* __restrict__ indices,
                                    const real* __restrict__ weights,
                                    const real* __restrict__ mask,
                                    const Four* __restrict__ x, Four* out, int add) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * 3) return;
  const int c = i % 3, row = i / 3;
  Four s = {};
  for (int k = indptr[row]; k < indptr[row + 1]; k++) {
    const real w = weights[k];
    const Four v = x[(long long)indices[k] * 3 + c];
#pragma unroll
    for (int m = 0; m < LANES; m++) s.a[m] += w * v.a[m];
  }
  put_masked(mask[i], s, add, out + i);
}

struct alignas(2 * sizeof(real)) Two { real a[2]; };

// The same for rows of two entries, of which the second may be zero.
extern "C" __global__ void transfer_pairs(int n, const int2* __restrict__ columns,
                                          const Two* __restrict__ weights,
                                          const real* __restrict__ mask,
                                          const Four* __restrict__ x, Four* out, int add) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * 3) return;
  const int c = i % 3, row = i / 3;
  const int2 from = columns[row];
  const Two w = weights[row];
  const Four v = x[3LL * from.x + c], u = x[3LL * from.y + c];
  Four s;
#pragma unroll
  for (int m = 0; m < LANES; m++) s.a[m] = w.a[0] * v.a[m] + w.a[1] * u.a[m];
  put_masked(mask[i], s, add, out + i);
}

#if HALF
// Pack symmetric blocks (n, 3, 3).
extern "C" __global__ void pack(int n, const float* __restrict__ inverse, Inverse* out) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float* q = inverse + 9 * i;
  const float six[6] = {q[0], q[4], q[8], q[1], q[5], q[2]};
  float scale = 0;
#pragma unroll
  for (int k = 0; k < 6; k++) scale = max(scale, fabsf(six[k]));
  const float by = scale > 0 ? 1 / scale : 0;
  Inverse d = {{}, scale};
#pragma unroll
  for (int k = 0; k < 3; k++) d.pairs[k] = pair_of(by * six[2 * k], by * six[2 * k + 1]);
  out[i] = d;
}
#endif
