import type { Send } from "./drive.ts";

/** Every transaction is its signer's transfer to itself (what the simulated chain takes for a signature), with a call's worth of data: no account here has code. */
export interface TransactionShape {
  /** With fees: nothing needs to be asked of the chain. Without: the market's price is taken. */
  readonly priced: boolean;
}

const CALL_DATA = `0xa9059cbb${"00".repeat(12)}${"5e".repeat(20)}${"00".repeat(24)}${"01".repeat(8)}`;
const FEES = `,"maxFeePerGas":"3000000000","maxPriorityFeePerGas":"1000000000"`;
let serial = 0;

export function transactionBody(signer: string, { priced }: TransactionShape): string {
  const requestId = `bench-${process.pid}-${serial++}`;
  return `{"signer":"${signer}","requestId":"${requestId}","allowNoCode":true,"payload":{"to":"${signer}","value":"1","data":"${CALL_DATA}","gas":"60000"${priced ? FEES : ""}}}`;
}

export function batchBody(signer: string, size: number, shape: TransactionShape): string {
  const items = Array.from({ length: size }, () => transactionBody(signer, shape));
  return `{"transactions":[${items.join(",")}]}`;
}

export function createBatches(signer: string, size: number): Send {
  return async (connection) => {
    const { status, body } = await connection.post("/api/v1/tx/batch", batchBody(signer, size, { priced: true }));
    if (status !== 200) throw new Error(`a batch was answered ${status}: ${body.slice(0, 300)}`);
    const accepted = body.split('"status":202').length - 1;
    if (accepted !== size) throw new Error(`${size - accepted} of a batch were refused: ${body.slice(0, 300)}`);
    return size;
  };
}

export function createSingles(signer: string): Send {
  return async (connection) => {
    const { status, body } = await connection.post("/api/v1/tx", transactionBody(signer, { priced: true }));
    if (status !== 202) throw new Error(`a create was answered ${status}: ${body.slice(0, 300)}`);
    return 1;
  };
}
