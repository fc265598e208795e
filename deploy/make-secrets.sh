#!/usr/bin/env bash
# Makes the secrets that compose.yml hands to the containers, one file each, in deploy/secrets/. What is there already is kept.
#   deploy/make-secrets.sh        everything that can be drawn; rpc-url and signer-keys are yours to write
#   deploy/make-secrets.sh --dev  also those two, for the development chain of the profile `dev`: worthless, and public
set -euo pipefail
umask 077
cd "$(dirname "$0")"
mkdir -p secrets

# Alphanumeric, 40 characters: no character that a URL, a list or YAML would read as something else.
draw() { LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c 40 || true; }
# keep NAME VALUE: the directory is closed to others; the files are not, because Compose mounts them as they are, and the
# containers run under accounts of their own.
keep() {
  if [ -e "secrets/$1" ]; then return; fi
  printf '%s\n' "$2" >"secrets/$1"
  chmod 0444 "secrets/$1"
  echo "made secrets/$1"
}

keep database-password "$(draw)"
keep database-url "postgres://fencepost:$(cat secrets/database-password)@postgres:5432/fencepost"
keep cluster-secret "$(draw)"
keep metrics-key "$(draw)"
keep grafana-password "$(draw)"
keep api-keys "app:$(draw),operator:$(draw):read+operate+approve+admin,prometheus:$(cat secrets/metrics-key):read"
if [ "${1:-}" = --dev ]; then
  keep rpc-url http://chain:8545
  # The first account of anvil and Hardhat.
  keep signer-keys 0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80
fi
for name in rpc-url signer-keys; do
  if [ ! -e "secrets/$name" ]; then echo "missing: secrets/$name (write it, then chmod 0444 it)" >&2; fi
done
