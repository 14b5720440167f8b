// The vector and the blocks of a macro element in FP16, for products of smoothing steps.
//
// Included by macro.cu. A constant has no forces, so the vector is what u differs by from
// one of the macro element's nodes: how far u varies over the mesh is not rounded. Each
// lane is multiplied by a power of two that makes the largest difference 64 to 128, and
// coefficients of blocks are at most 1 by factors of the moduli. So a sum of the products
// of 65 nodes stays below 65504 whatever u is.

// bytes of a plane of components 0 and 1, and of one of component 2
#define PLANE (16 * N_PLACE)
#define VECTOR ((24 * N_PLACE + 15) / 16 * 16)
// exponent of two that the largest difference is scaled to
#define LARGEST 6

typedef Pair Coefficient;
struct alignas(8) Lanes { Pair a[2]; };

// Eight coefficients of a block, and the ninth.
struct alignas(16) Most { Pair a[4]; };
typedef unsigned short Last;

__device__ __forceinline__ void store_block(const float k[9], int i, Most* most, Last* last) {
  most[i] = {pair_of(k[0], k[1]), pair_of(k[2], k[3]), pair_of(k[4], k[5]), pair_of(k[6], k[7])};
  last[i] = (Last)pair_of(k[8], 0).bits;
}
__device__ __forceinline__ void read_block(const Most* most, const Last* last, Pair b[9]) {
  const Most v = *most;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    b[2 * k] = twice_low(v.a[k]);
    b[2 * k + 1] = twice_high(v.a[k]);
  }
  b[8] = twice_low({*last});
}
__device__ __forceinline__ void add(Lanes& v, const Lanes& w) {
#pragma unroll
  for (int m = 0; m < 2; m++) v.a[m] = v.a[m] + w.a[m];
}
__device__ __forceinline__ void scale(Lanes& v, int factor) {
  const Pair by = pair_of((float)factor, (float)factor);
#pragma unroll
  for (int m = 0; m < 2; m++) v.a[m] = by * v.a[m];
}
__device__ __forceinline__ void add_product(Lanes& sum, Pair b, const Lanes& v) {
#pragma unroll
  for (int m = 0; m < 2; m++) sum.a[m] = multiply_add(b, v.a[m], sum.a[m]);
}

// unit (LANES): what forces of FP16 products are multiplied by.
struct Vector {
  char* memory;
  const float* unit = nullptr;
};

// bytes from the start of memory of a component at a place
__device__ __forceinline__ int at(int place, int c) {
  return c < 2 ? 16 * place + 8 * c : PLANE + 8 * place;
}

// Put what threads have read in its places, less what a node has.
// back: what blocks were divided by.
__device__ __forceinline__ void put(Vector& vector, Four own[EACH],
                                    const unsigned* __restrict__ nodes,
                                    const unsigned short* __restrict__ places,
                                    const float* __restrict__ u, float back) {
  __shared__ __align__(16) float unit[LANES];
  const float* centre = u + (long long)NUMBER(__ldg(nodes)) * NODE;
  float most[LANES] = {}, by[LANES];
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const Four from = lanes_of(centre, component_of(k) % 3);
#pragma unroll
    for (int m = 0; m < LANES; m++) {
      own[k].a[m] -= from.a[m];
      most[m] = max(most[m], fabsf(own[k].a[m]));
    }
  }
  find_scales(LARGEST, most, back, by, unit);
  vector.unit = unit;
  if (threadIdx.x < 6)
    *(Pair*)(vector.memory + at(ZERO, threadIdx.x / 2) + threadIdx.x % 2 * 4) = {0};
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    if (copied_by_another(k)) break;
    const int node = component_of(k) / 3, c = component_of(k) % 3;
    const float* a = own[k].a;
    *(Lanes*)(vector.memory + at(__ldg(places + node), c)) = {
        pair_of(by[0] * a[0], by[1] * a[1]), pair_of(by[2] * a[2], by[3] * a[3])};
  }
}

// v = the components of the node whose first 16 bytes are at `place`.
__device__ __forceinline__ void read(const Vector& vector, unsigned place, Lanes v[3]) {
  const Most two = *(const Most*)(vector.memory + place);
  v[0] = {two.a[0], two.a[1]};
  v[1] = {two.a[2], two.a[3]};
  v[2] = *(const Lanes*)(vector.memory + PLANE + place / 2);
}

__device__ __forceinline__ Four force(const Vector& vector, const Lanes& sum) {
  const Four unit = *(const Four*)vector.unit;
  Four s;
#pragma unroll
  for (int m = 0; m < 2; m++) {
    s.a[2 * m] = unit.a[2 * m] * low_of(sum.a[m]);
    s.a[2 * m + 1] = unit.a[2 * m + 1] * high_of(sum.a[m]);
  }
  return s;
}

// Return what gives u of a node by component; differences are not exact enough.
__device__ __forceinline__ auto before(const Vector&, unsigned entry, unsigned,
                                       const Rest& rest) {
  const float* own = rest.u + (long long)NUMBER(entry) * NODE;
  return [own](int c) { return lanes_of(own, c); };
}
