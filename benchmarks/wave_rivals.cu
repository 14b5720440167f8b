// Other ways to step elastic waves, as baselines: four lanes, arrays as ours, with the
// node's number fastest but for the lane. wave_rivals.py puts before it NX, NY, NZ (nodes
// along each axis) and the element matrices of lam and mu over h, A[24][24] and B[24][24].

typedef long long i64;
#define LANES 4
#define NODES ((i64)NX * NY * NZ)

// f += K u by dense element matrices, a thread an element and a lane (Hughes, 2000, The
// Finite Element Method, section 8: element by element).
extern "C" __global__ void conventional(const double *u, const float *lam, const float *mu,
                                        double h, double *f) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const i64 element = thread / LANES;
    const int lane = (int)(thread % LANES);
    if (element >= (i64)(NX - 1) * (NY - 1) * (NZ - 1)) return;
    const i64 x = element % (NX - 1), y = element / (NX - 1) % (NY - 1),
              z = element / (NX - 1) / (NY - 1), first = (z * NY + y) * NX + x;
    i64 at[8];
    double own[24];
#pragma unroll
    for (int a = 0; a < 8; a++) {
        at[a] = first + (a & 1) + (a >> 1 & 1) * NX + (a >> 2) * (i64)NX * NY;
#pragma unroll
        for (int c = 0; c < 3; c++) own[3 * a + c] = u[(c * NODES + at[a]) * LANES + lane];
    }
    const double of_lam = h * lam[element], of_mu = h * mu[element];
#pragma unroll
    for (int a = 0; a < 8; a++) {
#pragma unroll
        for (int c = 0; c < 3; c++) {
            double one = 0.0, other = 0.0;
#pragma unroll
            for (int b = 0; b < 24; b++) {
                one += A[3 * a + c][b] * own[b];
                other += B[3 * a + c][b] * own[b];
            }
            atomicAdd(&f[(c * NODES + at[a]) * LANES + lane], of_lam * one + of_mu * other);
        }
    }
}

// Velocity and stress on a staggered grid, of fourth order (Graves, 1996, Bull. Seismol.
// Soc. Am. 86, 1091): plus, a derivative half a step ahead; minus, half a step behind.
#define PLUS(p, s) (1.125f * ((p)[s] - (p)[0]) - (1.f / 24) * ((p)[2 * (s)] - (p)[-(s)]))
#define MINUS(p, s) (1.125f * ((p)[0] - (p)[-(s)]) - (1.f / 24) * ((p)[s] - (p)[-2 * (s)]))

#define PLACE                                                                            \
    const i64 along = (i64)blockIdx.x * blockDim.x + threadIdx.x;                        \
    const i64 x = along / LANES, y = (i64)blockIdx.y * blockDim.y + threadIdx.y;         \
    const i64 z = blockIdx.z;                                                            \
    if (x < 2 || y < 2 || z < 2 || x >= NX - 2 || y >= NY - 2 || z >= NZ - 2) return;    \
    const i64 node = (z * NY + y) * NX + x, at = node * LANES + along % LANES;           \
    const i64 all = NODES * LANES, sx = LANES, sy = sx * NX, sz = sy * NY;

// xx yy zz xy yz xz; buoyancy is the step over density and spacing
extern "C" __global__ void velocity(float *v, const float *s, const float *buoyancy) {
    PLACE
    const float *xx = s + at, *yy = xx + all, *zz = yy + all;
    const float *xy = zz + all, *yz = xy + all, *xz = yz + all;
    const float k = buoyancy[node];
    v[at] += k * (PLUS(xx, sx) + MINUS(xy, sy) + MINUS(xz, sz));
    v[all + at] += k * (MINUS(xy, sx) + PLUS(yy, sy) + MINUS(yz, sz));
    v[2 * all + at] += k * (MINUS(xz, sx) + MINUS(yz, sy) + PLUS(zz, sz));
}

// moduli are times the step over the spacing
extern "C" __global__ void stress(float *s, const float *v, const float *lam,
                                  const float *mu) {
    PLACE
    const float *vx = v + at, *vy = vx + all, *vz = vy + all;
    const float xx = MINUS(vx, sx), yy = MINUS(vy, sy), zz = MINUS(vz, sz);
    const float bulk = lam[node] * (xx + yy + zz), shear = mu[node];
    s[at] += bulk + 2 * shear * xx;
    s[all + at] += bulk + 2 * shear * yy;
    s[2 * all + at] += bulk + 2 * shear * zz;
    s[3 * all + at] += shear * (PLUS(vx, sy) + PLUS(vy, sx));
    s[4 * all + at] += shear * (PLUS(vy, sz) + PLUS(vz, sy));
    s[5 * all + at] += shear * (PLUS(vx, sz) + PLUS(vz, sx));
}
