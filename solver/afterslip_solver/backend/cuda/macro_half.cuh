// The vector and the blocks of a macro element in FP16, for products of smoothing steps.
//
// Included by macro.cu. A constant has no forces, so the vector is what u differs by from
// one of the macro element's nodes: how far u varies over the mesh is not rounded. It is
// multiplied by a power of two that makes the largest difference 64 to 128, and
// coefficients of blocks are at most 1 by factors of the moduli. So a sum of the products
// of 65 nodes stays below 65504 whatever u is.

// bytes of a plane of components 0 and 1, and of one of component 2
#define PLANE (16 * N_PLACE)
#define VECTOR ((24 * N_PLACE + 15) / 16 * 16)
// exponents of float: of 1, and of what the largest difference is scaled to
#define ONE 127
#define LARGEST (ONE + 6)

// two numbers in FP16
typedef unsigned Pair;
typedef Pair Coefficient;
struct alignas(8) Lanes { Pair a[2]; };

// both numbers the first, or the second, of two
__device__ __forceinline__ Pair first_of(Pair v) {
  Pair d;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {l, l};}" : "=r"(d) : "r"(v));
  return d;
}
__device__ __forceinline__ Pair second_of(Pair v) {
  Pair d;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, h};}" : "=r"(d) : "r"(v));
  return d;
}

// Eight coefficients of a block, and the ninth.
struct alignas(16) Most { Pair a[4]; };
typedef unsigned short Last;

__device__ __forceinline__ void store_block(const float k[9], int i, Most* most, Last* last) {
  most[i] = {pair_of(k[0], k[1]), pair_of(k[2], k[3]), pair_of(k[4], k[5]), pair_of(k[6], k[7])};
  last[i] = (Last)pair_of(k[8], 0);
}
__device__ __forceinline__ void read_block(const Most* most, const Last* last, Pair b[9]) {
  const Most v = *most;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    b[2 * k] = first_of(v.a[k]);
    b[2 * k + 1] = second_of(v.a[k]);
  }
  b[8] = first_of(*last);
}
__device__ __forceinline__ void add(Lanes& v, const Lanes& w) {
#pragma unroll
  for (int m = 0; m < 2; m++)
    asm("add.rn.f16x2 %0, %0, %1;" : "+r"(v.a[m]) : "r"(w.a[m]));
}
__device__ __forceinline__ void scale(Lanes& v, int factor) {
  const Pair by = pair_of((float)factor, (float)factor);
#pragma unroll
  for (int m = 0; m < 2; m++)
    asm("mul.rn.f16x2 %0, %0, %1;" : "+r"(v.a[m]) : "r"(by));
}
__device__ __forceinline__ void add_product(Lanes& sum, Pair b, const Lanes& v) {
#pragma unroll
  for (int m = 0; m < 2; m++)
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum.a[m]) : "r"(b), "r"(v.a[m]));
}

// unit : what forces of FP16 products are multiplied by.
struct Vector {
  char* memory;
  float unit = 1;
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
  __shared__ float most_of[WARPS];
  const float* centre = u + (long long)NUMBER(__ldg(nodes)) * NODE;
  float most = 0;
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const Four from = lanes_of(centre, component_of(k) % 3);
#pragma unroll
    for (int m = 0; m < LANES; m++) {
      own[k].a[m] -= from.a[m];
      most = max(most, fabsf(own[k].a[m]));
    }
  }
#pragma unroll
  for (int away = 16; away > 0; away /= 2)
    most = max(most, (float)__shfl_down_sync(~0u, most, away));
  if (threadIdx.x % 32 == 0) most_of[threadIdx.x / 32] = most;
  __syncthreads();
  most = 0;
#pragma unroll
  for (int w = 0; w < WARPS; w++) most = max(most, most_of[w]);
  // powers of two whose product is one
  const int exponent = max(1, min(2 * ONE - 1, LARGEST + ONE - (__float_as_int(most) >> 23)));
  const float scale = __int_as_float(exponent << 23);
  vector.unit = back * __int_as_float((2 * ONE - exponent) << 23);
  if (threadIdx.x < 6) *(Pair*)(vector.memory + at(ZERO, threadIdx.x / 2) + threadIdx.x % 2 * 4) = 0;
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int node = component_of(k) / 3, c = component_of(k) % 3;
    const float* a = own[k].a;
    *(Lanes*)(vector.memory + at(__ldg(places + node), c)) = {
        pair_of(scale * a[0], scale * a[1]), pair_of(scale * a[2], scale * a[3])};
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
  Four s;
#pragma unroll
  for (int m = 0; m < 2; m++) {
    s.a[2 * m] = vector.unit * low_of(sum.a[m]);
    s.a[2 * m + 1] = vector.unit * low_of(sum.a[m] >> 16);
  }
  return s;
}

// Return what gives u of a node by component; differences are not exact enough.
__device__ __forceinline__ auto before(const Vector&, unsigned entry, unsigned,
                                       const Rest& rest) {
  const float* own = rest.u + (long long)NUMBER(entry) * NODE;
  return [own](int c) { return lanes_of(own, c); };
}
