/**
 * Compares the responses of several endpoints about one block. Two equal responses decide. If an endpoint fails, the
 * next one is asked. The first response has no priority over later ones.
 */
import type { Hash } from "../../../domain/lane.ts";
import type { Receipt } from "../../../domain/transaction/transaction.ts";
import {
  type Block,
  type BlockPlace,
  type BlockTag,
  type ChainTransaction,
  ChainUnavailable,
  type ReceiptVerdict,
  type SecondOpinion,
  type SentContents,
  type Settling,
} from "../../../ports/chain.ts";
import type { Ask, Endpoint, Endpoints, Said } from "../rpc/endpoints.ts";
import { fetchBlockNumber, fetchBlocks, fetchTagged } from "../rpc/read-block.ts";
import { RpcErrorAnswer, read, saysOverLimit } from "../rpc/rpc-errors.ts";
import type { RpcTransport } from "../rpc/transport.ts";
import { fetchShownAtOnce, fetchShownInBlock, type ShownReceipt, standsIn } from "./read-receipts.ts";
import { fetchTransaction } from "./read-sent.ts";

export async function agreeOnBlock(endpoints: Endpoints, number: number): Promise<SecondOpinion> {
  const said = await endpoints.readEach(
    async (rpc) => (await fetchBlocks(rpc, [number]))[0]?.hash ?? null,
    (answers) => agreedHash(answers) !== null,
  );
  if (said === null) return { kind: "none" };
  const hash = agreedHash(said);
  if (hash !== null) return { kind: "agreed", hash };
  const shown = said.filter(({ answer }) => answer !== null);
  if (shown.length < 2) return { kind: "behind" };
  return { kind: "disagree", answers: shown.map(({ label, answer }) => `${label} shows ${answer}`) };
}

function agreedHash(said: readonly Said<Hash | null>[]) {
  return saidTwice(said.flatMap(({ answer }) => answer ?? []));
}

/**
 * Highest block, up to `upTo`, that two endpoints have reached. Two are required, because an endpoint that reports too
 * high a block number would make every receipt look deep enough. If only one endpoint is up, its block number is
 * accepted.
 */
export async function agreeOnHeight(endpoints: Endpoints, upTo: number): Promise<number> {
  if (endpoints.size === 1) return upTo;
  const said = await endpoints.readEach(
    fetchBlockNumber,
    (answers) => answers.filter(({ answer }) => answer >= upTo).length >= 2,
  );
  if (said === null) return Math.min(upTo, await endpoints.read(fetchBlockNumber));
  const [, second = -1] = said.map(({ answer }) => answer).toSorted((a, b) => b - a);
  return Math.min(upTo, second);
}

/** Request for the receipts of one block, made when the block is `depth` blocks deep. */
export interface Question {
  readonly block: BlockPlace;
  readonly transactions: readonly Settling[];
  readonly depth: number;
}

/** Compares the receipts of several endpoints. Null if fewer than two endpoints are up. */
export async function agreeOnReceipts(endpoints: Endpoints, question: Question) {
  const { transactions } = question;
  const said = await endpoints.readEach(
    (_, endpoint) => statementOf(endpoint, question),
    (answers) => transactions.every((_, index) => agreedWord(wordsOn(answers, index)).length > 0),
  );
  return said === null ? null : transactions.map((_, index) => verdictOn(wordsOn(said, index)));
}

/** Response of one endpoint about one transaction of a block. Two responses agree if their keys are equal. */
interface Word {
  readonly key: string;
  readonly text: string;
  /** Meaning of the response. "late": the endpoint's blocks, or its receipt index, have not reached this block yet. */
  readonly means: Receipt | "absent" | "moved" | "withheld" | "late";
  /** Contents of a transaction that this node did not sign. They are part of the compared key. */
  readonly sent?: SentContents;
}

type LabelledWord = Word & Pick<Said<Word>, "label">;

/**
 * Returns each endpoint's response about the transaction at `index`. `said`: the responses of each endpoint, one per
 * transaction, in the order requested.
 */
function wordsOn(said: readonly Said<readonly Word[]>[], index: number): readonly LabelledWord[] {
  return said.map(({ label, answer }) => ({ label, ...(answer[index] as Word) }));
}

function agreedWord(words: readonly Word[]): readonly Word[] {
  const inTime = words.filter(({ means }) => means !== "late");
  const agreed = saidTwice(inTime.map(({ key }) => key));
  return inTime.filter(({ key }) => key === agreed);
}

function verdictOn(words: readonly LabelledWord[]): ReceiptVerdict {
  const [word, ...same] = agreedWord(words);
  if (word === undefined) {
    const late = words.filter(({ means }) => means === "late");
    const texts = (some: readonly LabelledWord[]) => some.map(({ label, text }) => `${label} ${text}`);
    if (words.length - late.length < 2) return { kind: "behind", detail: texts(late).join("; ") };
    return { kind: "disagree", answers: texts(words.filter((each) => !late.includes(each))) };
  }
  const { means, text, sent } = word;
  if (means === "moved") return { kind: means };
  const detail = `two endpoints agree: each ${text}`;
  if (typeof means === "string") return { kind: means === "absent" ? means : "behind", detail };
  return { kind: "agreed", receipt: withAgreedPrice(means, same), ...(sent && { sent }) };
}

/**
 * Sets a receipt's paid price to the price on which the endpoints agree. If they differ, the price is unknown. That is
 * harmless: the price affects no outcome, and not every node reports it.
 */
function withAgreedPrice(receipt: Receipt, same: readonly Word[]): Receipt {
  const others = same.flatMap(({ means }) => (typeof means === "object" ? means : []));
  const isSaid = (field: "effectiveGasPrice" | "besideGas") => others.every((each) => each[field] === receipt[field]);
  const priced = isSaid("effectiveGasPrice") ? receipt : { ...receipt, effectiveGasPrice: null };
  return isSaid("besideGas") ? priced : { ...priced, ...highest([receipt, ...others]) };
}

function highest(receipts: readonly Receipt[]): Pick<Receipt, "besideGas" | "besideGasUnsure"> {
  const amounts = receipts.map(({ besideGas = 0n }) => besideGas);
  return { besideGas: amounts.reduce((most, each) => (each > most ? each : most), 0n), besideGasUnsure: true };
}

/**
 * Asks one endpoint about the transactions of a block. All calls are made in one tick, so they share one request.
 * Receipts are requested again only if the node's receipt index lags behind its blocks.
 */
async function statementOf(endpoint: Endpoint, { block, transactions, depth }: Question): Promise<readonly Word[]> {
  const hashes = transactions.map(({ txHash }) => txHash);
  const [head, [shown = null], early, senders] = await Promise.all([
    fetchBlockNumber(endpoint.rpc),
    fetchBlocks(endpoint.rpc, [block.number]),
    fetchShownAtOnce(endpoint, block.hash, hashes),
    // Fetch only transactions that were not signed here: for a transaction signed here, the hash already proves its
    // sender.
    Promise.all(transactions.map(({ txHash, sentBy }) => (sentBy ? fetchTransaction(endpoint.rpc, txHash) : null))),
  ]);
  const needed = block.number + depth;
  const all = (word: Word) => transactions.map(() => word);
  if (shown === null || head < needed) return all(saying(`is at block ${head}, and block ${needed} is needed`, "late"));
  if (shown.hash !== block.hash) return all(saying(`shows block ${shown.hash} at that height`, "moved"));
  const held = new Set(shown.transactionHashes);
  const inIt = early.filter(({ receipt }) => standsIn(shown, receipt));
  const isWhole = inIt.length >= hashes.filter((hash) => held.has(hash)).length;
  const receipts = isWhole ? inIt : await fetchShownInBlock(endpoint, shown, hashes);
  const found = new Map(receipts.map((each) => [each.receipt.txHash, each]));
  return transactions.map((each, index) => {
    const receipt = found.get(each.txHash);
    if (receipt !== undefined) return wordOn(receipt, each, senders[index] ?? null);
    if (!held.has(each.txHash)) return saying("has that block without this transaction", "absent");
    // The newest block's receipt index may still be incomplete ("late"). An older block's index is complete, so if a
    // receipt is missing, the endpoint is withholding it.
    return saying("has it in that block, but no receipt", head > block.number ? "withheld" : "late");
  });
}

const saying = (text: string, means: Word["means"]): Word => ({ key: text, text, means });

function wordOn(shown: ShownReceipt, { sentBy }: Settling, sender: ChainTransaction | null): Word {
  if (sentBy !== undefined && (sender?.from !== sentBy.signer || sender.nonce !== sentBy.nonce)) {
    return saying(
      sender === null ? "does not know it" : `shows it as nonce ${sender.nonce} of ${sender.from}`,
      "absent",
    );
  }
  const { receipt, json } = shown;
  const { status, gasUsed } = receipt;
  const logs = logsIn(json);
  // Ignore the contract address of a deployment that reverted: some nodes report it, others do not.
  const deploys = status === "success" && receipt.contractAddress !== null;
  const digest = JSON.stringify(logs);
  const outcome = `says ${status}, ${gasUsed} gas, ${deploys ? "a contract, " : ""}${logs.length} logs ${digest.slice(0, 200)}`;
  const word = { key: `${status} ${gasUsed} ${deploys} ${digest}`, text: outcome, means: receipt };
  if (sentBy === undefined || sender === null) return word;
  // Include the contents in the compared key, because they decide whose transaction this is (5-receipt/receipt.ts).
  const { to, value, data } = sender;
  const contents = `${value} wei to ${to} with ${data}`;
  const text = `${outcome}, ${contents.slice(0, 200)}`;
  return { ...word, key: `${word.key} ${contents}`, text, sent: { to, value, data } };
}

/** Contents of a receipt's logs without their indexes, which nodes count differently. */
function logsIn(json: ShownReceipt["json"]): readonly unknown[] {
  return read.array(json.logs, "receipt.logs").map((each) => {
    const { address, topics, data } = read.record(each, "receipt.logs[]");
    const hashes = read.array(topics, "log.topics").map((topic) => read.hash(topic, "log.topics[]"));
    return [read.address(address, "log.address"), hashes, read.bytes(data, "log.data")];
  });
}

/**
 * The tags `safe` and `finalized`, decided by the agreement of several endpoints. Not every node supports these tags.
 * So an endpoint that has never returned a block for a tag has no vote on it; otherwise nothing would become final. An
 * endpoint that supported the tag before and fails now is waited for. Otherwise one other endpoint, which may report a
 * false block, would decide alone.
 */
type Tag = Exclude<BlockTag, "latest">;

/**
 * Response of one endpoint about a tag. `trouble`: the node's error, if it refused the tag; null if it answered with or
 * without a block.
 */
type TagWord = Awaited<ReturnType<ReturnType<typeof asking>>>;

/**
 * Returns the block of a tag that two voting endpoints have reached. A single vote decides if no other endpoint votes
 * or is up. Null if there is no such block. Throws `ChainUnavailable` if no endpoint votes and one refused the tag with
 * an error.
 */
export async function agreeOnTag(endpoints: Endpoints, tag: Tag): Promise<Block | null> {
  const said = await endpoints.readEach(asking(tag), (answers) => agreedBlock(answers) !== null);
  if (said === null) return endpoints.read(showing(tag));
  const voters = said.filter(({ answer }) => answer.votes);
  const troubles = said.flatMap(({ answer }) => answer.trouble ?? []);
  if (voters.length === 0 && troubles.length > 0) throw new ChainUnavailable(troubles.join("; "));
  const [first = null, second = null] = shownBy(voters).toSorted((a, b) => b.number - a.number);
  return voters.length === 1 ? first : (agreedBlock(voters) ?? second);
}

function showing(tag: Tag): Ask<Block | null> {
  return async (rpc, { shownTags }) => {
    const block = await fetchTagged(rpc, tag);
    if (block !== null) shownTags.add(tag);
    return block;
  };
}

function asking(tag: Tag) {
  const show = showing(tag);
  return async (rpc: RpcTransport, endpoint: Endpoint) => {
    const knewIt = endpoint.shownTags.has(tag);
    try {
      const block = await show(rpc, endpoint);
      return { block, votes: knewIt || block !== null, trouble: null };
    } catch (error) {
      // An endpoint that never supported the tag may refuse it with any text and code, because nodes have no common
      // error for an unknown tag.
      if (knewIt || !(error instanceof RpcErrorAnswer) || saysOverLimit(error)) throw error;
      return { block: null, votes: false, trouble: error.message };
    }
  };
}

const shownBy = (said: readonly Said<TagWord>[]): readonly Block[] => said.flatMap(({ answer }) => answer.block ?? []);

/**
 * Finds the block on which two endpoints agree. Number and hash are compared: with the hash alone, one endpoint could
 * attach a false number to a true hash.
 */
function agreedBlock(said: readonly Said<TagWord>[]) {
  const shown = shownBy(said);
  const place = ({ number, hash }: Block) => `${number} ${hash}`;
  const agreed = saidTwice(shown.map(place));
  return shown.find((block) => place(block) === agreed) ?? null;
}

/** Returns a text that two endpoints gave; null if no two texts are equal. */
function saidTwice<T extends string>(said: readonly T[]) {
  return said.find((each, index) => said.indexOf(each) < index) ?? null;
}
