#!/usr/bin/env bash
# Dumps the schema that Fencepost keeps, as it stands at one moment, while the nodes go on (docs/operations/backup.md).
#   FENCEPOST_DATABASE_URL=postgres://… deploy/drills/backup.sh FILE
# The role must be allowed to read every table. Where your own tables stand beside ours in one database, and belong together
# with them (an outbox), dump the whole database instead: WHOLE=yes.
set -euo pipefail
: "${FENCEPOST_DATABASE_URL:?names the database to dump}"
file=${1:?"usage: backup.sh FILE"}
schema=${FENCEPOST_DATABASE_SCHEMA:-fencepost}
part="$file.part"
trap 'rm -f "$part"' EXIT

# Keys of API callers are in it as hashes, addresses and payloads as they are: nobody else's business.
umask 077
choice=(--schema "$schema")
if [ "${WHOLE:-no}" = yes ]; then choice=(); fi
pg_dump --dbname "$FENCEPOST_DATABASE_URL" --format custom --no-password "${choice[@]}" --file "$part"
# A dump that cannot be read is no backup. What it has is listed without a server, and read to its end: pg_restore takes a reader
# that leaves early for a failure.
if ! pg_restore --list "$part" | grep "TABLE DATA $schema lane " >/dev/null; then
  echo "backup.sh: the dump holds no lanes of the schema $schema: nothing was kept" >&2
  exit 1
fi
sync "$part"
mv "$part" "$file"
echo "kept $file ($(du -h "$file" | cut -f1))"
