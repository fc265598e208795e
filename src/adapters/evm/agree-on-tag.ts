/**
 * How far `safe` and `finalized` have come, by the word of several endpoints. Not every node knows these tags: one that has
 * never shown a tag has no vote on it, or nothing would ever be final beside it. One that has, and does not now, is waited
 * for: else its denial would leave the decision to another endpoint, which may lie.
 */
import { type Block, type BlockTag, ChainUnavailable } from "../../ports/chain.ts";
import { fetchTagged } from "./read-block.ts";
import type { Ask, Endpoints } from "./rpc/endpoints.ts";
import { RpcErrorAnswer, saysOverLimit } from "./rpc/rpc-errors.ts";

type Tag = Exclude<BlockTag, "latest">;

/** What one endpoint says of a tag. */
interface Word {
  readonly block: Block | null;
  readonly votes: boolean;
  /** Why it shows none, where that does not say that there is no such tag. */
  readonly trouble: string | null;
}

/** As far as two that vote say; by the word of one where no other votes, or is up. Null: there is none to go by. */
export async function agreeOnTag(endpoints: Endpoints, tag: Tag): Promise<Block | null> {
  const words = await hear(endpoints, tag);
  const voters = words.filter(({ votes }) => votes);
  if (voters.length === 0) refuseTrouble(words);
  return voters.length === 1 ? (voters[0]?.block ?? null) : secondHighest(voters);
}

/** The block that two endpoints confirm, or the only one that is up. Null only where all say, and always said, that there is none. */
export async function agreeOnTagForAll(endpoints: Endpoints, tag: Tag): Promise<Block | null> {
  const words = await hear(endpoints, tag);
  const block = words.length === 1 ? (words[0]?.block ?? null) : secondHighest(words);
  if (block !== null) return block;
  refuseTrouble(words);
  if (endpoints.shownTags.has(tag)) throw new ChainUnavailable(`only some endpoints show the ${tag} block`);
  return null;
}

/** One word where fewer than two endpoints are up. */
async function hear(endpoints: Endpoints, tag: Tag): Promise<readonly Word[]> {
  const said = await endpoints.readEach(asking(tag), (heard) => agreedIn(heard.map(({ answer }) => answer)) !== null);
  const alone = async () => ({ block: await endpoints.read(showing(tag)), votes: true, trouble: null });
  const words = said?.map(({ answer }) => answer) ?? [await alone()];
  if (shownIn(words).length > 0) endpoints.shownTags.add(tag);
  return words;
}

function showing(tag: Tag): Ask<Block | null> {
  return async (rpc, { shownTags }) => {
    const block = await fetchTagged(rpc, tag);
    if (block !== null) shownTags.add(tag);
    return block;
  };
}

function asking(tag: Tag): Ask<Word> {
  const show = showing(tag);
  return async (rpc, endpoint) => {
    const knewIt = endpoint.shownTags.has(tag);
    try {
      const block = await show(rpc, endpoint);
      return { block, votes: knewIt || block !== null, trouble: null };
    } catch (error) {
      // Nodes refuse a tag that they do not know in words of their own.
      if (knewIt || !(error instanceof RpcErrorAnswer) || saysOverLimit(error)) throw error;
      return { block: null, votes: false, trouble: error.message };
    }
  };
}

function shownIn(words: readonly Word[]): readonly Block[] {
  return words.flatMap(({ block }) => block ?? []);
}

/** By hash and number: with a hash alone, one of them could put a number of its own beside it. */
function agreedIn(words: readonly Word[]): Block | null {
  const shown = shownIn(words);
  const place = ({ number, hash }: Block) => `${number} ${hash}`;
  const agreed = saidTwice(shown.map(place));
  return shown.find((block) => place(block) === agreed) ?? null;
}

/** What two of them say; null: no two say the same. */
export function saidTwice<T extends string>(said: readonly T[]): T | null {
  return said.find((each, index) => said.indexOf(each) < index) ?? null;
}

function secondHighest(words: readonly Word[]): Block | null {
  const [, second = null] = shownIn(words).toSorted((a, b) => b.number - a.number);
  return agreedIn(words) ?? second;
}

function refuseTrouble(words: readonly Word[]): void {
  const troubles = words.flatMap(({ trouble }) => trouble ?? []);
  if (troubles.length > 0) throw new ChainUnavailable(troubles.join("; "));
}
