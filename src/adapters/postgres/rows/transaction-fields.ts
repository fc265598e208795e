/**
 * Declares each field of a transaction once: its column and the column's type. Statements take their lists of columns
 * from here, and rows are written and read by the same names (columns.ts). A field that is absent in the domain is null
 * in the database.
 */
import type { Intent, Payload } from "../../../domain/transaction/transaction.ts";

/** Columns of a fee: one that a caller requested, or one that an attempt offers. */
export const FEES = "fee_type text, gas_price numeric, max_fee_per_gas numeric, max_priority_fee_per_gas numeric";

/** Columns of a transaction's payload, also of one that replaces it at the same nonce. */
export const PAYLOAD = `to_address text, data bytea, value numeric, gas gas, ${FEES}, access_list jsonb` as const;

/** Columns of the transaction's row that come from the create request, including its caller (`owner`). */
export const ASKED =
  "tx_id uuid, chain_id bigint, signer text, request_id text, owner text, valid_until timestamptz" as const;

/** Columns of the payload's row that are shown to callers. */
export const SHOWN = `${PAYLOAD}, metadata jsonb` as const;

/** All columns of the payload's row. */
export const SAID = `${SHOWN}, fingerprint bytea` as const;

/** Columns of an intent that waits in the intake table. */
export const INTENT = `${ASKED}, ${SAID}, allow_no_code boolean` as const;

/** Type of a record as columns: every member is present, and null if it was absent. */
type Columns<Of> = { readonly [Key in keyof Of]-?: Exclude<Of[Key], undefined> | null };

export type FeeColumns = Columns<Pick<Payload, "type" | "gasPrice" | "maxFeePerGas" | "maxPriorityFeePerGas">>;
export type PayloadColumns = Columns<Payload> & Pick<Payload, "data" | "value">;

/** Values that a commit adds to an intent when it gets a nonce or begins to wait for approval. */
interface Given {
  readonly nonce?: number;
  readonly acceptedAt?: string | null;
  readonly gasLimit?: bigint;
  readonly nodeId?: string;
  readonly token?: number;
  readonly stepsBefore?: number | null;
  readonly pinned?: true | null;
  readonly awaits?: string;
  readonly expiresAt?: Date;
}

/** Builds a row as one literal: spreading its parts together took fifty times as long. */
export function intentRow(intent: Intent, given: Given = {}) {
  const { lane, payload } = intent;
  return {
    txId: intent.txId,
    chainId: lane.chainId,
    signer: lane.signer,
    requestId: intent.requestId,
    owner: intent.owner,
    validUntil: intent.validUntil,
    to: payload.to,
    data: payload.data,
    value: payload.value,
    gas: payload.gas,
    type: payload.type,
    gasPrice: payload.gasPrice,
    maxFeePerGas: payload.maxFeePerGas,
    maxPriorityFeePerGas: payload.maxPriorityFeePerGas,
    accessList: payload.accessList,
    metadata: intent.metadata,
    fingerprint: intent.fingerprint,
    allowNoCode: intent.allowNoCode ?? false,
    nonce: given.nonce,
    acceptedAt: given.acceptedAt,
    gasLimit: given.gasLimit,
    nodeId: given.nodeId,
    token: given.token,
    stepsBefore: given.stepsBefore,
    pinned: given.pinned,
    awaits: given.awaits,
    expiresAt: given.expiresAt,
  };
}

/** Optional fields of a request that are left out if their column is null. */
export const OPTIONAL = ["validUntil"] as const;

/** Converts the payload columns of a row to a payload. */
export function withPayload<Row extends PayloadColumns>(row: Row) {
  const { to, data, value, gas, type, gasPrice, maxFeePerGas, maxPriorityFeePerGas, accessList, ...rest } = row;
  const wishes = { gas, type, gasPrice, maxFeePerGas, maxPriorityFeePerGas, accessList };
  return { ...rest, payload: { to, data, value, ...known(wishes) } as Payload };
}

/** Copies a row, leaving out each of the named members that is null. */
export function withoutNulls<Row extends object, Name extends keyof Row>(row: Row, ...names: readonly Name[]) {
  const kept = Object.entries(row).filter(([name, value]) => value !== null || !names.includes(name as Name));
  return Object.fromEntries(kept) as Omit<Row, Name> & { readonly [N in Name]?: NonNullable<Row[N]> };
}

function known(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}
