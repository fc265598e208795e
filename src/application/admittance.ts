import type { FencepostError } from "../domain/errors.ts";

/** Whether a create can be taken in, told before its body is read: so it costs next to nothing to ask. */
export type Admittance =
  | { readonly kind: "open" }
  /** In a moment: a caller that waits need not repeat. `refusal`: for callers that have waited long enough. */
  | { readonly kind: "soon"; readonly refusal: () => FencepostError }
  | { readonly kind: "closed"; readonly refusal: () => FencepostError };

export const OPEN: Admittance = { kind: "open" };
