import type { Lane } from "../../../domain/lane.ts";
import type { Hole } from "../../../domain/nonces/holes.ts";
import { names } from "../rows/columns.ts";
import { counted, statement } from "./statement.ts";

const HOLE =
  "chain_id bigint, signer text, nonce bigint, why text, detail text, reservation_id uuid, owner text, ttl_ms bigint";

/** Plain inserts: a nonce that is a hole already would be one that was given up twice, which must be loud. */
export const writeHoles = statement("write-holes")`
  INSERT INTO fencepost.hole (${names(HOLE)}, since)
  SELECT ${names(HOLE)}, now() FROM json_to_recordset($1::json) AS h(${HOLE})`;

/** Holes that this commit closes. */
export const deleteHoles = counted("delete-holes", "$5", "closed holes")`
  DELETE FROM fencepost.hole AS h
  USING json_to_recordset($1::json) AS c(chain_id bigint, signer text, nonce bigint)
  WHERE h.signer = ANY ($2::text[]) AND h.chain_id = ANY ($3::bigint[]) AND h.nonce = ANY ($4::bigint[])
    AND h.signer = c.signer AND h.chain_id = c.chain_id AND h.nonce = c.nonce`;

const HOLES = `SELECT ${names(HOLE)}, since FROM fencepost.hole AS h`;

/** Nonces of these lanes that nothing holds, lowest first. */
export const readHoles = statement<HoleRow>("read-holes")`
  ${HOLES}
  WHERE h.signer = ANY ($1::text[]) AND h.chain_id = ANY ($2::bigint[])
  ORDER BY h.signer, h.chain_id, h.nonce`;

/** What it says of a reservation is null where none expired, and where a node of the release before wrote it. */
export type HoleRow = Omit<Hole, "expired"> & Lane & { readonly owner: string | null; readonly ttlMs: number | null };

/** Every hole of the signers from $1 to $2. */
export const listHoles = statement<HoleRow>("list-holes")`
  ${HOLES}
  WHERE h.signer >= $1::text AND h.signer <= $2::text
  ORDER BY h.signer, h.chain_id, h.nonce`;
