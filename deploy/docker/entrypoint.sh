#!/bin/sh
# Secrets come as files: NAME_FILE=/run/secrets/x becomes NAME with its content.
set -eu
for name in AFTERSLIP_DATABASE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY; do
    file=$(printenv "${name}_FILE" || true)
    [ -n "$file" ] || continue
    [ -r "$file" ] || { echo "afterslip: cannot read $file, named by ${name}_FILE" >&2; exit 1; }
    export "$name=$(cat "$file")"
    unset "${name}_FILE"
done
exec "$@"
