/**
 * Puts calls, logs and errors into words by the ABIs of the database and of this node's configuration, for people who
 * read them. Nothing is decided by them. Every node reads the document again after a few seconds, and only while
 * something is shown.
 */
import { invalid } from "../../domain/errors.ts";
import type { Address } from "../../domain/lane.ts";
import type { AbiDocument, NamedAbi } from "../../ports/abi-store.ts";
import type { AbiWords, Words } from "../../ports/codec.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { ChainLook, DecodedCall } from "../api.ts";
import { Answers } from "../chain/answers.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { encoded } from "../requests/fields.ts";

type AbiPorts = Pick<CallPorts, "codec" | "store" | "clock" | "settings">;

const READ_EVERY_MS = 5_000;
/** Longest call data that is decoded: whoever creates a transaction chooses its size. */
const LONGEST_DATA = 20_000;

/** Calls that many contracts have, as of token standards. */
const STANDARD = [
  "function transfer(address to, uint256 amount)",
  "function transferFrom(address from, address to, uint256 amount)",
  "function approve(address spender, uint256 amount)",
  "function safeTransferFrom(address from, address to, uint256 tokenId)",
  "function safeTransferFrom(address from, address to, uint256 tokenId, bytes data)",
  "function setApprovalForAll(address operator, bool approved)",
  "function deposit()",
  "function withdraw(uint256 amount)",
];

interface Entry {
  readonly contract: string | null;
  readonly words: AbiWords;
}

/** The ABIs of a contract, the most specific first. */
type Book = (address: Address | null) => readonly Entry[];

export class AbiBook {
  private readonly ports;
  private standard: Entry | null = null;
  private last: { readonly text: string; readonly book: Book } | null = null;
  private readonly books: Answers<"book", Book>;

  constructor(ports: AbiPorts) {
    this.ports = ports;
    this.books = new Answers(ports.clock);
  }

  /** Returns a function that puts the call of a transaction into words; undefined if no ABI has it. */
  async calls(): Promise<(record: Pick<TransactionRecord, "payload">) => DecodedCall | undefined> {
    const book = await this.book();
    return ({ payload: { to, data } }) => {
      if (to === null || data.length < 10 || data.length > LONGEST_DATA) return undefined;
      return first(book(to), ({ words }) => words.call(data));
    };
  }

  /** Names the logs of a contract that has an ABI, and the error that it reverted with. */
  async look(shown: ChainLook, { payload: { to } }: Pick<TransactionRecord, "payload">): Promise<ChainLook> {
    const book = await this.book();
    const logs = shown.logs.map((log) => {
      const event = first(book(log.address), ({ words }) => words.event(log.topics, log.data));
      return event === undefined ? log : { ...log, event: { name: event.name, args: event.args } };
    });
    const { revert } = shown;
    const error = revert?.name === null ? first(book(to), ({ words }) => words.error(revert.data)) : undefined;
    if (revert === null || error === undefined) return { ...shown, logs };
    const message = error.args.map(({ name, value }) => `${name}: ${value}`).join(", ");
    return { ...shown, logs, revert: { ...revert, name: error.name, message } };
  }

  forget(): void {
    this.books.clear();
  }

  private book() {
    return this.books.about("book", READ_EVERY_MS, async () => {
      const { items } = await this.ports.store.abis();
      // Reading the same ABIs again would take as long as the first time.
      const text = JSON.stringify(items);
      if (this.last?.text !== text)
        this.last = { text, book: this.indexed([...items, ...(this.ports.settings.abis ?? [])]) };
      return this.last.book;
    });
  }

  private indexed(items: readonly NamedAbi[]): Book {
    this.standard ??= { contract: null, words: this.ports.codec.readWords(STANDARD) };
    const { standard } = this;
    const byAddress = new Map<Address, Entry[]>();
    const others: Entry[] = [];
    for (const { name, addresses, abi } of items) {
      const words = this.readable(abi);
      if (words === null) continue;
      const entry = { contract: name, words };
      if (addresses === undefined) others.push(entry);
      for (const address of new Set(addresses)) {
        const known = byAddress.get(address);
        if (known === undefined) byAddress.set(address, [entry]);
        else known.push(entry);
      }
    }
    return (address) => {
      const own = address === null ? undefined : byAddress.get(address);
      return [...(own ?? others), standard];
    };
  }

  /** Another version may have stored an ABI that this one cannot read: then it has no words for it. */
  private readable(abi: readonly unknown[]) {
    try {
      return this.ports.codec.readWords(abi);
    } catch {
      return null;
    }
  }
}

function first(entries: readonly Entry[], decode: (entry: Entry) => Words | null): DecodedCall | undefined {
  for (const entry of entries) {
    const words = decode(entry);
    if (words !== null) return { contract: entry.contract, ...words };
  }
  return undefined;
}

const MOST_ITEMS = 500;
const MOST_ADDRESSES = 1_000;
const MOST_FRAGMENTS = 2_000;
const LONGEST_NAME = 64;
const CONTROL = /\p{Cc}/u;

/** The calls that read and replace the ABIs. */
export function createAbiCalls(ports: AbiPorts & { readonly abiBook: Pick<AbiBook, "forget"> }) {
  const withConfigured = (stored: AbiDocument) => ({ ...stored, configured: ports.settings.abis ?? [] });
  return {
    /** The ABIs that calls, logs and errors are shown by. */
    abis: async () => withConfigured(await ports.store.abis()),
    /** Replaces all ABIs. INVALID_REQUEST if one of them cannot be read. */
    putAbis: async (request: { readonly items?: unknown }, actor: string) => {
      const stored = await ports.store.replaceAbis(parseAbis(ports, request), actor);
      ports.abiBook.forget();
      return withConfigured(stored);
    },
  };
}

/** Parses the body of PUT /abis, and the ABIs of the configuration. */
export function parseAbis(
  ports: Pick<AbiPorts, "codec">,
  { items, ...others }: { readonly items?: unknown },
): readonly NamedAbi[] {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalid(unknown, "is not a known field");
  if (!Array.isArray(items) || items.length > MOST_ITEMS)
    throw invalid("items", `must be a list of up to ${MOST_ITEMS}`);
  return items.map((item, at) => {
    checkStorable(item, `items.${at}`);
    return parseAbi(ports, item, `items.${at}`);
  });
}

/** Levels of JSON: an ABI with the deepest tuples has about forty. */
const DEEPEST = 60;

/** Refuses JSON that PostgreSQL does not store: NUL and halves of characters in its texts, and very deep levels. */
function checkStorable(item: unknown, path: string) {
  let level: readonly unknown[] = [item];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEEPEST) throw invalid(path, "is nested too deeply");
    const texts = level.flatMap((each) => (typeof each === "string" ? each : []));
    const objects = level.filter((each) => typeof each === "object" && each !== null);
    const keys = objects.flatMap((each) => (Array.isArray(each) ? [] : Object.keys(each as object)));
    if ([...texts, ...keys].some((text) => UNSTORABLE.test(text)))
      throw invalid(path, "has text with NUL or half a character");
    level = objects.flatMap((each) => Object.values(each as object));
  }
}

const UNSTORABLE = /\0|\p{Surrogate}/u;

function parseAbi({ codec }: Pick<AbiPorts, "codec">, item: unknown, path: string): NamedAbi {
  const { name, abi, addresses } = Object(item) as Readonly<Record<string, unknown>>;
  if (typeof name !== "string" || name === "" || name.length > LONGEST_NAME || CONTROL.test(name))
    throw invalid(`${path}.name`, `must be text of up to ${LONGEST_NAME} characters, none of them a control character`);
  if (!Array.isArray(abi) || abi.length === 0 || abi.length > MOST_FRAGMENTS)
    throw invalid(`${path}.abi`, `must be a list of up to ${MOST_FRAGMENTS} entries`);
  encoded(`${path}.abi`, () => codec.readWords(abi));
  if (addresses === undefined) return { name, abi };
  if (!Array.isArray(addresses) || addresses.length > MOST_ADDRESSES)
    throw invalid(`${path}.addresses`, `must be a list of up to ${MOST_ADDRESSES} addresses`);
  const parsed = addresses.map((each, at) =>
    encoded(`${path}.addresses.${at}`, () => codec.parseAddress(String(each))),
  );
  return { name, abi, addresses: parsed };
}
