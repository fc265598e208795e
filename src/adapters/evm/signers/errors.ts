/** A key that cannot be used, in one line that says where it came from and never what it is. */
export class BadKey extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "BadKey";
  }
}

/** Nothing was signed. The same request may succeed later. */
export class SigningFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SigningFailed";
  }
}
