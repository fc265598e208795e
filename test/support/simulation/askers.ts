import type { SignMessageRequest } from "../../../src/application/api.ts";
import type { SignedMessage } from "../../../src/application/operations/messages.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { World, WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import { drawMessage, TIGHT_POLICIES, USUAL_POLICIES, type Wanted } from "./message-kinds.ts";
import type { SignatureWatch } from "./signature-watch.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const PATIENCE = 20;
const LATER: readonly string[] = ["UNAVAILABLE", "NOT_LEADER"];

/**
 * Simulated callers that have messages signed, and people who approve and reject them, or tighten the rules for a
 * while. Each caller repeats its request until it has a final answer, as an idempotent client does.
 */
export class Askers extends Actor {
  private readonly watch: SignatureWatch;
  private serial = 0;
  private isChanging = false;
  /** True once the tight policies may have been in force. */
  private wasTight = false;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], watch: SignatureWatch) {
    super(world, dice, nodes);
    this.watch = watch;
  }

  ask(): void {
    const wanted = drawMessage(this.dice, ++this.serial, this.world.clock.now());
    this.watch.wanted.set(`${wanted.signer} ${String(wanted.request.requestId)}`, wanted);
    this.begin(this.follow(wanted));
  }

  /** Approves or rejects a signature that waits, or one that does not. */
  decide(): void {
    const all = this.world.database.state.signatures();
    const waiting = all.filter(({ state }) => state === "AWAITING_APPROVAL");
    const chosen = waiting.length > 0 && this.dice.chance(0.8) ? waiting : all;
    if (chosen.length === 0) return;
    const { signatureId } = this.dice.pick(chosen);
    const action = this.dice.chance(0.7) ? "approve" : "reject";
    const asked = this.watch.decisions.get(signatureId) ?? new Set();
    this.watch.decisions.set(signatureId, asked.add(action));
    const request = { reason: "a second pair of eyes" };
    this.begin(
      this.once(
        ({ node }) => node.api.decideSignature({ action, signatureId, request, actor: "operator:second" }),
        ["CONFLICT", "FORBIDDEN"],
      ).then((view) => {
        if (view !== null) this.watch.count(`${action} answered`);
      }),
    );
  }

  /** Reads signatures for audit: the signature itself must not be shown. */
  audit(): void {
    const [newest] = this.world.database.state.signatures();
    const reading = this.once(
      async ({ node: { api } }) => {
        const { items } = await api.signatures({ limit: 5 });
        return newest === undefined ? items : [...items, await api.signature(newest.signatureId)];
      },
      ["NOT_FOUND"],
    );
    this.begin(
      reading.then((items) => {
        if (items?.some((each) => "signature" in each) === true) this.absurd.push("an audit shows a signature");
      }),
    );
  }

  /** Tightens the rules for a while. */
  tighten(): void {
    if (this.isChanging) return;
    this.isChanging = true;
    this.begin(this.tightFor(this.dice.int(500, 5_000)).finally(() => (this.isChanging = false)));
  }

  private async tightFor(ms: number): Promise<void> {
    this.wasTight = true;
    const put = (policies: unknown) =>
      this.once(({ node }) => node.api.applyPolicies({ policies, reason: "drill" }, "operator:rules"), []);
    if ((await put(TIGHT_POLICIES.document)) !== null) this.watch.tightSince = this.world.clock.now();
    await this.world.clock.sleep(ms);
    this.watch.tightSince = null;
    while ((await put(USUAL_POLICIES.document)) === null) await this.world.clock.sleep(200);
  }

  private async follow(wanted: Wanted): Promise<void> {
    const known = { signature: null as Hex | null };
    for (let attempt = 0; attempt < PATIENCE; attempt++) {
      if (attempt > 0) await this.world.clock.sleep(this.dice.int(200, 2_500));
      const twice = this.dice.chance(0.15);
      const answers = await Promise.all((twice ? [0, 1] : [0]).map(() => this.request(wanted)));
      for (const answer of answers) if (typeof answer === "object" && answer !== null) this.take(wanted, answer, known);
      if (known.signature !== null) return this.askAgain(wanted, known);
      if (answers.includes("over")) return;
    }
  }

  /** The same request gets the same signature again; another message or key under its id gets none. */
  private async askAgain(wanted: Wanted, known: { signature: Hex | null }): Promise<void> {
    if (this.dice.chance(0.5)) return;
    await this.world.clock.sleep(this.dice.int(0, 3_000));
    const again = await this.request(wanted);
    if (typeof again === "object" && again !== null) this.take(wanted, again, known);
    const { signer, requestId } = wanted.request;
    const another = { signer, requestId, message: "Log in to example.com: something else" };
    await this.mustBeReused(another, wanted.owner);
    if (wanted.owner !== null) await this.mustBeReused(wanted.request, "stranger");
  }

  private async mustBeReused(request: SignMessageRequest, owner: string | null): Promise<void> {
    const done = await this.once(({ node }) => node.api.requestSignature(request, owner), ["REQUEST_ID_REUSED"]);
    if (done !== null) this.absurd.push(`request id ${String(request.requestId)} was signed for twice`);
    else this.watch.count("request id of another message");
  }

  private take({ signer, request, verdict }: Wanted, answer: SignedMessage, known: { signature: Hex | null }): void {
    const { signature } = answer;
    const requestId = String(request.requestId);
    if (verdict === "never") this.absurd.push(`${requestId} was answered ${answer.state}, and no rule allows it`);
    if (signature === null) return;
    if (known.signature !== null && known.signature !== signature) this.absurd.push(`${requestId} has two signatures`);
    known.signature = signature;
    this.watch.answered(signer, requestId, answer);
    this.watch.count("signature answered");
  }

  /** "over": it will not be signed. Null: it may be, later. */
  private async request({ request, owner, verdict }: Wanted): Promise<SignedMessage | "over" | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const { api } = this.dice.pick(nodes).node;
    const timeout = this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null);
    return Promise.race([api.requestSignature(request, owner).catch((error) => this.refused(verdict, error)), timeout]);
  }

  private refused(verdict: Wanted["verdict"], error: unknown): "over" | null {
    const { code, extras } = error instanceof FencepostError ? error : { code: String(error), extras: null };
    if (LATER.includes(code)) return null;
    const rule = extras?.rule ?? "";
    const isFull = /\.per(Hour|Day)$/.test(rule);
    const isRuled = verdict === "never" || isFull || this.wasTight || rule === "signer.keyHolder";
    const isExpected = code === "FORBIDDEN" ? isRuled : code === "CONFLICT" && verdict === "approval";
    if (!isExpected) this.absurd.push(`who wants a signature was answered ${String(error)}`);
    this.watch.count(code === "FORBIDDEN" && isFull ? "signature beyond its window" : `signature refused: ${code}`);
    return "over";
  }

  /** Asks once. Null if it was not done, or may not have been. */
  private async once<T>(ask: (node: WorldNode) => Promise<T>, expected: readonly string[]): Promise<T | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const noted = ask(this.dice.pick(nodes)).catch((error: unknown) => {
      const code = error instanceof FencepostError ? error.code : String(error);
      if (![...LATER, ...expected].includes(code)) this.absurd.push(`about signatures: ${String(error)}`);
      return null;
    });
    return Promise.race([noted, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null)]);
  }
}
