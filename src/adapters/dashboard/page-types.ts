/** Types of the page's scripts, taken from the contract. The type checker alone reads this file (tsconfig.page.json). */
import type { AnswerAt, ParametersOf, QueryAt, ReadPath } from "../../contract/calls/read-types.ts";
import type { AttentionItem } from "../../contract/schemas/attention.ts";
import type { Problem } from "../../contract/schemas/problem.ts";
import type { SignerLane } from "../../contract/schemas/signers.ts";
import type { Explanation, Transaction } from "../../contract/schemas/transaction-schema.ts";

export type { AnswerAt, AttentionItem, Explanation, ParametersOf, Problem, QueryAt, ReadPath, SignerLane, Transaction };

export type History = AnswerAt<"/history">;
export type Caller = AnswerAt<"/me">;
export type Scope = Caller["scopes"][number];
export type Attention = AnswerAt<"/attention">;
export type Overview = AnswerAt<"/overview">;
export type Chain = Overview["chains"][number];
export type NonceRuler = AnswerAt<"/signers/{signer}/nonces">;
export type Span = NonceRuler["spans"][number];
export type Notice = AnswerAt<"/notices">["items"][number];
export type ClusterHistory = AnswerAt<"/cluster/history">;
export type Takeover = ClusterHistory["takeovers"][number];
export type CompletionsPage = AnswerAt<"/tx/completions">;
export type Completion = CompletionsPage["items"][number];
export type FoundItem = AnswerAt<"/search">["items"][number];
export type Attempt = Transaction["attempts"][number];
export type Step = NonNullable<Transaction["history"]>[number];
export type Logs = NonNullable<Transaction["onChain"]>;
export type Usage = AnswerAt<"/policy/usage">;
export type Webhook = AnswerAt<"/webhooks">["items"][number];
export type Signature = AnswerAt<"/signatures">["items"][number];

/** Query of a request or of the page's address: its names are checked, its values are text as well. */
export type Query<Q = Readonly<Record<string, unknown>>> = {
  readonly [Name in keyof Q]?: Q[Name] | string | null | undefined;
};
export type RouteQuery = Readonly<Record<string, string | undefined>>;

/** Options of a read. `params` is required if the path has parameters. */
export type ReadOptions<P extends ReadPath> = {
  readonly query?: Query<QueryAt<P>>;
  readonly signal?: AbortSignal | undefined;
  readonly withinMs?: number;
} & (P extends `${string}{${string}` ? { readonly params: ParametersOf<P> } : { readonly params?: undefined });

/** Arguments of a read: without parameters in the path, the options may be left out. */
export type ReadArguments<P extends ReadPath> = P extends `${string}{${string}`
  ? [options: ReadOptions<P>]
  : [options?: ReadOptions<P>];

/** Place on the page, read from its address. */
export interface Route {
  readonly path: string;
  readonly parts: readonly string[];
  readonly query: RouteQuery;
}

/** Arguments of a page's `view` beside its data. */
export interface Look {
  readonly route: Route;
  /** Changes the query of the page's address. */
  readonly go: (query: Query) => void;
  /** Loads the page's data again. */
  readonly refresh: () => void;
}

export interface PageOf<Data> {
  title(data?: Data): string;
  load(where: { readonly route: Route; readonly signal: AbortSignal }): Promise<Data>;
  /** Milliseconds until the data is loaded again; null if it is loaded only when something changes. */
  everyMs?(data: Data): number | null;
  view(data: Data, look: Look): Child;
  follow?(where: { readonly signal: AbortSignal; readonly redraw: () => void }): Promise<void>;
}

/** An operator's action as a request; its `label` is the button's text. */
export interface Action {
  readonly action: string;
  readonly label: string;
  readonly method: "POST" | "PUT" | "DELETE" | "GET";
  readonly path: string;
  readonly body: object | null;
}

/** Subject of an action, for its preview. `isUnread`: it could not be loaded. */
export interface ActionSubject {
  readonly transaction?: Transaction;
  readonly signature?: Signature;
  readonly webhook?: Webhook;
  readonly baseFee?: string | null;
  readonly isUnread?: true;
}

export type Mood = "moving" | "waiting" | "done" | "closed" | "failed" | "stuck";

/** A virtual element, made by `h`. */
export interface VElement {
  readonly tag: string;
  readonly key: Key | undefined;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly children: Child;
}
export type Key = string | number;
export type Child = VElement | string | number | null | undefined | false | readonly Child[];

/** Columns of a table: heading, class. */
export type Columns = readonly (readonly [name: string, kind?: string])[];
