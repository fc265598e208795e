import type { Lane } from "../../../domain/lane.ts";
import type { Hole } from "../../../domain/nonces/holes.ts";
import { LANE, lists, names } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const CLOSED = `nonce bigint, ${LANE}` as const;
const HOLE = `${CLOSED}, why text, detail text, reservation_id uuid, owner text, ttl_ms bigint` as const;

/**
 * Stores nonce holes by plain inserts. A nonce that is already a hole must make the insert fail, because it would have
 * been given up twice.
 */
export const writeHoles = taking(HOLE)("write-holes")`
  INSERT INTO fencepost.hole (${names(HOLE)}, since)
  SELECT ${names(HOLE)}, now() FROM (${lists(HOLE)}) AS h`;

/** Deletes the nonce holes that this commit closes. */
export const deleteHoles = changing(CLOSED, "delete-holes", "closed holes")`
  DELETE FROM fencepost.hole AS h USING (${lists(CLOSED)}) AS c
  WHERE h.nonce = ANY ($1::bigint[]) AND h.chain_id = ANY ($2::bigint[]) AND h.signer = ANY ($3::text[])
    AND h.signer = c.signer AND h.chain_id = c.chain_id AND h.nonce = c.nonce`;

const HOLES = `SELECT ${names(HOLE)}, since FROM fencepost.hole AS h`;

/** Reads the nonces of these lanes that no transaction or reservation holds, lowest first. */
export const readHoles = statement<HoleRow>("read-holes")`
  ${HOLES}
  WHERE h.signer = ANY ($1::text[]) AND h.chain_id = ANY ($2::bigint[])
  ORDER BY h.signer, h.chain_id, h.nonce`;

/**
 * A row of a nonce hole. The reservation's fields are null if no reservation expired there, or if a node of the
 * previous release wrote the row.
 */
export type HoleRow = Omit<Hole, "expired"> & Lane & { readonly owner: string | null; readonly ttlMs: number | null };

/** Lists every nonce hole of the signers from $1 to $2. */
export const listHoles = statement<HoleRow>("list-holes")`
  ${HOLES}
  WHERE h.signer >= $1::text AND h.signer <= $2::text
  ORDER BY h.signer, h.chain_id, h.nonce`;
