/** What the library answers with. Inside, addresses are lower-case; the embedding program gets EIP-55 checksums, as over HTTP. */
import { createCodec } from "../adapters/evm/codec.ts";
import { createdView as httpView } from "../adapters/http/views.ts";
import type { Created, SignerView, TransactionView } from "../application/api.ts";
import type { CreatedTransaction } from "../contract/create.ts";
import type { Address, Lane } from "../domain/lane.ts";
import type { Payload, Receipt } from "../domain/transaction.ts";
import type { CompletionRecord } from "../ports/query-store.ts";

/** `epoch` is the one it was written in; keep `seq` and `feedEpoch`, and go on from both. */
export interface FollowedCompletion extends CompletionRecord {
  readonly feedEpoch: number;
}

const codec = createCodec();

export function createdView(created: Created): Created {
  return { ...created, lane: laneView(created.lane) };
}

/** As HTTP and the SDK answer. */
export function createdTransaction(created: Created): CreatedTransaction {
  return httpView(created, checksum);
}

export function transactionView(view: TransactionView): TransactionView {
  const { lane, payload, receipt } = view;
  return { ...view, lane: laneView(lane), payload: payloadView(payload), receipt: receiptView(receipt) };
}

export function completionView(record: CompletionRecord, feedEpoch: number): FollowedCompletion {
  return { ...record, lane: laneView(record.lane), feedEpoch };
}

export function signerViews(views: readonly SignerView[]): readonly SignerView[] {
  return views.map((view) => ({ ...view, lane: laneView(view.lane), address: checksum(view.address) }));
}

function laneView({ chainId, signer }: Lane): Lane {
  return { chainId, signer: checksum(signer) };
}

function payloadView(payload: Payload): Payload {
  const { to, accessList } = payload;
  const entries = accessList?.map((entry) => ({ ...entry, address: checksum(entry.address) }));
  return {
    ...payload,
    to: to === null ? null : checksum(to),
    ...(entries === undefined ? {} : { accessList: entries }),
  };
}

function receiptView(receipt: Receipt | null): Receipt | null {
  if (receipt === null || receipt.contractAddress === null) return receipt;
  return { ...receipt, contractAddress: checksum(receipt.contractAddress) };
}

function checksum(address: Address): Address {
  return codec.checksum(address) as Address;
}
