// The vector and the blocks of a macro element in the precision of the arithmetic.
//
// Included by macro.cu.

// a plane holds 16 bytes of a component of all nodes: four lanes in FP32, two in FP64
#define PLANE (N_PLACE * WIDTH)
#define PLANES (LANES / WIDTH)
// bytes of shared memory
#define VECTOR (3 * PLANES * PLANE * (int)sizeof(real))

typedef real Coefficient;
typedef Four Lanes;

// Eight coefficients of a block, and the ninth.
struct Most { Four a[2]; };
typedef real Last;

__device__ __forceinline__ void store_block(const real k[9], int i, Most* most, Last* last) {
  most[i].a[0] = {k[0], k[1], k[2], k[3]};
  most[i].a[1] = {k[4], k[5], k[6], k[7]};
  last[i] = k[8];
}
__device__ __forceinline__ void read_block(const Most* most, const Last* last, real b[9]) {
  const Four first = most->a[0], second = most->a[1];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    b[k] = first.a[k];
    b[4 + k] = second.a[k];
  }
  b[8] = *last;
}
__device__ __forceinline__ void add(Lanes& v, const Lanes& w) {
#pragma unroll
  for (int m = 0; m < LANES; m++) v.a[m] += w.a[m];
}
__device__ __forceinline__ void add_product(Lanes& sum, real b, const Lanes& v) {
#pragma unroll
  for (int m = 0; m < LANES; m++) sum.a[m] += b * v.a[m];
}

struct Vector { char* memory; };

__device__ __forceinline__ Four component(const char* node, int c) {
  Four v;
#pragma unroll
  for (int k = 0; k < PLANES; k++)
    *(Chunk*)(v.a + k * WIDTH) = *((const Chunk*)node + (c * PLANES + k) * N_PLACE);
  return v;
}

// Put what threads have read in its places.
__device__ __forceinline__ void put(Vector& vector, const Four own[EACH],
                                    const unsigned short* __restrict__ places) {
  real* memory = (real*)vector.memory;
  if (threadIdx.x < 3 * LANES)
    memory[threadIdx.x / WIDTH * PLANE + ZERO * WIDTH + threadIdx.x % WIDTH] = 0;
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    if (copied_by_another(k)) break;
    const int node = component_of(k) / 3, c = component_of(k) % 3;
    real* to = memory + c * PLANES * PLANE + __ldg(places + node) * WIDTH;
#pragma unroll
    for (int m = 0; m < PLANES; m++)
      *(Chunk*)(to + m * PLANE) = *(const Chunk*)(own[k].a + m * WIDTH);
  }
}

// v = the components of the node whose first 16 bytes are at `place`.
__device__ __forceinline__ void read(const Vector& vector, unsigned place, Lanes v[3]) {
#pragma unroll
  for (int d = 0; d < 3; d++) v[d] = component(vector.memory + place, d);
}

__device__ __forceinline__ Four force(const Vector&, const Lanes& sum) { return sum; }

// Return what gives u of a node by component.
__device__ __forceinline__ auto before(const Vector& vector, unsigned, unsigned place,
                                       const Rest&) {
  const char* own = vector.memory + place;
  return [own](int c) { return component(own, c); };
}
