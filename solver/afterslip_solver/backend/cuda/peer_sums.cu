// Sums over the GPUs of one host, each of which writes what it adds in the others'
// memory. Every sum of a window has a number, and values of it lie in one of two halves
// in turn. Two are enough: who has the values of a sum knows that all GPUs have read
// those of the one before the last.

#define LANES 4

#ifndef REAL
#define REAL float
#endif
struct alignas(LANES * sizeof(REAL)) Four { REAL a[LANES]; };

// a window begins with the number of the next sum and a count of thread blocks that are
// done; for each rank a flag follows, in a cache line of its own
#define NUMBER 0
#define DONE 1
#define FLAG(rank) (32 * (1 + (rank)))

// of each peer, in 64 bits: what lies where in its window
#define HALF(number) ((number) & 1)
#define ITS_FLAG 2
#define FIRST 3   // of its rows that this rank writes
#define COLUMNS 4

typedef unsigned long long address;

#define EVERY(i, n)                                                             \
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (long long)gridDim.x * blockDim.x)

__device__ __forceinline__ unsigned now(const unsigned* at) {
  return *(const volatile unsigned*)at;
}
__device__ __forceinline__ void set(unsigned* at, unsigned value) {
  *(volatile unsigned*)at = value;
}
// numbers may start again from zero
__device__ __forceinline__ void wait_for(const unsigned* flag, unsigned number) {
  while ((int)(now(flag) - number) < 0) {}
}

// Give peers their rows of x: those of peer p are rows[starts[p]:starts[p + 1]].
extern "C" __global__ void put(int n_peer, const int* __restrict__ starts,
                               const int* __restrict__ rows,
                               const address* __restrict__ peers,
                               const Four* __restrict__ x, unsigned* own) {
  const unsigned number = now(own + NUMBER);
  EVERY(i, 3LL * starts[n_peer]) {
    const int k = i / 3;
    int p = 0;
    while (k >= starts[p + 1]) p++;
    const address* its = peers + COLUMNS * p;
    const long long row = its[FIRST] + (k - starts[p]);
    ((Four*)its[HALF(number)])[3 * row + i % 3] = x[3LL * rows[k] + i % 3];
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x) return;
  if (atomicAdd(own + DONE, 1u) + 1 < gridDim.x) return;
  // the last block: all the others have read the number and written their rows
  set(own + DONE, 0);
  set(own + NUMBER, number + 1);
  __threadfence_system();
  for (int p = 0; p < n_peer; p++)
    set((unsigned*)peers[COLUMNS * p + ITS_FLAG], number + 1);
}

// Row k of x (n, 3, lane) becomes the sum of the places starts[k]:starts[k + 1], in that
// order: the row itself where a place is less than n, else what peers have put. `put`
// comes before; `ranks` are the peers'.
extern "C" __global__ void join(int n, int n_peer, const int* __restrict__ ranks,
                                const int* __restrict__ starts,
                                const int* __restrict__ places, address even,
                                address odd, Four* x, unsigned* own) {
  const unsigned number = now(own + NUMBER);
  if (threadIdx.x < n_peer) wait_for(own + FLAG(ranks[threadIdx.x]), number);
  __threadfence_system();
  __syncthreads();
  const Four* received = (const Four*)(HALF(number - 1) ? odd : even);
  EVERY(i, 3LL * n) {
    const int k = i / 3;
    const Four mine = x[i];
    Four sum = {};
    for (int j = starts[k]; j < starts[k + 1]; j++) {
      Four more = mine;
      if (places[j] >= n) {
        // past the first level of the cache, which does not see what peers write
        const long long at = 3LL * (places[j] - n) + i % 3;
#pragma unroll
        for (int m = 0; m < LANES; m++) more.a[m] = __ldcg(&received[at].a[m]);
      }
#pragma unroll
      for (int m = 0; m < LANES; m++) sum.a[m] += more.a[m];
    }
    x[i] = sum;
  }
}

// One block: x (n,) becomes the sum over all ranks, or the largest of each value.
extern "C" __global__ void reduce(int n, int room, int rank, int size, int largest,
                                  const address* __restrict__ peers, address even,
                                  address odd, double* x, unsigned* own) {
  const unsigned number = now(own + NUMBER);
  for (int p = 0; p < size; p++)
    for (int i = threadIdx.x; i < n && p != rank; i += blockDim.x)
      ((double*)peers[COLUMNS * p + HALF(number)])[rank * room + i] = x[i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x < size && threadIdx.x != rank) {
    set((unsigned*)peers[COLUMNS * threadIdx.x + ITS_FLAG], number + 1);
    wait_for(own + FLAG(threadIdx.x), number + 1);
  }
  if (threadIdx.x == 0) set(own + NUMBER, number + 1);
  __threadfence_system();
  __syncthreads();
  const double* received = (const double*)(HALF(number) ? odd : even);
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const double mine = x[i];
    double found = 0;
    for (int p = 0; p < size; p++) {
      const double other = p == rank ? mine : __ldcg(received + p * room + i);
      found = p == 0 ? other : largest ? max(found, other) : found + other;
    }
    x[i] = found;
  }
}
