/** A key that cannot be used, in one line that says where it came from and never what it is. */
export class BadKey extends Error {
  override readonly name = "BadKey";
}

/** Nothing was signed. The same request may succeed later. */
export class SigningFailed extends Error {
  override readonly name = "SigningFailed";
}
