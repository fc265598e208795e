/** Generates a unique secret for every setting that takes one, and searches outputs for them. */
import { randomBytes } from "node:crypto";
import { SETTING_KEYS, SETTINGS } from "../../src/main/config/schema.ts";

export class Canaries {
  private readonly known = new Map<string, string>();

  /** A unique text of letters and digits only, so that no URL encoding changes it. */
  make(name: string): string {
    return this.know(name, `canary${randomBytes(12).toString("hex")}`);
  }

  /** Registers a secret that needs a particular format. */
  know(name: string, secret: string): string {
    this.known.set(name, secret);
    return secret;
  }

  get size(): number {
    return this.known.size;
  }

  /** Returns `output: canary` for each secret found in an output, in any encoding. */
  foundIn(outputs: Readonly<Record<string, string>>): readonly string[] {
    return Object.entries(outputs).flatMap(([output, text]) => {
      const lower = text.toLowerCase();
      const found = [...this.known].filter(([, secret]) => spellings(secret).some((each) => lower.includes(each)));
      return found.map(([name, secret]) => `${output}: ${name} (…${excerpt(lower, secret)}…)`);
    });
  }
}

function spellings(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const all = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), bytes.toString("hex")];
  return [...all, bytes.toString("base64").replace(/=+$/, "")].map((each) => each.toLowerCase());
}

function excerpt(text: string, secret: string): string {
  const at = text.indexOf(secret.toLowerCase());
  return text.slice(Math.max(0, at - 80), at + 20).replace(/\s+/g, " ");
}

/** The environment variables of all settings that may contain a secret. */
export function secretVariables(): readonly string[] {
  return SETTING_KEYS.filter((key) => "secrets" in SETTINGS[key]).map((key) => SETTINGS[key].variable);
}
