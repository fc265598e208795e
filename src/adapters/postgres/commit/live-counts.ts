/**
 * How many live transactions a lane has in each state is kept on its row, by the commit that changes it: the statements of
 * this folder are told what a plan adds up to. The triggers that count for other programs stand back (session/opening.ts).
 */
import type { State } from "../../../domain/transaction/transitions.ts";

/** What is added to a lane's counts, by state; what is missing stays. */
export type LiveChanges = Partial<Record<State, number>>;
