#!/bin/sh
# Makes what the deployment must not share with anybody: a database password and the
# certificate that scheduler, workers and dispatchers show each other.
#   deploy/make-secrets.sh [FOLDER] [DATABASE_HOST]
set -eu
umask 077
folder=${1:-$(dirname "$0")/secrets}
host=${2:-database}
mkdir -p "$folder"
cd "$folder"
if [ ! -s database_password ]; then
    openssl rand -hex 24 > database_password
fi
printf 'postgresql+psycopg://afterslip:%s@%s/afterslip' "$(cat database_password)" "$host" > database_url
if [ ! -s dask.pem ]; then
    openssl req -x509 -newkey rsa:3072 -nodes -days 3650 -subj /CN=afterslip-dask-ca \
        -keyout ca.key -out dask-ca.pem 2>/dev/null
    openssl req -newkey rsa:3072 -nodes -subj /CN=afterslip-dask \
        -keyout dask.key -out dask.csr 2>/dev/null
    openssl x509 -req -in dask.csr -CA dask-ca.pem -CAkey ca.key -CAcreateserial \
        -days 825 -out dask.pem 2>/dev/null
    rm -f dask.csr dask-ca.srl
fi
if [ ! -s object_store_key ]; then
    openssl rand -hex 10 > object_store_id
    openssl rand -hex 24 > object_store_key
fi
# the object store's own administrator; the service has an account of one bucket
if [ ! -s object_store_root_key ]; then
    openssl rand -hex 10 > object_store_root_id
    openssl rand -hex 24 > object_store_root_key
fi
# who holds this key can make certificates: nothing that runs needs it
if [ -f ca.key ]; then
    mkdir -p authority
    mv ca.key authority/
fi
if [ ! -s grafana_password ]; then
    openssl rand -hex 16 > grafana_password
fi
# containers read them as another user; the folder is closed to other accounts
chmod 644 database_password database_url dask-ca.pem dask.pem dask.key object_store_* \
    grafana_password
chmod 700 .
echo "secrets are in $(pwd); move authority/ca.key to where it is safe"
