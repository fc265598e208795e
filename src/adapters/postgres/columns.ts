/**
 * Between the domain's values and columns. Rows come with the names of the domain (session/pipeline.ts), and mostly as the
 * domain has them; a lane, a payload and an owner stand there as their columns. Hex travels without its prefix where the
 * column is bytea.
 */
import type { Fees } from "../../domain/fees.ts";
import type { Hex, Lane } from "../../domain/lane.ts";
import type { Payload } from "../../domain/transaction.ts";
import type { LaneOwner } from "../../ports/lease-store.ts";

/** So far above its nonce a transaction stands while it moves: beyond any nonce there is. */
export const OUT_OF_THE_WAY = 2 ** 52;

/** Each of them a column, null where it is absent. */
type Columns<Of> = { readonly [Key in keyof Of]-?: Exclude<Of[Key], undefined> | null };

export type FeeColumns = Columns<Pick<Payload, "type" | "gasPrice" | "maxFeePerGas" | "maxPriorityFeePerGas">>;
export type PayloadColumns = Columns<Payload> & Pick<Payload, "data" | "value">;
export type OwnerColumns = Columns<LaneOwner>;

/** A record of a lane as it is read. */
export type Flat<Of extends { readonly lane: Lane }> = Omit<Of, "lane"> & Lane;

export function bare(hex: Hex): string {
  return hex.slice(2);
}

export function laneOf({ chainId, signer }: Lane): Lane {
  return { chainId, signer };
}

export function withLane<Row extends Lane>({ chainId, signer, ...row }: Row) {
  return { ...row, lane: { chainId, signer } };
}

export function withOwner<Row extends OwnerColumns>({ instanceId, nodeId, url, expiresAt, ...row }: Row) {
  const owner = instanceId === null ? null : ({ instanceId, nodeId, url, expiresAt } as LaneOwner);
  return { ...row, owner };
}

export function feesOf(row: FeeColumns): Fees {
  const { type, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = row;
  return (type === "eip1559" ? { type, maxFeePerGas, maxPriorityFeePerGas } : { type, gasPrice }) as Fees;
}

export function withPayload<Row extends PayloadColumns>(row: Row) {
  const { to, data, value, gas, type, gasPrice, maxFeePerGas, maxPriorityFeePerGas, accessList, ...rest } = row;
  const payload: Payload = {
    to,
    data,
    value,
    ...(gas === null ? {} : { gas }),
    ...(type === null ? {} : { type }),
    ...(gasPrice === null ? {} : { gasPrice }),
    ...(maxFeePerGas === null ? {} : { maxFeePerGas }),
    ...(maxPriorityFeePerGas === null ? {} : { maxPriorityFeePerGas }),
    ...(accessList === null ? {} : { accessList }),
  };
  return { ...rest, payload };
}

/** Wei as text: JSON numbers are doubles. */
export function payloadValues({ to, data, type, accessList, ...wei }: Payload) {
  return {
    toAddress: to,
    data: bare(data),
    value: wei.value.toString(),
    gas: wei.gas?.toString(),
    accessList,
    feeType: type,
    gasPrice: wei.gasPrice?.toString(),
    maxFeePerGas: wei.maxFeePerGas?.toString(),
    maxPriorityFeePerGas: wei.maxPriorityFeePerGas?.toString(),
  };
}
