// The reader of NetCDF 4 (HDF5) files, as one module: `make vendor`.

export { File } from "jsfive";
