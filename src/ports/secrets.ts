/** Makes what only its holder knows. Not `Entropy`, which a seed replays. */
export interface Secrets {
  /** Text for a person to keep, and the SHA-256 of it in hex. */
  make(): { readonly secret: string; readonly digest: string };
}
