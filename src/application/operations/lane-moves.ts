/**
 * Moves of a signer between cells (domain/cluster/lane-move.ts). Any node makes a step: it changes who may act on the
 * lane, as a lease does, and ends the term of the lane's owner.
 *
 * Reads and writes: the lane's place, its request ids, the use of its limits. A crash leaves the step made, or not; a
 * repeat goes on from there.
 */
import { hasLeft, isElsewhere } from "../../domain/cluster/lane-move.ts";
import { invalid, orDatabaseSilent, outcomeUnknown } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { DeparturePage, MoveDecision, Moved, MoveWish } from "../../ports/lane-move-store.ts";
import { OutcomeUnknown } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { parseReason } from "../requests/action.ts";
import { asObject, parseHash, parseQuantity, refuseUnknownKeys, UUID } from "../requests/fields.ts";
import { parseChainId, parseSigner } from "../requests/normalise.ts";

type MovePorts = Pick<Ports, "store" | "codec" | "entropy"> & { readonly chains: ReadonlyMap<number, ChainContext> };

const UNSAID = "the step may have been made: repeat it";

/** Keys of a request for each step, beside `step`, `reason` and `chainId`. */
const KEYS = { expect: [], leave: ["moveId", "after"], stay: ["moveId"], arrive: ["page"] } as const;
const PAGE_KEYS = [
  ...(["moveId", "chainId", "signer", "genesisHash", "nextNonce", "use"] as const),
  ...(["messageUse", "after", "next", "requests"] as const),
];
const MARK = /^[0-9]:[0-9a-f-]{0,64}$/;
const DIGEST = /^[0-9a-f]{64}$/;

export function laneMoveOperations(ports: MovePorts) {
  const { store } = ports;
  return {
    /**
     * Makes a step of a move: `expect` at the destination, `leave` at the source until it answers pages, `arrive` with
     * each page at the destination. `stay` calls a `leave` off. Each may be repeated. CONFLICT if the step is not possible.
     */
    async moveSigner(signer: string, request: unknown, actor: string) {
      const { lane, wish, after, decision } = parse(ports, signer, { request, actor });
      const moved = await orDatabaseSilent(make(ports, lane, wish, decision), UNSAID);
      const { standing, open } = moved;
      const isLeaving = wish.step === "leave" && hasLeft(standing);
      const page = isLeaving ? await orDatabaseSilent(store.departurePage(lane, wish.moveId, after), null) : null;
      const moveId =
        (isElsewhere(standing) || standing.place === "HERE" ? standing.arrivesBy : null) ?? standing.leftBy;
      const answer = { lane, place: standing.place, moveId, after: standing.carried, waitsFor: open };
      return page === null ? answer : { ...answer, page };
    },
  };
}

async function make({ store }: MovePorts, lane: Lane, wish: MoveWish, decision: MoveDecision): Promise<Moved> {
  try {
    return await store.moveLane(lane, wish, decision);
  } catch (error) {
    if (error instanceof OutcomeUnknown) throw outcomeUnknown(UNSAID, { cause: error });
    throw error;
  }
}

interface Parsed {
  readonly lane: Lane;
  readonly wish: MoveWish;
  /** With `leave`: the page before. */
  readonly after: string | null;
  readonly decision: MoveDecision;
}

function parse(ports: MovePorts, named: string, given: { readonly request: unknown; readonly actor: string }): Parsed {
  const fields = asObject(given.request, "");
  const { step } = fields;
  if (typeof step !== "string" || !Object.hasOwn(KEYS, step))
    throw invalid("step", `must be one of ${Object.keys(KEYS).join(", ")}`);
  const asked = step as keyof typeof KEYS;
  refuseUnknownKeys(fields, ["step", "reason", "chainId", ...KEYS[asked]], "");
  const signer = parseSigner(ports.codec, named, "signer");
  const lane = { chainId: parseChainId([...ports.chains.keys()], fields.chainId), signer };
  const decision = { actor: given.actor, reason: parseReason(fields.reason) };
  const after = parseMark(fields.after ?? null, "after");
  if (asked === "expect") return { lane, wish: { step: "expect", moveId: ports.entropy.uuid() }, after, decision };
  if (asked !== "arrive")
    return { lane, wish: { step: asked, moveId: parseMoveId(fields.moveId, "moveId") }, after, decision };
  const page = parsePage(ports, fields.page);
  if (page.chainId !== lane.chainId || page.signer !== lane.signer)
    throw invalid("page", `is of ${page.signer} on chain ${page.chainId}`);
  return { lane, wish: { step: "arrive", moveId: page.moveId, page }, after, decision };
}

function parsePage({ codec }: MovePorts, value: unknown): DeparturePage {
  const fields = asObject(value, "page");
  refuseUnknownKeys(fields, PAGE_KEYS, "page");
  const { chainId, genesisHash, nextNonce, requests } = fields;
  if (!Array.isArray(requests) || !requests.every((each) => typeof each === "string" && DIGEST.test(each)))
    throw invalid("page.requests", "must be a list of digests, as 64 hex digits each");
  return {
    moveId: parseMoveId(fields.moveId, "page.moveId"),
    chainId: parseCount(chainId, "page.chainId"),
    signer: parseSigner(codec, fields.signer, "page.signer"),
    genesisHash: genesisHash === null ? null : parseHash(genesisHash, "page.genesisHash"),
    nextNonce: nextNonce === null ? null : parseCount(nextNonce, "page.nextNonce"),
    use: parseWindows(fields.use, "page.use", parseAmounts),
    messageUse: parseMessageUse(fields.messageUse),
    after: parseMark(fields.after, "page.after"),
    next: parseMark(fields.next, "page.next"),
    requests,
  };
}

function parseMessageUse(value: unknown): DeparturePage["messageUse"] {
  if (!Array.isArray(value)) throw invalid("page.messageUse", "must be a list");
  return value.map((each: unknown, at) => {
    const path = `page.messageUse.${at}`;
    const { rule, ...windows } = asObject(each, path);
    if (typeof rule !== "string") throw invalid(`${path}.rule`, "must be text");
    return { rule, ...parseWindows(windows, path, parseSigned) };
  });
}

function parseWindows<Sum>(value: unknown, path: string, parseSum: (value: unknown, path: string) => Sum) {
  const fields = asObject(value, path);
  refuseUnknownKeys(fields, ["hourMs", "hour", "day"], path);
  const hour = parseSum(fields.hour, `${path}.hour`);
  return { hourMs: parseCount(fields.hourMs, `${path}.hourMs`), hour, day: parseSum(fields.day, `${path}.day`) };
}

function parseAmounts(value: unknown, path: string) {
  const fields = asObject(value, path);
  refuseUnknownKeys(fields, ["value", "cost"], path);
  return { value: parseQuantity(fields.value, `${path}.value`), cost: parseQuantity(fields.cost, `${path}.cost`) };
}

function parseSigned(value: unknown, path: string) {
  const fields = asObject(value, path);
  refuseUnknownKeys(fields, ["amount", "signatures"], path);
  const signatures = parseCount(fields.signatures, `${path}.signatures`);
  return { amount: parseQuantity(fields.amount, `${path}.amount`), signatures };
}

function parseCount(value: unknown, path: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid(path, "must be a whole number from 0 on");
}

function parseMark(value: unknown, path: string): string | null {
  if (value === null || (typeof value === "string" && MARK.test(value))) return value;
  throw invalid(path, "is not a mark of an earlier page");
}

function parseMoveId(value: unknown, path: string): string {
  if (typeof value === "string" && UUID.test(value)) return value.toLowerCase();
  throw invalid(path, "must be the id of a move, as the cell that expects the signer answered it");
}
