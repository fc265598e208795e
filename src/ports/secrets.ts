/** Generates secrets. It is separate from `Entropy`, whose values a seed can replay. */
export interface Secrets {
  /** The secret text for a person, and its SHA-256 in hex. */
  make(): { readonly secret: string; readonly digest: string };
}
