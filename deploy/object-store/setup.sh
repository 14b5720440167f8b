#!/bin/sh
# Makes the bucket, and the service's own account, which may use this bucket only.
set -eu
secret() { cat "/run/secrets/$1"; }
mc alias set store http://object-store:9000 \
    "$(secret object_store_root_id)" "$(secret object_store_root_key)" >/dev/null
mc mb --ignore-existing store/afterslip
mc admin policy create store afterslip /setup/policy.json
mc admin user add store "$(secret object_store_id)" "$(secret object_store_key)"
# attaching what is attached is an error
mc admin policy detach store afterslip --user "$(secret object_store_id)" || true
mc admin policy attach store afterslip --user "$(secret object_store_id)"
