import type { Created, CreateRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { World, WorldNode } from "../world.ts";

type Answer = Created | FencepostError;

/** All calls with one request id, whoever asked. */
interface Named {
  calls: number;
  /** The transaction of the first 2xx answer, by signer or pool; absent as long as there was none. */
  readonly known: Map<string, string>;
}

/**
 * Checks the answers to all creates, whoever asks: a node that lives answers, a request that nobody has made before is
 * never called a repeat, a repeat of what was answered gets the same transaction, and no two requests share one.
 */
export class AnswerWatch {
  readonly violations: string[] = [];
  /** The longest request so far, in creates. */
  longest = 0;
  private readonly named = new Map<string, Named>();
  /** Request ids of transactions that their callers inserted into the database. */
  private readonly inserted = new Set<string>();
  /** Transactions of requests without an id. */
  private readonly unnamed = new Set<string>();
  private readonly open = new Map<WorldNode, number>();

  constructor(world: World) {
    const { database } = world;
    const insert = database.insertIntake.bind(database);
    database.insertIntake = (intent, unanswered) => {
      this.inserted.add(intent.requestId ?? "");
      insert(intent, unanswered);
    };
  }

  /** Watches the creates that this node is asked for, from now on. */
  follow(entry: WorldNode): void {
    const { api } = entry.node;
    const [create, createBatch] = [api.create.bind(api), api.createBatch.bind(api)];
    Object.assign(api, {
      create: (...given: Parameters<typeof create>) =>
        this.counted(entry, () => this.single(given[0], create(...given))),
      createBatch: (...given: Parameters<typeof createBatch>) =>
        this.counted(entry, () => this.several(given[0], createBatch(...given))),
    });
  }

  /** Number of creates that this node has not answered. */
  unanswered(entry: WorldNode): number {
    return this.open.get(entry) ?? 0;
  }

  private async counted<T>(entry: WorldNode, ask: () => Promise<T>): Promise<T> {
    this.open.set(entry, this.unanswered(entry) + 1);
    try {
      return await ask();
    } finally {
      this.open.set(entry, this.unanswered(entry) - 1);
    }
  }

  private async single(request: CreateRequest, asked: Promise<Created>): Promise<Created> {
    const judge = this.begin(request);
    const made = await asked;
    judge(made);
    return made;
  }

  private async several(requests: readonly CreateRequest[], asked: Promise<readonly Answer[]>) {
    this.longest = Math.max(this.longest, requests.length);
    const judges = requests.map((request) => this.begin(request));
    const answers = await asked;
    answers.forEach((answer, at) => void judges[at]?.(answer));
    return answers;
  }

  /** Notes a request; the returned function judges its answer. */
  private begin(request: CreateRequest): (answer: Answer) => void {
    const { signer, nonce } = request;
    const requestId = typeof request.requestId === "string" ? request.requestId : null;
    if (requestId === null) return (answer) => void (nonce === undefined && this.judgeUnnamed(answer));
    const named = this.named.get(requestId) ?? { calls: 0, known: new Map<string, string>() };
    this.named.set(requestId, named);
    named.calls++;
    const asker = JSON.stringify(signer).toLowerCase();
    const before = named.known.get(asker) ?? null;
    return (answer) => {
      if (answer instanceof FencepostError) return;
      const { outcome, txId } = answer;
      if (outcome === "existing" && named.calls === 1 && !this.inserted.has(requestId))
        this.violations.push(`${requestId} was asked for once, and called a repeat of ${txId}`);
      if (before !== null && (outcome !== "existing" || txId !== before))
        this.violations.push(`${requestId} was answered with ${before}, and then as ${outcome} with ${txId}`);
      if (!named.known.has(asker)) named.known.set(asker, txId);
    };
  }

  private judgeUnnamed(answer: Answer) {
    if (answer instanceof FencepostError) return;
    const { outcome, txId } = answer;
    if (outcome !== "created") this.violations.push(`a create without a request id was called a repeat of ${txId}`);
    if (this.unnamed.has(txId)) this.violations.push(`two requests without an id have ${txId}`);
    this.unnamed.add(txId);
  }
}
