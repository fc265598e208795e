#!/usr/bin/env bash
# Loads a dump of backup.sh into a database, so that no lane acts before somebody has looked (docs/operations/restore.md).
#   FENCEPOST_DATABASE_URL=postgres://… deploy/drills/restore.sh FILE
# Stop every node first. The role must own the schema, and may create one. What stands there now is not dropped: it is kept under
# another name, and compared with the dump. FENCEPOST names the command line (default: fencepost), of the version that will run;
# GRANT the role that nodes run as, where that is another one (docs/operations/README.md#two-roles).
set -euo pipefail
: "${FENCEPOST_DATABASE_URL:?names the database to load into}"
file=${1:?"usage: restore.sh FILE"}
schema=${FENCEPOST_DATABASE_SCHEMA:-fencepost}
read -r -a fencepost <<<"${FENCEPOST:-fencepost}"
before="${schema}_before_$(date -u +%Y%m%d%H%M%S)"
lost=${LOST:-"lost-$before.csv"}

ask() { psql --dbname "$FENCEPOST_DATABASE_URL" --no-psqlrc --no-password --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 "$@"; }
fail() { echo "restore.sh: $*" >&2; exit 1; }

pg_restore --list "$file" >/dev/null || fail "$file is no dump that can be read"
# A node that runs would go on with what it remembers of the tables that are taken away from under it.
running=$(ask --command "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fencepost'")
[ "$running" -eq 0 ] || fail "$running connections of nodes are open: stop every node first"

there=$(ask --command "SELECT count(*) FROM pg_namespace WHERE nspname = '$schema'")
if [ "$there" -eq 1 ]; then
  ask --command "ALTER SCHEMA $schema RENAME TO $before"
  echo "what stood there is kept as the schema $before"
fi
# All of it or nothing. Where it fails, what stood there gets its name back.
ask --command "CREATE SCHEMA $schema"
if ! pg_restore --dbname "$FENCEPOST_DATABASE_URL" --no-password --schema "$schema" --no-owner --single-transaction --exit-on-error "$file"; then
  ask --command "DROP SCHEMA $schema CASCADE"
  if [ "$there" -eq 1 ]; then ask --command "ALTER SCHEMA $before RENAME TO $schema"; fi
  fail "the dump could not be loaded; the database is as it was"
fi

# The schema of this version, and the word that a restore has happened: every lane waits for an operator from here on.
"${fencepost[@]}" migrate --after-restore ${GRANT:+--grant "$GRANT"}

if [ "$there" -eq 1 ]; then
  ask --command "\\copy (
    SELECT t.tx_id, t.chain_id, t.signer, t.nonce, t.request_id, t.owner, t.state, t.sub_state, t.created_at,
      (SELECT string_agg(a.tx_hash, ' ' ORDER BY a.ordinal) FROM $before.attempt AS a WHERE a.tx_id = t.tx_id) AS hashes
    FROM $before.transaction AS t
    WHERE NOT EXISTS (SELECT FROM $schema.transaction AS kept WHERE kept.tx_id = t.tx_id)
    ORDER BY t.chain_id, t.signer, t.nonce) TO '$lost' WITH (FORMAT csv, HEADER)" >/dev/null
  echo "$(($(wc -l <"$lost") - 1)) transactions are not in the dump: see $lost"
fi
cat <<'NEXT'
Restored. No node gives a nonce or sends anything before you say so. Next, as docs/operations/restore.md has it:
  1. start one node, and look at `fencepost signers`: every lane is suspended by HISTORY
  2. find out what was lost, and tell your callers which request ids not to repeat
  3. fencepost resume SIGNER --reason "restored from …", signer by signer
NEXT
