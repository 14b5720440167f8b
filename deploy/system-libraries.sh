#!/bin/sh
# Installs the shared libraries that gmsh's wheel links to, where they are missing.
set -eu
missing=""
for pair in libGLU.so.1:libglu1-mesa libGL.so.1:libgl1 libXrender.so.1:libxrender1 \
    libXcursor.so.1:libxcursor1 libXft.so.2:libxft2 libXinerama.so.1:libxinerama1 \
    libXfixes.so.3:libxfixes3 libfontconfig.so.1:libfontconfig1; do
    library=${pair%%:*}
    if ! /sbin/ldconfig -p 2>/dev/null | grep -q "$library"; then
        missing="$missing ${pair#*:}"
    fi
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "afterslip: install the libraries of these Debian packages first:$missing" >&2
    exit 1
fi
echo "Installing system libraries for gmsh:$missing"
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
$as_root apt-get update -qq
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
