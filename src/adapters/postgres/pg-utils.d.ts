declare module "pg/lib/utils.js" {
  /** A parameter as it is written on the wire. */
  export function prepareValue(value: unknown): string | Buffer | null;
}
