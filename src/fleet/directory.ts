import { FencepostError, failureOf, invalidArgument } from "../client/error-classes.ts";
import type { FencepostFace } from "../client/face.ts";
import type { SignerLane } from "../contract/schemas/signers.ts";

export interface Wanted {
  readonly signer?: unknown;
  readonly chainId?: number | undefined;
}

type Lane = Pick<SignerLane, "chainId" | "place">;
interface Answer {
  /** Null: the cell does not answer. */
  readonly lanes: readonly Lane[] | null;
  readonly error?: unknown;
}

/** Cells that have, or had, a signer. */
export interface Whereabouts {
  /** Cell that gives its nonces. */
  readonly cell: string;
  /** Cells that it has left. */
  readonly left: readonly string[];
}

/** Finds the cell of each signer by asking all cells, and remembers it until a cell refuses the signer. */
export class Directory {
  private readonly cells: Readonly<Record<string, Pick<FencepostFace, "signer">>>;
  private readonly known = new Map<string, Promise<Whereabouts>>();

  constructor(cells: Directory["cells"]) {
    this.cells = cells;
  }

  find(wanted: Wanted, signal?: AbortSignal): Promise<Whereabouts> {
    const key = keyOf(wanted);
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const asked = this.ask(wanted, signal);
    this.known.set(key, asked);
    asked.catch(() => this.forget(wanted));
    return asked;
  }

  forget(wanted: Wanted): void {
    this.known.delete(keyOf(wanted));
  }

  private async ask({ signer, chainId }: Wanted, signal?: AbortSignal): Promise<Whereabouts> {
    if (typeof signer !== "string") {
      throw invalidArgument("signer", "must be an address: a pool belongs to one cell, so send by that cell's client");
    }
    const answers = await Promise.all(
      Object.entries(this.cells).map(async ([cell, client]): Promise<Answer & { cell: string }> => {
        try {
          const lanes = await client.signer(signer as `0x${string}`, signal && { signal });
          return { cell, lanes: lanes.filter((lane) => chainId === undefined || lane.chainId === chainId) };
        } catch (error) {
          if (!(error instanceof FencepostError) || signal?.aborted) throw error;
          return error.code === "UNKNOWN_SIGNER" ? { cell, lanes: [] } : { cell, lanes: null, error };
        }
      }),
    );
    return oneOf(signer, answers);
  }
}

function keyOf({ signer, chainId }: Wanted) {
  return `${chainId ?? ""}:${String(signer).toLowerCase()}`;
}

function oneOf(signer: string, answers: readonly (Answer & { readonly cell: string })[]): Whereabouts {
  const at = (isThere: (lane: Lane) => boolean) =>
    answers.filter(({ lanes }) => lanes?.some(isThere)).map(({ cell }) => cell);
  const here = at(({ place }) => place === "HERE" || place === "LEAVING");
  const [cell, ...others] = here;
  // Two cells would give the same nonces to different transactions: nothing is sent by either until one has let go.
  if (others.length > 0)
    throw invalidArgument(
      "signer",
      `${signer} is served by ${here.join(" and ")}: move it, or take its key from all but one`,
    );
  if (cell !== undefined) return { cell, left: at(({ place }) => place === "LEFT") };
  const silent = answers.find(({ lanes }) => lanes === null);
  if (silent !== undefined) throw silent.error;
  const isMoving = at(() => true).length > 0;
  const why = isMoving ? `${signer} is on its way to another cell` : `no cell serves ${signer}`;
  throw failureOf({ code: isMoving ? "SIGNER_MOVED" : "UNKNOWN_SIGNER", status: isMoving ? 421 : 422, detail: why });
}
